"""What the scheduler extender says of one node, in a sentence: the same verdict as the extender's. Writes nothing."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from remediator.core.case import Case
from remediator.core.node import Node
from remediator.core.policy import Policy
from remediator.scheduler.fail_open import Tally, describe, open_reason
from remediator.scheduler.verdict import UNRESOLVABLE, CaseSummary, NodeState, Shape, health, summary, verdict


def explain(
    node: Node, nodes: Iterable[Node], cases: Iterable[Case], policies: Iterable[Policy], paused: bool, now: datetime
) -> str:
    """Whether Pods are kept off the node for its health, and whether health refuses nodes at all now."""
    by_node: defaultdict[str, list[CaseSummary]] = defaultdict(list)
    for case in cases:
        by_node[case.node].append(summary(case))
    policies = list(policies)
    rows = {other.name: NodeState(health(other, by_node[other.name], policies, now), other.gpus) for other in nodes}
    tally = Tally()
    for row in rows.values():
        tally = tally.plus(row, 1)
    reason = open_reason(None, tally, paused)
    node_reason = verdict(rows[node.name], Shape(), reason is not None)
    answer = "refused to Pods" if node_reason in UNRESOLVABLE else "let through"
    return f"scheduler: {node_reason.value}, {answer}; {describe(reason, tally)}"
