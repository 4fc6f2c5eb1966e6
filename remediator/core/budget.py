"""Budgets: how many nodes of a group may be unavailable at once. The ledger in the budget's status enforces it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from remediator.core.node import Node, Status
from remediator.core.selector import Selector

MOST_CLAIMS = 2000
FEWEST_QUARANTINED = 2  # that a percentage stands for: one dead board must not stop all repair


@dataclass(frozen=True, slots=True)
class Amount:
    """A count of nodes, or a percentage of a group."""

    value: int
    percent: bool = False

    def of(self, total: int, *, round_up: bool) -> int:
        """Nodes out of `total`. A percentage rounds as asked."""
        if not self.percent:
            return self.value
        return -(-total * self.value // 100) if round_up else total * self.value // 100


DEFAULT_QUARANTINED = Amount(20, percent=True)


@dataclass(frozen=True, slots=True)
class Claim:
    """One entry of a ledger: this case holds this node. `quarantined`: its ladder is spent, and a user must look."""

    node: str
    case: str
    since: datetime
    quarantined: bool = False


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of nodes that a budget's status shows."""

    total: int
    unavailable: int
    allowed: int
    quarantined: int = 0


@dataclass(frozen=True, slots=True)
class Budget:
    """One budget as last read. `adopted` is false until it has taken over the claims that stood."""

    name: str
    uid: str
    selector: Selector
    max_unavailable: Amount | None
    min_available: Amount | None
    fallback: bool
    generation: int
    adopted: bool
    claims: tuple[Claim, ...] = ()
    shown: Counts | None = None  # what its status says; None where it was never counted
    version: str = ""
    max_quarantined: Amount = DEFAULT_QUARANTINED
    unreadable: bool = False  # it admits nothing for what it may select, and nothing is written to it

    def holds(self, case_uid: str) -> bool:
        """Whether the case has its entry."""
        return any(claim.case == case_uid for claim in self.claims)

    def most(self, total: int) -> int:
        """How many of `total` nodes may be unavailable.

        maxUnavailable rounds a percentage down, but never below one node where it is above 0 %, so that a small group
        can be repaired; minAvailable rounds it up.

        >>> from remediator.core.selector import Selector
        >>> five = Budget("b", "u", Selector(), Amount(5, percent=True), None, False, 1, True)
        >>> [five.most(total) for total in (0, 1, 19, 40, 59)]
        [0, 1, 1, 2, 2]
        """
        if self.max_unavailable is not None:
            wanted = self.max_unavailable.of(total, round_up=False)
            floor = min(total, 1) if self.max_unavailable.percent and self.max_unavailable.value > 0 else 0
            return max(wanted, floor)
        if self.min_available is not None:
            return max(0, total - self.min_available.of(total, round_up=True))
        return 0

    def most_quarantined(self, total: int) -> int:
        """At how many quarantined nodes nothing new starts. A percentage rounds down, but never below two nodes.

        >>> from remediator.core.selector import Selector
        >>> one = Budget("b", "u", Selector(), Amount(1), None, False, 1, True)
        >>> [one.most_quarantined(total) for total in (1, 12, 100)]
        [2, 2, 20]
        """
        floor = FEWEST_QUARANTINED if self.max_quarantined.percent and self.max_quarantined.value > 0 else 0
        return max(self.max_quarantined.of(total, round_up=False), floor)


