"""Budgets: how many nodes of a group may be unavailable at once. The ledger in the budget's status enforces it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from remediator.core.node import Node
from remediator.core.selector import Selector

MOST_CLAIMS = 2000
MOST_GROUPS = 64  # that its status shows
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
    operation has taken out for a person. `groups`: the same by group, "" for nodes that lack the label; empty where the
    budget has no groups.
    """

    total: int
    down: frozenset[str]
    kept_out: frozenset[str] = frozenset()
    groups: Mapping[str, "Members"] = field(default_factory=dict)


NOBODY = Members(0, frozenset())


def account(budget: Budget, counted: Members) -> Account:
    """Where a budget stands. Claims count even where the selector left their node."""
    return _account(budget, budget.claims, counted)


def accounts(budget: Budget, counted: Members) -> dict[str, Account]:
    """Where each group of a budget stands; only "" where it has none.

    A claim counts in the group that it was made in, also where the node's label has changed since.
    """
    if not budget.group_by:
        return {"": account(budget, counted)}
    claims: defaultdict[str, list[Claim]] = defaultdict(list)
    for claim in budget.claims:
        claims[claim.group].append(claim)
    groups = counted.groups.keys() | claims.keys()
    return {group: _account(budget, claims.get(group, ()), counted.groups.get(group, NOBODY)) for group in groups}


def _account(budget: Budget, claims: Iterable[Claim], counted: Members) -> Account:
    claimed, waiting = set[str](), set[str]()
    for claim in claims:
        (waiting if claim.quarantined else claimed).add(claim.node)
    return _standing(budget, frozenset(claimed), frozenset(waiting), counted)


def _standing(budget: Budget, claimed: frozenset[str], waiting: frozenset[str], counted: Members) -> Account:
    quarantined = (waiting | counted.kept_out) - claimed
    down = counted.down - quarantined if budget.max_unavailable is not None else counted.down | quarantined
    most, most_quarantined = budget.most(counted.total), budget.most_quarantined(counted.total)
    return Account(counted.total, most, down, claimed, quarantined, most_quarantined)


def counts(budget: Budget, counted: Members) -> Counts:
    """The numbers to show. Of many groups only those are shown that are not whole, the fullest first."""
    whole = account(budget, counted)
    if not budget.group_by:
        return whole.counts
    by_group = accounts(budget, counted)
    ungrouped = by_group.pop("", None)
    room = whole.allowed if budget.limits_all_groups else counted.total
    numbers = [GroupCounts(group, *_numbers(standing, room)) for group, standing in by_group.items()]
    touched = [group for group in numbers if group.unavailable or group.quarantined]
    every = [*by_group.values(), ungrouped] if ungrouped else by_group.values()
    return Counts(
        counted.total,
        sum(len(standing.unavailable) for standing in every),
        min(room, sum(group.allowed for group in numbers)),
        sum(len(standing.quarantined) for standing in every),
        len(numbers),
        _full(budget, whole, by_group, numbers),
        ungrouped.total if ungrouped else 0,
        tuple(sorted(touched, key=lambda group: (group.allowed, -group.unavailable, group.group))[:MOST_GROUPS]),
    )


def _numbers(account: Account, room: int) -> tuple[int, int, int, int]:
    return account.total, len(account.unavailable), min(room, account.allowed), len(account.quarantined)


def _full(budget: Budget, whole: Account, by_group: Mapping[str, Account], numbers: Iterable[GroupCounts]) -> int:
    """In how many groups nothing more may start on a node that is up."""
    if budget.max_quarantined.percent and whole.full_of_quarantine:
        return len(by_group)
    return sum(not group.allowed or by_group[group.group].full_of_quarantine for group in numbers)


def limits(budget: Budget, counted: Members) -> tuple[int, int]:
    """How many nodes may be unavailable, and be quarantined, in all groups together. Without a label nothing starts."""
    whole = account(budget, counted)
    if not budget.group_by:
        return whole.most, whole.most_quarantined
    known = [standing for group, standing in accounts(budget, counted).items() if group]
    most = sum(standing.most for standing in known)
    quarantined = sum(standing.most_quarantined for standing in known)
    return (
        min(most, whole.most) if budget.limits_all_groups else most,
        min(quarantined, whole.most_quarantined) if budget.max_quarantined.percent else quarantined,
    )


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
