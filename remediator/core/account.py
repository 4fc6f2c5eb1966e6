"""Where a budget stands over the nodes that it selects: how many are unavailable, and how many more may become so."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from remediator.core.budget import Budget, Claim, Counts, GroupCounts

MOST_GROUPS = 64  # that the status of a budget shows


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
