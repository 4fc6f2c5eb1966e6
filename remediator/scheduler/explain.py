"""What the scheduler extender says of one node, in a sentence: the same verdict as the extender's. Writes nothing."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from remediator.core.case import Case
from remediator.core.names import DOMAINS
from remediator.core.node import Node
from remediator.core.policy import Policy
from remediator.scheduler.fail_open import Tally, describe, open_reason
from remediator.scheduler.gang.topology import Topology
from remediator.scheduler.health.book import FailureBook
from remediator.scheduler.health.case_summary import CaseSummary, summary
from remediator.scheduler.health.history import level
from remediator.scheduler.health.node_health import health
from remediator.scheduler.health.policy_index import PolicyIndex
from remediator.scheduler.reasons import UNRESOLVABLE
from remediator.scheduler.row import NodeState
from remediator.scheduler.verdict import Shape, verdict

SHOWN = 0.01  # less than that is not worth a word


def explain(
    node: Node, nodes: Iterable[Node], cases: Iterable[Case], policies: Iterable[Policy], paused: bool, now: datetime
) -> str:
    """Whether Pods are kept off the node for its health, and whether health refuses nodes at all now."""
    nodes = list(nodes)
    by_node: defaultdict[str, list[CaseSummary]] = defaultdict(list)
    failures = FailureBook()
    for case in cases:
        by_node[case.node].append(summary(case))
        failures.put(case.name, case, now)
    index = PolicyIndex(policies)
    rows = {other.name: NodeState(health(other, by_node[other.name], index, now), other.gpus) for other in nodes}
    counted = failures.counted(node.name, index.repairing, now)
    row = rows[node.name]._replace(history=level(counted))
    tally = Tally()
    for each in rows.values():
        tally = tally.plus(each, 1)
    reason = open_reason(None, tally, paused)
    node_reason = verdict(row, Shape(), reason is not None)
    answer = "refused to Pods" if node_reason in UNRESOLVABLE else "let through"
    history = f"; failures that count now: {counted:.2f}" if counted >= SHOWN else ""
    return f"scheduler: {node_reason.value}, {answer}{history}{_near(node, nodes)}; {describe(reason, tally)}"


def alone(node: Node, cases: Iterable[Case], policies: Iterable[Policy], now: datetime) -> str:
    """The same of one node for who does not know the others, which may be so many that health refuses none."""
    cases, index = list(cases), PolicyIndex(policies)
    failures = FailureBook()
    for case in cases:
        failures.put(case.name, case, now)
    counted = failures.counted(node.name, index.repairing, now)
    state = NodeState(health(node, list(map(summary, cases)), index, now), node.gpus)
    reason = verdict(state._replace(history=level(counted)), Shape(), False)
    answer = "refused to Pods, unless too many nodes would be" if reason in UNRESOLVABLE else "let through"
    history = f"; failures that count now: {counted:.2f}" if counted >= SHOWN else ""
    near = ", ".join(domain.value for domain in _topology([node]).of(node.name))
    return f"scheduler: {reason.value}, {answer}{history}{_gangs(near)}"


def _near(node: Node, nodes: Iterable[Node]) -> str:
    """The domains in which it may be preferred for Pods of a gang."""
    topology = _topology(nodes)
    return _gangs(", ".join(f"{each.value} (nodes: {len(topology.members(each))})" for each in topology.of(node.name)))


def _topology(nodes: Iterable[Node]) -> Topology:
    topology = Topology(DOMAINS)
    for node in nodes:
        topology.moved(None, node)
    return topology


def _gangs(near: str) -> str:
    return f"; domains for gangs: {near}" if near else ""
