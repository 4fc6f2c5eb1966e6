"""The fleet as the page shows it: racks with nodes, the queue of cases, budgets. Pure: facts in, a view out."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from remediator.controller.status import HEADINGS, data, head
from remediator.core.budget import Budget
from remediator.core.budget_text import as_shown
from remediator.core.case import Case
from remediator.core.duration import in_words
from remediator.core.node import Node
from remediator.core.open_cases import Group, groups
from remediator.core.running import Leading, Running
from remediator.kube.overview import Overview
from remediator.web.page.freshness import Freshness, freshness_data
from remediator.web.page.node_standing import RANKS, NodeStanding, state_of

MOST_CASES = 100  # of one group, that the page names; JSON names all
NO_RACK = "without a rack"


@dataclass(frozen=True, slots=True)
class FleetFacts:
    """What a replica knows at one moment. `domains`: the labels by which nodes stand together, the narrowest first."""

    fleet: Overview
    nodes: tuple[Node, ...]
    leader: Leading
    running: Running
    namespace: str
    domains: tuple[str, ...]
    now: datetime
    fresh: Freshness


@dataclass(frozen=True, slots=True)
class NodeCell:
    """One node."""

    name: str
    state: NodeStanding


@dataclass(frozen=True, slots=True)
class RackView:
    """The nodes with one value of a label, in the order of their names."""

    name: str
    nodes: tuple[NodeCell, ...]
    counts: tuple[tuple[NodeStanding, int], ...]


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case in the queue."""

    name: str
    node: str
    opened_for: str
    message: str
    age: str


@dataclass(frozen=True, slots=True)
class QueueGroup:
    """The cases that wait for the same."""

    heading: str  # who must act
    word: str
    remedy: str
    since: str
    cases: tuple[CaseRow, ...]
    more: int


@dataclass(frozen=True, slots=True)
class BudgetView:
    """How full a budget is; `percent` None where it is not counted yet."""

    name: str
    sentence: str
    percent: int | None


@dataclass(frozen=True, slots=True)
class FleetView:
    """The page of the fleet."""

    lines: tuple[str, ...]
    counts: tuple[tuple[NodeStanding, int], ...]
    racks: tuple[RackView, ...]
    queue: tuple[QueueGroup, ...]
    budgets: tuple[BudgetView, ...]
    as_of: str
    stale: str  # why it is not of now, and of when it is; "" where it is of now


def fleet_view(facts: FleetFacts) -> FleetView:
    """All of it."""
    racks = _racks(facts)
    counts = Counter(cell.state for rack in racks for cell in rack.nodes)
    return FleetView(
        tuple(head(facts.fleet, facts.leader, facts.running, facts.namespace, facts.now)),
        _ordered(counts),
        racks,
        tuple(_group(group, facts.now) for group in groups(facts.fleet.cases)),
        tuple(_budget(budget, facts.now) for budget in sorted(facts.fleet.budgets, key=lambda budget: budget.name)),
        f"{facts.fresh.as_of or facts.now:%Y-%m-%d %H:%M:%S} UTC",
        facts.fresh.sentence,
    )


def fleet_data(facts: FleetFacts) -> dict[str, Any]:
    """As `remediator status -o json`, and how fresh it is."""
    return data(facts.fleet, facts.leader, facts.running, facts.now) | {"freshness": freshness_data(facts.fresh)}


def nodes_data(view: FleetView, fresh: Freshness) -> dict[str, Any]:
    """Every node with its rack and its state, and how fresh this is."""
    nodes = [_node(cell, rack.name) for rack in view.racks for cell in rack.nodes]
    return {"nodes": nodes, "freshness": freshness_data(fresh)}


def counted(counts: Iterable[tuple[NodeStanding, int]]) -> str:
    """In words.

    >>> counted([(NodeStanding.REPAIR, 1), (NodeStanding.IN_SERVICE, 7)])
    '1 in repair, 7 in service'
    """
    return ", ".join(f"{count} {state.word}" for state, count in counts)


def rack_of(node: Node, domains: Iterable[str]) -> str:
    """The value of the narrowest label that the node has."""
    return next((node.labels[label] for label in domains if node.labels.get(label)), NO_RACK)


def row(case: Case, now: datetime) -> CaseRow:
    """One case."""
    condition = case.trigger.condition if case.trigger else case.manual.template if case.manual else ""
    blocked = "; ".join(block.message for block in case.blocks)
    return CaseRow(case.name, case.node, condition, blocked or case.message, in_words(now - case.created))


def _node(cell: NodeCell, rack: str) -> dict[str, str]:
    return {"name": cell.name, "rack": rack, "state": cell.state.letter, "word": cell.state.word}


def _racks(facts: FleetFacts) -> tuple[RackView, ...]:
    by_node: defaultdict[str, list[Case]] = defaultdict(list)
    for case in facts.fleet.cases:
        by_node[case.node].append(case)
    by_rack: defaultdict[str, list[NodeCell]] = defaultdict(list)
    for node in facts.nodes:
        cell = NodeCell(node.name, state_of(node, by_node.get(node.name, ())))
        by_rack[rack_of(node, facts.domains)].append(cell)
    return tuple(
        _rack(name, by_rack[name]) for name in sorted(by_rack, key=lambda name: (name == NO_RACK, _natural(name)))
    )


def _rack(name: str, cells: list[NodeCell]) -> RackView:
    in_order = sorted(cells, key=lambda cell: _natural(cell.name))
    return RackView(name, tuple(in_order), _ordered(Counter(cell.state for cell in cells)))


def _natural(name: str) -> list[tuple[int, str]]:
    """gpu-9 before gpu-10."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split("([0-9]+)", name)]


def _ordered(counts: Mapping[NodeStanding, int]) -> tuple[tuple[NodeStanding, int], ...]:
    return tuple((state, counts[state]) for state in sorted(counts, key=RANKS.__getitem__))


def _group(group: Group, now: datetime) -> QueueGroup:
    return QueueGroup(
        HEADINGS[group.wait.actor].rstrip(":"),
        group.wait.word,
        group.wait.remedy,
        in_words(now - group.since),
        tuple(row(case, now) for case in group.cases[:MOST_CASES]),
        max(0, len(group.cases) - MOST_CASES),
    )


def _budget(budget: Budget, now: datetime) -> BudgetView:
    """Filled by what is unavailable, of that and of what may still become so."""
    counts = budget.shown
    if counts is None:
        return BudgetView(budget.name, as_shown(budget, now), None)
    room = counts.unavailable + counts.allowed
    return BudgetView(budget.name, as_shown(budget, now), 100 * counts.unavailable // room if room else 100)
