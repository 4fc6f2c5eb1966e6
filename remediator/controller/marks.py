"""What we write on a node, and only that: our taints, our cordon, our annotations. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from remediator.controller.observe import marked, says_last_case
from remediator.core import names
from remediator.core.case import Case
from remediator.core.node import Node, Taint
from remediator.kube.api import encode as bodies

Change = Callable[[Node], Mapping[str, Any] | None]
OURS = (names.CASE_TAINT, names.DEGRADED_TAINT)


def claim(case: Case, cordon: bool) -> Change:
    """Put the case's taint on the node, and our cordon where asked and nobody else has cordoned it."""
    taint = Taint(names.CASE_TAINT, case.uid, "NoSchedule")

    def change(node: Node) -> Mapping[str, Any] | None:
        if node.uid != case.node_uid or node.case_uid == case.uid:
            return None
        kept = [found for found in node.taints if found.key not in OURS]
        if not cordon or node.unschedulable:
            return bodies.node_marks(node, [*kept, taint])
        ours = {names.CORDONED_BY: case.uid}
        return bodies.node_marks(node, [*kept, taint], unschedulable=True, annotations=ours)

    return change


def release(case: Case) -> Change:
    """Take the case's marks off, and write its name, so that the version moves and a late claim conflicts."""

    def change(node: Node) -> Mapping[str, Any] | None:
        if not marked(node, case):
            return None
        ours = node.case_uid in (case.uid, "")
        kept = [found for found in node.taints if not (ours and found.key in OURS)]
        notes: dict[str, str | None] = {names.LAST_CASE: case.name} if says_last_case(case) else {}
        if node.cordoned_by != case.uid:
            return bodies.node_marks(node, kept, annotations=notes)
        return bodies.node_marks(node, kept, unschedulable=None, annotations={**notes, names.CORDONED_BY: None})

    return change


def degrade(case: Case) -> Change:
    """Ask new work to go elsewhere while the node waits its turn."""
    taint = Taint(names.DEGRADED_TAINT, "", "PreferNoSchedule")

    def change(node: Node) -> Mapping[str, Any] | None:
        if node.uid != case.node_uid or node.degraded or node.case_uid:
            return None
        return bodies.node_marks(node, [*node.taints, taint])

    return change
