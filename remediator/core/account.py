"""Where a budget stands over the nodes that it selects: how many are unavailable, and how many more may become so."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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


def claims_by_group(budget: Budget) -> Mapping[str, Sequence[Claim]]:
    """Its claims by the group that each was made in, also where the node's label has changed since."""
    claims: defaultdict[str, list[Claim]] = defaultdict(list)
    for claim in budget.claims:
        claims[claim.group if budget.group_by else ""].append(claim)
    return claims


def account_of_group(
    budget: Budget, counted: Members, group: str, claims: Mapping[str, Sequence[Claim]]
) -> Account | None:
    """Where one group of a budget stands; None where it has neither node nor claim. `claims`: see claims_by_group."""
    if not budget.group_by:
        return account(budget, counted)
    members, held = counted.groups.get(group), claims.get(group, ())
    return _account(budget, held, members or NOBODY) if members or held else None


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


class _Groups:
    """Where the groups of a budget stand, those of the label's values.

    Hardly any of many groups has a claim or a node that is not at work: all others of one size stand alike.

    Attributes:
        named: Where each stands that has one, by its name.
        alike: Where the others stand, and how many there are of each size.
        ungrouped: Where the nodes without the label stand.
    """

    def __init__(self, budget: Budget, counted: Members) -> None:
        claims, alike = claims_by_group(budget), Counter[int]()
        self.named = {group: _account(budget, claims[group], NOBODY) for group in claims.keys() - counted.groups.keys()}
        for group, members in counted.groups.items():
            if group in claims or members.down:
                self.named[group] = _account(budget, claims.get(group, ()), members)
            elif group:
                alike[members.total] += 1
        self.ungrouped = self.named.pop("", _account(budget, (), counted.groups.get("", NOBODY)))
        self.alike = [(_account(budget, (), Members(size, frozenset())), number) for size, number in alike.items()]

    def __iter__(self) -> Iterator[tuple[Account, int]]:
        """Where groups stand, and how many stand so."""
        yield from ((standing, 1) for standing in self.named.values())
        yield from self.alike

    def sum(self, of: Callable[[Account], int]) -> int:
        """A number of all groups together."""
        return sum(of(standing) * number for standing, number in self)


def counts(budget: Budget, counted: Members) -> Counts:
    """The numbers to show. Of many groups only those are shown that are not whole, the fullest first."""
    whole = account(budget, counted)
    if not budget.group_by:
        return whole.counts
    groups = _Groups(budget, counted)
    room = whole.allowed if budget.limits_all_groups else counted.total
    numbers = [GroupCounts(group, *_numbers(standing, room)) for group, standing in groups.named.items()]
    touched = [group for group in numbers if group.unavailable or group.quarantined]
    total = groups.sum(lambda standing: 1)
    return Counts(
        counted.total,
        groups.sum(lambda standing: len(standing.unavailable)) + len(groups.ungrouped.unavailable),
        min(room, groups.sum(lambda standing: min(room, standing.allowed))),
        groups.sum(lambda standing: len(standing.quarantined)) + len(groups.ungrouped.quarantined),
        total,
        total if _all_full(budget, whole) else groups.sum(lambda standing: _full(standing, room)),
        groups.ungrouped.total,
        tuple(sorted(touched, key=lambda group: (group.allowed, -group.unavailable, group.group))[:MOST_GROUPS]),
    )


def _numbers(account: Account, room: int) -> tuple[int, int, int, int]:
    return account.total, len(account.unavailable), min(room, account.allowed), len(account.quarantined)


def _all_full(budget: Budget, whole: Account) -> bool:
    """Whether nothing more may start in any group, for the nodes in quarantine of all."""
    return budget.max_quarantined.percent and whole.full_of_quarantine


def _full(standing: Account, room: int) -> bool:
    """Whether nothing more may start on a node of a group that is up."""
    return not min(room, standing.allowed) or standing.full_of_quarantine


def limits(budget: Budget, counted: Members) -> tuple[int, int]:
    """How many nodes may be unavailable, and be quarantined, in all groups together. Without a label nothing starts."""
    whole = account(budget, counted)
    if not budget.group_by:
        return whole.most, whole.most_quarantined
    groups = _Groups(budget, counted)
    most, quarantined = groups.sum(lambda group: group.most), groups.sum(lambda group: group.most_quarantined)
    return (
        min(most, whole.most) if budget.limits_all_groups else most,
        min(quarantined, whole.most_quarantined) if budget.max_quarantined.percent else quarantined,
    )
