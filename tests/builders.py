"""Nouns with a default for everything: a test names only the numbers it is about."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from remediator.core import names
from remediator.core.budget import Amount, Budget, Claim
from remediator.core.case import Attempt, AttemptOutcome, Case, Trigger
from remediator.core.node import Node, NodeCondition, Status, Taint
from remediator.core.operation import Operation
from remediator.core.pod import Pod, PodPhase
from remediator.core.policy import Clause, Mode, Policy, Rung, Severity, Verify, When
from remediator.core.selector import Operator, Requirement, Selector
from remediator.core.template import RunOn, Strategy, Template

GPU = "GpuLost"
START = datetime(2026, 1, 1, 12, tzinfo=UTC)
EVERY = Selector()


def at(minutes: float = 0, seconds: float = 0) -> datetime:
    """So long after the tests' beginning of time."""
    return START + timedelta(minutes=minutes, seconds=seconds)


def minutes(count: float) -> timedelta:
    """So many minutes."""
    return timedelta(minutes=count)


def pool(name: str) -> Selector:
    """The nodes whose label `pool` is this."""
    return Selector((Requirement("pool", Operator.IN, (name,)),))


def condition(
    type: str = GPU,
    status: str = "True",
    *,
    since: float = 0,
    heartbeat: float | None = None,
    reason: str = "Xid79",
    message: str = "GPU fell off the bus",
) -> NodeCondition:
    """A node Condition; times in minutes, the heartbeat as old as the transition unless given."""
    beat = at(since if heartbeat is None else heartbeat)
    return NodeCondition(type, Status(status), reason, at(since), beat, message)


def a_node(
    name: str = "gpu-1",
    *conditions: NodeCondition,
    ready: str = "True",
    heartbeat: float = 0,
    taints: Iterable[Taint] = (),
    labels: Mapping[str, str] | None = None,
    **more: Any,
) -> Node:
    """A node whose Ready says `ready` since the beginning, heard of last at minute `heartbeat`."""
    found = {one.type: one for one in (condition("Ready", ready, heartbeat=heartbeat, reason="Kubelet"), *conditions)}
    facts: dict[str, Any] = {"uid": f"uid-{name}", "boot_id": "boot-1", "version": "1"} | more
    return Node(name=name, labels=dict(labels or {"pool": "a"}), conditions=found, taints=tuple(taints), **facts)


def a_sick_node(name: str = "gpu-1", *, minute: float = 0, **more: Any) -> Node:
    """A node whose GpuLost is True since the beginning, heard of last at `minute`."""
    return a_node(name, condition(heartbeat=minute), heartbeat=minute, **more)


def held_by(case: Case) -> Taint:
    """The taint that says that the case holds the node."""
    return Taint(names.CASE_TAINT, case.uid, "PreferNoSchedule")


def when(*clauses: Clause, tolerance: float = 2) -> When:
    """Clauses that must hold together for so many minutes; GpuLost=True where none is given."""
    return When(clauses or (Clause(GPU),), minutes(tolerance))


def a_policy(
    name: str = "gpu-lost",
    *entries: When,
    ladder: Iterable[tuple[str, int]] = (("reset-gpu", 1), ("reboot", 2)),
    selector: Selector = EVERY,
    severity: Severity = Severity.WARNING,
    settle: float = 5,
    fresh: float = 3,
    timeout: float = 20,
    attempts: int = 4,
    window: float = 7 * 24 * 60,
    cooldown: float = 30,
    mode: Mode = Mode.ENFORCE,
    **more: Any,
) -> Policy:
    """A policy that acts on GpuLost; times in minutes."""
    return Policy(
        name=name,
        selector=selector,
        when=entries or (when(),),
        ladder=tuple(Rung(operation, times) for operation, times in ladder),
        severity=severity,
        verify=Verify(minutes(settle), minutes(fresh), minutes(timeout)),
        attempts_max=attempts,
        attempts_window=minutes(window),
        cooldown=minutes(cooldown),
        mode=mode,
        **more,
    )


def an_attempt(
    rung: int = 0,
    outcome: AttemptOutcome = AttemptOutcome.FAILED,
    *,
    started: float = 0,
    finished: float | None = None,
    operation: str = "",
    template: str = "reboot",
    **more: Any,
) -> Attempt:
    """One attempt; it has finished a minute after it started unless it is open."""
    end = started + 1 if finished is None and outcome is not AttemptOutcome.OPEN else finished
    ended = None if end is None else at(end)
    return Attempt(operation or f"op-{rung}-{started}", template, rung, at(started), ended, outcome, **more)


def a_case(name: str = "case-1", *, node: str = "gpu-1", created: float = 0, **more: Any) -> Case:
    """An open case of GpuLost, new, with our finalizer; its uid is `uid-<name>`."""
    facts: dict[str, Any] = {
        "uid": f"uid-{name}",
        "node_uid": f"uid-{node}",
        "policy": "gpu-lost",
        "trigger": Trigger(GPU, "True", "Xid79", "GPU fell off the bus", at(0)),
        "version": "1",
        "finalizers": (names.CASE_FINALIZER,),
    } | more
    return Case(name=name, node=node, created=at(created), **facts)


def a_budget(
    name: str = "pool-a",
    most: int | str | None = 1,
    *,
    least: int | str | None = None,
    selector: Selector = EVERY,
    claims: Iterable[tuple[str, str]] = (),
    fallback: bool = False,
    adopted: bool = True,
    generation: int = 1,
    **more: Any,
) -> Budget:
    """A budget of `most` nodes ("10%" or 1), or of at least `least` left; claims are (node, case uid)."""
    held = tuple(Claim(node, case, at(0)) for node, case in claims)
    facts: dict[str, Any] = {"claims": held, "version": "1"} | more
    ceiling = None if least is not None else amount(most)
    return Budget(name, f"uid-{name}", selector, ceiling, amount(least), fallback, generation, adopted, **facts)


def amount(said: int | str | None) -> Amount | None:
    """1 or "10%"."""
    if said is None or isinstance(said, int):
        return None if said is None else Amount(said)
    return Amount(int(said.removesuffix("%")), percent=True)


def a_template(name: str = "reboot", strategy: Strategy = Strategy.EVICT, **more: Any) -> Template:
    """A template that drains for up to 30 minutes, then runs on the node for up to 15."""
    facts: dict[str, Any] = {
        "drain_timeout": minutes(30),
        "run_on": RunOn.TARGET,
        "timeout": minutes(15),
        "boot_id_changed": False,
        "node_ready": False,
        "pod": {"spec": {"containers": [{"name": "main", "image": "operations"}]}},
    } | more
    return Template(name=name, strategy=strategy, **facts)


def an_operation(name: str = "op-1", case: Case | None = None, **more: Any) -> Operation:
    """An operation `reboot` of a case, just created."""
    of = case or a_case()
    facts: dict[str, Any] = {
        "uid": f"uid-{name}",
        "node": of.node,
        "node_uid": of.node_uid,
        "case_uid": of.uid,
        "template": "reboot",
        "created": at(0),
        "version": "1",
        "finalizers": (names.CASE_FINALIZER,),
    } | more
    return Operation(name=name, **facts)


def a_pod(name: str = "pod-1", phase: PodPhase = PodPhase.RUNNING, **more: Any) -> Pod:
    """A Pod of ours with our finalizer."""
    facts: dict[str, Any] = {
        "namespace": names.OPERATIONS_NAMESPACE,
        "uid": f"uid-{name}",
        "node": "gpu-1",
        "finalizers": (names.POD_FINALIZER,),
        "version": "1",
    } | more
    return Pod(name=name, phase=phase, **facts)