@dataclass(frozen=True, slots=True)
class Account:
    """Where one budget stands over the nodes it selects.

    Quarantined nodes are neither in `down` nor in `claimed`, whatever their state. Only where the budget says how many
    nodes must be available, they are `down`: it promises that so many are.
    """

    total: int
    most: int
    down: frozenset[str]
    claimed: frozenset[str]
    quarantined: frozenset[str] = frozenset()
    most_quarantined: int = 0

    @property
    def unavailable(self) -> frozenset[str]:
        """The nodes that are down or claimed."""
        return self.down | self.claimed

    @property
    def allowed(self) -> int:
        """How many more nodes may become unavailable."""
        return max(0, self.most - len(self.unavailable))

    @property
    def counts(self) -> Counts:
        """The numbers to show."""
        return Counts(self.total, len(self.unavailable), self.allowed, len(self.quarantined))

    @property
    def full_of_quarantine(self) -> bool:
        """Whether so many nodes wait for a user that nothing new starts. Repairs under way may still add to them."""
        return len(self.quarantined) >= self.most_quarantined

    def admits(self, node: str) -> bool:
        """Whether taking this node stays inside.

        Repairing a node that is down already makes nobody worse off: only claims count against it, or several
        nodes that are down wait for each other for ever.
        """
        held = self.claimed if node in self.down else self.unavailable
        return len(held | {node}) <= self.most


@dataclass(frozen=True, slots=True)
class Members:
    """The nodes that a budget counts: how many, which of them are not ready or unschedulable, and which of these an
    operation has taken out for a person.
    """

    total: int
    down: frozenset[str]
    kept_out: frozenset[str] = frozenset()


def members(budget: Budget, nodes: Iterable[Node], budgets: Mapping[str, Budget]) -> Members:
    """Count the nodes that a budget selects; for a fallback only those that no other budget selects."""
    others = [other.selector for other in budgets.values() if budget.fallback and not other.fallback]
    selected = [
        node
        for node in nodes
        if budget.selector.matches(node.labels) and not any(other.matches(node.labels) for other in others)
    ]
    down = (node.name for node in selected if node.ready is not Status.TRUE or node.unschedulable)
    kept_out = (node.name for node in selected if node.kept_out)
    return Members(len(selected), frozenset(down), frozenset(kept_out))


def account(budget: Budget, counted: Members) -> Account:
    """Where a budget stands. Claims count even where the selector left their node."""
    claimed = frozenset(claim.node for claim in budget.claims if not claim.quarantined)
    waiting = frozenset(claim.node for claim in budget.claims if claim.quarantined)
    quarantined = (waiting | counted.kept_out) - claimed
    down = counted.down - quarantined if budget.max_unavailable is not None else counted.down | quarantined
    most, most_quarantined = budget.most(counted.total), budget.most_quarantined(counted.total)
    return Account(counted.total, most, down, claimed, quarantined, most_quarantined)


def over(node: Node, budgets: Mapping[str, Budget]) -> list[Budget]:
    """The budgets of a node, in name order: all that select it, else those marked as fallback."""
    selecting = [budget for budget in budgets.values() if not budget.fallback and budget.selector.matches(node.labels)]
    fallback = [budget for budget in budgets.values() if budget.fallback and budget.selector.matches(node.labels)]
    return sorted(selecting or fallback, key=lambda budget: budget.name)


def entries(ledgers: Iterable[Budget]) -> dict[str, frozenset[str]]:
    """The uids of the cases that hold each node, by the name of the node."""
    cases: dict[str, frozenset[str]] = {}
    for claim in (claim for ledger in ledgers for claim in ledger.claims):
        cases[claim.node] = cases.get(claim.node, frozenset()) | {claim.case}
    return cases


def with_claims(budget: Budget, claims: Iterable[Claim]) -> Budget:
    """The budget with these entries added, each case once. An entry that is there may become quarantined, for good."""
    current = {claim.case: claim for claim in claims}
    spent = {case for case, claim in current.items() if claim.quarantined}
    kept = (replace(claim, quarantined=True) if claim.case in spent else claim for claim in budget.claims)
    return replace(budget, claims=(*kept, *(claim for claim in current.values() if not budget.holds(claim.case))))


def without_claims(budget: Budget, ended: frozenset[str]) -> Budget:
    """The budget without the entries of these cases."""
    return replace(budget, claims=tuple(claim for claim in budget.claims if claim.case not in ended))
