"""Which budgets each node is under, and how many nodes each budget counts: kept node by node, never counted anew."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from remediator.core.account import Members
from remediator.core.budget import Budget
from remediator.core.node import Node, Status
from remediator.core.selector import SelectorIndex


class BudgetIndex:
    """The budgets over a node, found by its labels."""

    def __init__(self, budgets: Iterable[Budget]) -> None:
        known = list(budgets)
        self._selecting = SelectorIndex((budget.selector, budget) for budget in known if not budget.fallback)
        self._fallback = SelectorIndex((budget.selector, budget) for budget in known if budget.fallback)

    def over(self, node: Node) -> tuple[str, ...]:
        """Their names, in order: all that select the node, else those marked as fallback."""
        return tuple(name for name, _ in self.places(node))

    def places(self, node: Node) -> tuple[tuple[str, str], ...]:
        """The same with the node's group in each; "" where it has none."""
        budgets = self._selecting.matching(node.labels) or self._fallback.matching(node.labels)
        return tuple(sorted((budget.name, budget.group(node)) for budget in budgets))


@dataclass(slots=True)
class _Tally:
    total: int = 0
    down: set[str] = field(default_factory=set)
    kept_out: set[str] = field(default_factory=set)
    known: Members | None = None  # the same as a value, while it is right

    @property
    def members(self) -> Members:
        if self.known is None:
            self.known = Members(self.total, frozenset(self.down), frozenset(self.kept_out))
        return self.known


class _CountedNode(NamedTuple):
    """How a node was counted: not ready or unschedulable, taken out for a person, and under which budgets."""

    down: bool
    kept_out: bool
    places: tuple[tuple[str, str], ...]


class Census:
    """The nodes that each budget counts. Selectors stay as they are: where one changes, another census is taken."""

    def __init__(self, budgets: Iterable[Budget]) -> None:
        known = list(budgets)
        self.index = BudgetIndex(known)
        self._grouped = {budget.name for budget in known if budget.group_by}
        self._tallies: dict[str, dict[str, _Tally]] = {budget.name: {} for budget in known}
        self._nodes: dict[str, _CountedNode] = {}
        self._members: dict[str, Members] = {}

    def put(self, name: str, node: Node | None) -> None:
        """Count a node as it is now; None takes it out."""
        if (before := self._nodes.pop(name, None)) is not None:
            self._take_out(name, before)
        if node is None:
            return
        down = node.ready is not Status.TRUE or node.unschedulable
        counted = self._nodes[name] = _CountedNode(down, node.kept_out, self.index.places(node))
        for budget, group in counted.places:
            tally = self._tallies[budget].setdefault(group, _Tally())
            tally.total, tally.known = tally.total + 1, None
            if counted.down:
                tally.down.add(name)
            if counted.kept_out:
                tally.kept_out.add(name)
            self._members.pop(budget, None)

    def members(self) -> Mapping[str, Members]:
        """What each budget counts, by its name."""
        for budget in self._tallies.keys() - self._members.keys():
            self._members[budget] = self._sum(budget)
        return dict(self._members)

    def _sum(self, budget: str) -> Members:
        groups = {group: tally.members for group, tally in self._tallies[budget].items()}
        if budget not in self._grouped:
            return groups.get("", Members(0, frozenset()))
        total = sum(members.total for members in groups.values())
        down = frozenset[str]().union(*(members.down for members in groups.values()))
        kept_out = frozenset[str]().union(*(members.kept_out for members in groups.values()))
        return Members(total, down, kept_out, groups)

    def _take_out(self, name: str, before: _CountedNode) -> None:
        for budget, group in before.places:
            tally = self._tallies[budget][group]
            tally.total, tally.known = tally.total - 1, None
            tally.down.discard(name)
            tally.kept_out.discard(name)
            if not tally.total:
                del self._tallies[budget][group]
            self._members.pop(budget, None)


@dataclass(frozen=True, slots=True)
class BudgetSnapshot:
    """All budgets at one moment: as they were read, what they count, and which of them are over a node."""

    budgets: Mapping[str, Budget]
    members: Mapping[str, Members]
    index: BudgetIndex
    starts: Mapping[str, Sequence[datetime]] = field(default_factory=dict)  # lately, on the nodes of each budget


def snapshot(budgets: Iterable[Budget], nodes: Iterable[Node]) -> BudgetSnapshot:
    """The same counted at once, for a question that is asked only now."""
    known = {budget.name: budget for budget in budgets}
    census = Census(known.values())
    for node in nodes:
        census.put(node.name, node)
    return BudgetSnapshot(known, census.members(), census.index)
