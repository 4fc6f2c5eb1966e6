"""What we write on a node: our taints, our cordon and our annotations, nothing else. Pure."""

from collections.abc import Callable, Iterable, Mapping, Set
from datetime import datetime
from typing import Any

from remediator.controller.effects import Retry
from remediator.core import cordon_reason, gpu_operator, names, new_node
from remediator.core.case import Case
from remediator.core.giving_way import gave_way
from remediator.core.manual import cordoned_by_who_asks
from remediator.core.node import MOST_HANDLED, Node, Taint
from remediator.core.operation import Operation
from remediator.kube.api import encode
from remediator.kube.wire.times import stamp

Change = Callable[[Node], Mapping[str, Any] | Retry | None]
MOVED = 0.2  # seconds until a node that has changed is judged again
OURS = (names.CASE_TAINT, names.DEGRADED_TAINT)


def marked(node: Node, case: Case) -> bool:
    """Whether the node still carries a mark of this case, or does not remember it yet."""
    queued = case.finalizer and node.degraded and not node.case_uid
    ours = case.uid in node.marks or queued
    forgotten = case.finalizer and to_remember(case) and case.name not in node.handled
    return node.uid == case.node_uid and (ours or forgotten)


def to_remember(case: Case) -> bool:
    """Whether the node must remember the case: it was claimed, or a user deleted it and does not want it back.

    The fault of one that gave way has had no case yet. A new node is tried out until it has passed, unless a user has
    cancelled that.
    """
    if case.new_node and not new_node.cancelled(case):
        return False
    return case.deleting or (case.started is not None and not gave_way(case))


def claim(case: Case, judged: Node, gone: frozenset[str] = frozenset()) -> Change:
    """Cordon the node and mark it as the case's, in one write, and keep cluster-autoscaler from removing it.

    Only the node that was judged: one that a user has excluded or cordoned meanwhile is judged again. The mark of
    another case is replaced only where that case is `gone`. The cordon of who has asked for the case stays theirs; what
    a user has asked of cluster-autoscaler does, too, and the reason that they gave Slurm.
    """

    def change(node: Node) -> Mapping[str, Any] | Retry | None:
        if node.uid == case.node_uid and node.case_uid == case.uid:
            return None
        theirs = node.cordoned_by_user and cordoned_by_who_asks(case, node)
        if node != judged or (node.cordoned_by_user and not theirs) or node.marks - {case.uid} - gone:
            return Retry(MOVED, f"node {node.name} has changed since it was judged")
        others = [taint for taint in node.taints if taint.key not in OURS]
        notes: dict[str, str | None] = {} if theirs else {names.CORDONED_BY: case.uid}
        if node.kept_cordoned:
            notes[names.KEPT_CORDONED] = None
        if node.in_service:
            notes[names.IN_SERVICE] = None
        if not theirs and (not node.cordon_reason or cordon_reason.ours(node.cordon_reason)):
            notes[names.CORDON_REASON] = cordon_reason.text(case)
        if not node.scale_down_disabled or node.scale_down_disabled_by:
            notes |= {names.SCALE_DOWN_DISABLED: "true", names.SCALE_DOWN_DISABLED_BY: case.uid}
        return encode.node_marks(node, [*others, mark(case)], unschedulable=True, annotations=notes)

    return change


def withdraw(case: Case) -> Change:
    """Move the version of a node that this case has entered for and never marked, so that a late claim conflicts.

    The text names the version that is left behind: the same text twice would change nothing and move no version.
    """

    def change(node: Node) -> Mapping[str, Any] | None:
        if case.uid in node.marks:
            return None
        return encode.node_marks(node, node.taints, annotations={names.WITHDRAWN: f"{case.uid} {node.version}"})

    return change


def mark(case: Case) -> Taint:
    """The taint that says which case holds a node. It keeps nothing off: that is what the cordon does."""
    return Taint(names.CASE_TAINT, case.uid, "PreferNoSchedule")


def request_drain(case: Case, at: datetime) -> Change:
    """Ask another system to drain the node, since `at`. Only a node that the case holds."""

    def change(node: Node) -> Mapping[str, Any] | Retry | None:
        if node.uid != case.node_uid or node.case_uid != case.uid:
            return Retry(MOVED, f"node {node.name} has changed since it was judged")
        if node.drain_requested == at.replace(microsecond=0):
            return None
        return encode.node_marks(node, node.taints, annotations={names.DRAIN_REQUESTED: stamp(at)})

    return change


def take_drain_back(operation: Operation) -> Change:
    """Ask no other system any more for the drain that this operation has asked for; another request stays."""

    def change(node: Node) -> Mapping[str, Any] | None:
        asked = operation.drain_started
        if node.uid != operation.node_uid or asked is None or node.drain_requested != asked.replace(microsecond=0):
            return None
        return encode.node_marks(node, node.taints, annotations={names.DRAIN_REQUESTED: None})

    return change


def pause_operands(case: Case) -> Change:
    """Pause the operands of the GPU operator that use GPUs. Only on a node that the case holds."""

    def change(node: Node) -> Mapping[str, Any] | Retry | None:
        if node.uid != case.node_uid or node.case_uid != case.uid:
            return Retry(MOVED, f"node {node.name} has changed since it was judged")
        labels = gpu_operator.paused(node.labels)
        return encode.node_labels(node, labels) if labels else None

    return change


