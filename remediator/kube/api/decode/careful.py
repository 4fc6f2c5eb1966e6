"""Objects that cannot be read (a newer version wrote them) as the most careful thing that they could be.

Only what cannot change its meaning is read of them: the head, the node of a case and when its attempts were started,
selector and ledger of a budget, the node of a Pod.
"""

from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from remediator.core import budget as budgets
from remediator.core import names, pod
from remediator.core import policy as policies
from remediator.core.case import Attempt, Case
from remediator.core.node_inventory import Inventory
from remediator.core.selector import Operator, Requirement, Selector
from remediator.kube import api
from remediator.kube.api.common import Base, ObjectMeta
from remediator.kube.api.decode.policies import breaker_rule, claim, closed_at, failures, selector
from remediator.kube.api.decode.times import EPOCH, moment


class _CaseSpec(Base, frozen=True, kw_only=True):
    node_name: str = ""
    node_uid: str = msgspec.field(name="nodeUID", default="")
    policy_name: str = ""


class _Case(Base, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: _CaseSpec = _CaseSpec()


class _Attempt(Base, frozen=True, kw_only=True):
    operation: str = ""
    started_at: datetime | None = None
    follows: str = ""
    probe: bool = False


class _Attempts(Base, frozen=True, kw_only=True):
    attempts: tuple[_Attempt, ...] = ()


class _Tried(Base, frozen=True, kw_only=True):
    status: _Attempts = _Attempts()


class _PodHead(Base, frozen=True, kw_only=True):
    name: str
    namespace: str
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class _PodSpec(Base, frozen=True, kw_only=True):
    node_name: str = ""


class _Pod(Base, frozen=True, kw_only=True):
    metadata: _PodHead
    spec: _PodSpec = _PodSpec()


class _Head(Base, frozen=True, kw_only=True):
    metadata: ObjectMeta


class _OfNode(Base, frozen=True, kw_only=True):
    node_name: str = ""


class _Counting(Base, frozen=True, kw_only=True):
    spec: _OfNode = _OfNode()


class _Selecting(Base, frozen=True, kw_only=True):
    selector: api.LabelSelector


class _Selected(Base, frozen=True, kw_only=True):
    spec: _Selecting


class _Claims(Base, frozen=True, kw_only=True):
    claims: tuple[api.Claim, ...] = ()


class _Ledger(Base, frozen=True, kw_only=True):
    status: _Claims = _Claims()


class _BreakerSpec(Base, frozen=True, kw_only=True):
    breaker: api.BudgetBreaker | None = None


class _Failing(Base, frozen=True, kw_only=True):
    breaker: api.FailureBreaker | None = None


class _Breaker(Base, frozen=True, kw_only=True):
    spec: _BreakerSpec = _BreakerSpec()
    status: _Failing = _Failing()


NOTHING = Selector((Requirement("", Operator.EXISTS),))  # no label has an empty name
T = TypeVar("T")


def case(raw: msgspec.Raw) -> Case:
    """An open case that holds its node. Raises DecodeError where not even its node can be read."""
    wire = msgspec.json.decode(raw, type=_Case)
    meta, spec = wire.metadata, wire.spec
    return Case(
        name=meta.name,
        uid=meta.uid,
        node=spec.node_name,
        node_uid=spec.node_uid,
        policy=spec.policy_name,
        trigger=None,
        created=moment(meta.creation_timestamp) or EPOCH,
        version=meta.resource_version,
        deleting=meta.deletion_timestamp is not None,
        finalizers=meta.finalizers,
        attempts=_attempts(raw),
        unreadable=True,
    )


def _attempts(raw: msgspec.Raw) -> tuple[Attempt, ...]:
    """What the breaker counts: when each attempt was started; none where even that cannot be read."""
    try:
        tried = msgspec.json.decode(raw, type=_Tried).status.attempts
    except (msgspec.MsgspecError, RecursionError):
        return ()
    return tuple(
        Attempt(each.operation, "", 0, moment(each.started_at) or EPOCH, follows=each.follows, probe=each.probe)
        for each in tried
    )


def budget(raw: msgspec.Raw) -> budgets.Budget:
    """A budget that admits nothing for the nodes that it selects; for all nodes where that cannot be read.

    Its breaker stops attempts of cases that hold their nodes, where that can be read.
    """
    meta = msgspec.json.decode(raw, type=_Head).metadata
    selected, ledger, breaker = _part(raw, _Selected), _part(raw, _Ledger), _part(raw, _Breaker) or _Breaker()
    return budgets.Budget(
        name=meta.name,
        uid=meta.uid,
        selector=selector(selected.spec.selector) if selected else Selector(),
        max_unavailable=None,
        min_available=None,
        fallback=False,
        generation=meta.generation,
        adopted=False,
        claims=tuple(claim(entry) for entry in ledger.status.claims) if ledger else (),
        version=meta.resource_version,
        unreadable=True,
        breaker=breaker_rule(breaker.spec.breaker),
        failing=failures(breaker.status.breaker),
        closed_at=closed_at(meta),
    )


def policy(raw: msgspec.Raw) -> policies.Policy:
    """A policy that is paused and opens no case; of the cases that it has, nothing is proven and nothing starts."""
    meta, none = msgspec.json.decode(raw, type=_Head).metadata, timedelta(0)
    return policies.Policy(
        name=meta.name,
        selector=NOTHING,
        when=(),
        ladder=(),
        severity=policies.Severity.CRITICAL,
        verify=policies.Verify(none, none, none),
        attempts_max=0,
        attempts_window=none,
        cooldown=none,
        mode=policies.Mode.PAUSED,
        generation=meta.generation,
        version=meta.resource_version,
        unreadable=True,
    )


def node_inventory(raw: msgspec.Raw) -> Inventory:
    """An inventory of which nobody knows what its node should have: nothing is learnt, and none comes back by it."""
    meta, of = msgspec.json.decode(raw, type=_Head).metadata, _part(raw, _Counting) or _Counting()
    return Inventory(meta.name, of.spec.node_name, unreadable=True, uid=meta.uid, version=meta.resource_version)


def control_plane_pod(raw: msgspec.Raw) -> pod.Pod:
    """A Pod that protects its node, if it is a mirror Pod. Raises DecodeError where not even its node can be read."""
    wire = msgspec.json.decode(raw, type=_Pod)
    meta, mirror = wire.metadata, names.MIRROR in wire.metadata.annotations
    phase, version = pod.PodPhase.UNKNOWN, meta.resource_version
    return pod.Pod(meta.name, meta.namespace, meta.uid, wire.spec.node_name, phase, mirror=mirror, version=version)


def _part(raw: msgspec.Raw, part: type[T]) -> T | None:
    """A part of an object, None where it cannot be read."""
    try:
        return msgspec.json.decode(raw, type=part)
    except (ValueError, RecursionError):
        return None
