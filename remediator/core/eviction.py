"""Whether an eviction that a drain asks for may happen: its operation and the Pod are looked at, which no admission
policy can do. Pure. What nobody can tell is refused, and may be asked for again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from remediator.core import names
from remediator.core.operation import Operation, OperationPhase

AGAIN = "; ask again"


class Ruling(Enum):
    """What becomes of an eviction. LATER: nobody can tell now."""

    ALLOWED = "allowed"
    REFUSED = "refused"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class AskedEviction:
    """Who asks, with the Pod that the token is bound to; and for which Pod, with the uid that it must have."""

    user: str
    speaker: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class EvictablePod:
    """What decides of a Pod."""

    uid: str
    node: str
    mirrors: bool = False
    of_daemon_set: bool = False


@dataclass(frozen=True, slots=True)
class EvictionRuling:
    """What becomes of it, and why, for whoever asks; "" where it is allowed."""

    ruling: Ruling
    why: str = ""


ALLOWED = EvictionRuling(Ruling.ALLOWED)


def drain_account(namespace: str) -> str:
    """The user of the drain program, whose Pods run in this namespace."""
    return f"system:serviceaccount:{namespace}:remediator-drain"


def drains(operation: Operation) -> bool:
    """Whether its drain runs: before what it is about, or since the drain is what it is about."""
    if operation.deleting:
        return False
    itself = operation.template == names.DRAIN_TEMPLATE and operation.phase is OperationPhase.OPERATING
    return itself or (operation.phase is OperationPhase.DRAINING and operation.drained_at is None)


def by_request(
    asked: AskedEviction, operations: Sequence[Operation], spaces: names.Namespaces, wait: str = ""
) -> Operation | EvictionRuling:
    """What the request alone says, before anybody reads the Pod; the operation that drains where it may be right.

    `operations` are those whose drain Pod has the name of the speaker. Who is no drain is none of our business.
    `wait`: why no drain may go on now, or nobody can tell; "" for nothing.
    """
    if asked.user != drain_account(spaces.operations):
        return ALLOWED
    protected = asked.namespace in (spaces.operations, names.CONTROL_PLANE_NAMESPACE)
    rows = (
        (not asked.speaker, Ruling.REFUSED, "a token that is bound to the Pod of a drain is needed"),
        (protected, Ruling.REFUSED, "a drain touches no Pod of the cluster itself and none of an operation"),
        (not asked.uid, Ruling.REFUSED, "a drain names the Pod by its uid, in the preconditions of the eviction"),
        (wait != "", Ruling.LATER, wait + AGAIN),
        (len(operations) != 1, Ruling.LATER, f"no operation is known whose drain is Pod {asked.speaker}{AGAIN}"),
        (not any(map(drains, operations)), Ruling.REFUSED, "the operation of this drain does not drain any more"),
    )
    refusal = next((EvictionRuling(ruling, why) for holds, ruling, why in rows if holds), None)
    return refusal or operations[0]


def by_pod(asked: AskedEviction, operation: Operation, pod: EvictablePod | None) -> EvictionRuling:
    """What the Pod says, as it is now; None where there is none, which the API server then says better than we."""
    if pod is None or pod.uid != asked.uid:
        return ALLOWED
    rows = (
        (pod.mirrors, "a drain touches no mirror Pod"),
        (pod.of_daemon_set, "a drain touches no Pod of a DaemonSet"),
        (pod.node != operation.node, f"{asked.namespace}/{asked.name} is not on {operation.node}, which it drains"),
    )
    return next((EvictionRuling(Ruling.REFUSED, why) for holds, why in rows if holds), ALLOWED)


def unknown(asked: AskedEviction, why: str) -> EvictionRuling:
    """Of a Pod that cannot be read."""
    return EvictionRuling(Ruling.LATER, f"{asked.namespace}/{asked.name} cannot be read: {why}{AGAIN}")