def resume_operands(node: Node) -> Mapping[str, Any] | None:
    """Let the operands of the GPU operator run again that we have paused."""
    labels = gpu_operator.resumed(node.labels)
    return encode.node_labels(node, labels) if labels else None


def uncordoned(node: Node, case: Case) -> bool:
    """Whether a user has taken off the cordon that the node still calls the case's."""
    return node.uid == case.node_uid and node.cordoned_by == case.uid and not node.unschedulable


def disown(case: Case) -> Change:
    """Say no longer that the cordon is ours."""

    def change(node: Node) -> Mapping[str, Any] | None:
        notes = {names.CORDONED_BY: None} | _reason_ends(node)
        return encode.node_marks(node, node.taints, annotations=notes) if uncordoned(node, case) else None

    return change


def release(case: Case, handled: tuple[str, ...] = (), standing: frozenset[str] = frozenset()) -> Change:
    """Take the case's marks off, and write what it has handled, so that the version moves and a late claim conflicts.

    Args:
        case: The case that is over.
        handled: Names of cases that the node is to remember: they are not opened again.
        standing: Names whose fault shows now; these are forgotten last.
    """

    def change(node: Node) -> Mapping[str, Any] | None:
        if not marked(node, case):
            return None
        ours = node.case_uid in (case.uid, "")
        kept = [taint for taint in node.taints if not (ours and taint.key in OURS)]
        remembered = _remembered(node.handled, handled, standing)
        notes: dict[str, str | None] = {names.HANDLED: ",".join(remembered)} if handled else {}
        if case.new_node and new_node.admits(case, node):
            kept = [taint for taint in kept if taint.key != case.new_node.taint]
            notes[names.ADMITTED] = new_node.with_admitted(node, case.new_node)
        return give_back(node, kept, {case.uid}, notes)

    return change


def give_back(
    node: Node, taints: Iterable[Taint], cases: Set[str], notes: Mapping[str, str | None] | None = None
) -> Mapping[str, Any]:
    """The patch that leaves these taints and ends what these cases (uids) have asked of Kubernetes and the autoscaler.

    `notes` are annotations to be written besides.
    """
    ends: dict[str, str | None] = dict(notes or {})
    if node.drain_requested is not None and node.case_uid in (cases | {""}):
        ends[names.DRAIN_REQUESTED] = None
    if node.in_service in cases:
        ends[names.IN_SERVICE] = None
    if node.case_uid in (cases | {""}):
        ends |= _reason_ends(node)
    if node.scale_down_disabled_by in cases:
        ends[names.SCALE_DOWN_DISABLED_BY] = None
        if node.scale_down_disabled == "true":  # else a user has spoken since
            ends[names.SCALE_DOWN_DISABLED] = None
    if node.cordoned_by not in cases:
        return encode.node_marks(node, taints, annotations=ends)
    return encode.node_marks(node, taints, unschedulable=None, annotations={**ends, names.CORDONED_BY: None})


def _reason_ends(node: Node) -> dict[str, str | None]:
    """The reason of ours goes with the cordon of the case; that of a cordon for a person stays."""
    ours = cordon_reason.ours(node.cordon_reason) and not node.kept_cordoned
    return {names.CORDON_REASON: None} if ours else {}


def _remembered(before: tuple[str, ...], handled: tuple[str, ...], standing: frozenset[str]) -> list[str]:
    """A bounded set, oldest first. One whose condition has changed is never asked for again, so it goes first."""
    kept = [*(name for name in before if name not in handled), *handled]
    surplus = max(0, len(kept) - MOST_HANDLED)
    expendable = set([name for name in kept if name not in standing and name not in handled][:surplus])
    return [name for name in kept if name not in expendable][-MOST_HANDLED:]


def close_gates(taints: tuple[str, ...], judged: Node) -> Change:
    """Keep work off a machine that has not come through the gates of new nodes, though another one of its name has."""

    def change(node: Node) -> Mapping[str, Any] | Retry | None:
        if node != judged:
            return Retry(MOVED, f"node {node.name} has changed since it was judged")
        notes = {names.ADMITTED: ",".join(new_node.without(node, taints)) or None}
        return encode.node_marks(node, [*node.taints, *map(new_node.taint, taints)], annotations=notes)

    return change


def back_in_service(node: Node) -> Mapping[str, Any] | None:
    """Take off the taint out-of-service that an operation of ours has set, once the node runs again in another boot."""
    if not node.back_in_service:
        return None
    kept = [taint for taint in node.taints if (taint.key, taint.value, taint.effect) != names.OUT_OF_SERVICE]
    return encode.node_marks(node, kept, annotations={names.OUT_OF_SERVICE_BOOT: None})


def degrade(case: Case) -> Change:
    """Ask new work to go elsewhere while the node waits its turn."""
    taint = Taint(names.DEGRADED_TAINT, "", "PreferNoSchedule")

    def change(node: Node) -> Mapping[str, Any] | None:
        if node.uid != case.node_uid or node.degraded or node.case_uid:
            return None
        return encode.node_marks(node, [*node.taints, taint])

    return change
