"""What a user is told of an operation that they ask for: before it, while it goes on, and at its end. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from remediator.core import guard, manual
from remediator.core.blast_radius import described
from remediator.core.case import Block, Case, KeepOut, Manual
from remediator.core.duration import in_words
from remediator.core.jobs_at_stake import BlastRadius
from remediator.core.node import Node
from remediator.core.operation import Operation, OperationPhase
from remediator.core.template import RunOn, Template

HOSTS_NOTHING = guard.Hosted()
DRAIN = "drain"  # the template whose program is the drain itself


@dataclass(frozen=True, slots=True)
class Asked:
    """An operation that is to be asked for, and what stands in its way. `operations`: those of the node."""

    template: Template
    node: Node
    cases: tuple[Case, ...]
    operations: tuple[Operation, ...]
    paused: bool = False
    hosted: guard.Hosted = HOSTS_NOTHING
    leaderless: str = ""  # that no replica of the controller leads, where none does
    keep_out: KeepOut | None = None  # who asks keeps the node afterwards

    @property
    def what(self) -> str:
        """What is asked for, as its command is called."""
        return "take-out" if self.keep_out else self.template.name


@dataclass(frozen=True, slots=True)
class LeftOperation:
    """One that nobody follows any more.

    `name` "": nobody knows whether it was made; `case`: whose it is, once there is one; `kept`: for a user to have;
    `drains`: it does nothing but drain, and so can be taken back at any time.
    """

    node: str
    name: str = ""
    progress: str = ""
    case: str = ""
    kept: bool = False
    drains: bool = False


def nothing_to_do(asked: Asked, user: str, now: datetime) -> str:
    """Why it would do nothing; "" where it would do something, now or once a budget has room."""
    same = [other for other in asked.operations if _waits(other) and _is_same(other, asked)]
    if same:
        first = min(same, key=lambda other: (other.created, other.name))
        by = f" by {first.requested_by}" if first.requested_by else ""
        return f"{asked.what} of {asked.node.name} is asked for already{by}: NodeOperation {first.name}"
    stops = _stops(asked, user, now)
    return "; ".join(f"{block.reason.value}: {block.message}" for block in stops)


def _is_same(operation: Operation, asked: Asked) -> bool:
    return operation.template == asked.template.name and bool(operation.keep_out) == bool(asked.keep_out)


def _waits(operation: Operation) -> bool:
    """Whether a user has asked for it, and it has not ended."""
    return not operation.case_uid and operation.finished is None and not operation.deleting


def _stops(asked: Asked, user: str, now: datetime) -> tuple[Block, ...]:
    """What would stop its case until somebody undoes it: the same as of every case."""
    node, wanted = asked.node, Manual("", "", asked.template.name, {}, user)
    case = Case("", "", node.name, node.uid, "", None, now, manual=wanted)
    return guard.stops(case, node, manual.policy(wanted), asked.paused, asked.hosted, now)


def before(asked: Asked, ends: BlastRadius) -> Iterator[str]:
    """What will happen, to whom."""
    template, node = asked.template, asked.node.name
    yield f"{asked.what} of {node}:"
    yield f"  ends: {described(ends)}"
    yield f"  Pods: {_pods_leave(template)}"
    if template.run_on is not RunOn.ELSEWHERE or template.boot_id_changed:
        yield f"  the node: may be disturbed for {in_words(template.timeout)} at most"
    holders = [case.name for case in asked.cases if case.open and case.claimed]
    if holders:
        yield f"  waits: for case {holders[0]}, which holds {node}"
    yield f"  starts: when budgets, breaker and all else that guards nodes let it; then {node} is cordoned"
    if asked.leaderless:
        yield f"  controller: {asked.leaderless}"
    yield f"  afterwards: {_afterwards(asked)}"


def _afterwards(asked: Asked) -> str:
    node = asked.node.name
    if asked.keep_out is None:
        return f"{node} takes work again, as soon as it is Ready"
    until = f"{asked.keep_out.until:%Y-%m-%d %H:%M:%S} UTC"
    return (
        f"{node} stays out, counted by its budgets, until `remediator put-back {node}`; after {until} it is overdue, "
        "and everybody is told"
    )


def _pods_leave(template: Template) -> str:
    if template.name == DRAIN:
        return "all leave by eviction; PodDisruptionBudgets are respected"
    if not template.drains:
        return "all stay"
    return f"leave first, by {template.strategy.value}, in {in_words(template.drain_timeout)} at most"


def progress(operation: Operation, current: Operation | None = None) -> str:
    """How far it is, in one line; `current`: what its case does now, which knows the Pods that are still to go."""
    left = f", Pods left: {current.left}" if current and current.left else ""
    blocked = f" ({current.blocked})" if current and current.left and current.blocked else ""
    message = f": {operation.message}" if operation.message else ""
    return f"{operation.phase.value}{left}{blocked}{message}"


def succeeded(operation: Operation) -> bool:
    """Whether it has ended well."""
    return operation.phase is OperationPhase.SUCCEEDED


def unheard(name: str, why: str) -> str:
    """What is said once when the server does not answer while an operation is followed."""
    return f"nothing is heard of NodeOperation {name}, which goes on: {why}; the server is asked again until it answers"


def left_alone(left: LeftOperation) -> Iterator[str]:
    """What goes on once nobody looks, how far it was, and how it is taken back."""
    if not left.name:
        yield f"no answer has come: whether an operation for {left.node} was made is not known; see `kubectl get nop`"
        return
    seen = f" (seen last: {left.progress})" if left.progress else ""
    yield f"NodeOperation {left.name} is made and goes on{seen}; nothing more is shown of it"
    yield f"to look: remediator explain {left.node}; to take it back{_how(left)}"


def _how(left: LeftOperation) -> str:
    """When it can be taken back, and by which command: on a node there may be cases of others."""
    if left.kept and left.case:
        return f": remediator put-back {left.node}"
    if not left.case:
        return f" before it begins: kubectl delete nop {left.name}"
    before = "" if left.drains else " before its Pod runs"
    return f"{before}: remediator cancel {left.node} --case {left.case}"
