"""Budgets: how many nodes of a group may be unavailable at once. The ledger in the budget's status enforces it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from remediator.core.node import Node
from remediator.core.policy import NEVER_FAILED, FailureBreaker
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
    """One entry of a ledger: this case holds this node. `quarantined`: its ladder is spent, and a user must look.

    `group` is that of the node when it was claimed, and stays so; "" where the budget has no groups, or nobody knows.
    """

    node: str
    case: str
    since: datetime
    quarantined: bool = False
    group: str = ""


@dataclass(frozen=True, slots=True)
class BreakerRule:
    """When nothing more starts on the nodes of a budget: after so many starts in the window, or in vain."""

    starts: int | None = None
    percent: int | None = None  # of the nodes
    window: timedelta = timedelta(minutes=10)
    of: int = 8
    most: int | None = None  # of the last `of` attempts were in vain; None: no matter how many

    @property
    def by_rate(self) -> bool:
        """Whether it counts starts."""
        return self.starts is not None or self.percent is not None


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """The numbers that a budget's status shows of one group."""

    group: str
    total: int
    unavailable: int
    allowed: int
    quarantined: int


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of nodes that a budget's status shows."""

    total: int
    unavailable: int
    allowed: int
    quarantined: int = 0
    group_total: int = 0
    groups_full: int = 0  # groups in which no more node may become unavailable, or too many are quarantined
    ungrouped: int = 0  # nodes without the label that the groups go by
    groups: tuple[GroupCounts, ...] = ()  # the fullest of those that are not whole


@dataclass(frozen=True, slots=True)
class Budget:
    """One budget as last read. `adopted` is false until it has taken over the claims that stood.

    With `group_by`, the key of a node label, it is one budget for each of the label's values; `grouped_by` is the key
    that the groups of its claims go by.
    """

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
    group_by: str = ""
    grouped_by: str = ""
    breaker: BreakerRule | None = None
    failing: FailureBreaker = NEVER_FAILED  # what its status says
    closed_at: datetime | None = None  # when a user closed the breaker on failures last

    def group(self, node: Node) -> str:
        """The group of a node; "" where the budget has none, or the node lacks the label or its value is empty."""
        return node.labels.get(self.group_by, "") if self.group_by else ""

    @property
    def limits_all_groups(self) -> bool:
        """Whether maxUnavailable holds for all groups together, too: a percentage, rounded up to one in each group."""
        return bool(self.group_by and self.max_unavailable and self.max_unavailable.percent)

    @property
    def cases(self) -> frozenset[str]:
        """The uids of the cases that have an entry."""
        return frozenset(claim.case for claim in self.claims)

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


def with_claims(budget: Budget, claims: Iterable[Claim]) -> Budget:
    """The budget with these entries added, each case once. An entry that is there may become quarantined, for good."""
    current = {claim.case: claim for claim in claims}
    if not current:
        return budget
    spent, held = {case for case, claim in current.items() if claim.quarantined}, budget.cases
    kept = (replace(claim, quarantined=True) if claim.case in spent else claim for claim in budget.claims)
    return replace(budget, claims=(*kept, *(claim for claim in current.values() if claim.case not in held)))


def without_claims(budget: Budget, ended: frozenset[str]) -> Budget:
    """The budget without the entries of these cases."""
    if ended.isdisjoint(claim.case for claim in budget.claims):
        return budget
    return replace(budget, claims=tuple(claim for claim in budget.claims if claim.case not in ended))


def regrouped(budget: Budget, groups: Mapping[str, str]) -> Budget:
    """The budget with its claims in the groups of their nodes now, by name: only after `group_by` was changed."""
    if budget.grouped_by == budget.group_by:
        return budget
    claims = (replace(claim, group=groups.get(claim.node, "")) for claim in budget.claims)
    return replace(budget, claims=tuple(claims), grouped_by=budget.group_by)
