"""Budgets that can never admit a node, and nodes on which policies act and that no budget selects."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from remediator.core.account import Members
from remediator.core.budget import Amount, Budget
from remediator.core.census import BudgetIndex, snapshot
from remediator.core.node import Node
from remediator.core.policy import Policy

MOST_NAMED = 5  # nodes, or groups, in a sentence
_LESS = "make it so small that one node may become unavailable"


def closed(budgets: Mapping[str, Budget], nodes: Collection[Node] | None, named: Collection[str]) -> Iterator[str]:
    """A sentence for each budget of these names under which nothing can ever start.

    `budgets`: all that there are, for a fallback holds where no other does. `nodes`: those of a cluster; then only
    budgets that select one of them are told. None where only what the budgets say is known.
    """
    members = snapshot(budgets.values(), nodes).members if nodes is not None else None
    for name in named:
        budget, counted = budgets[name], members[name] if members is not None else None
        limit = _closed(budget) if counted is None or counted.total else None
        limit = limit or (_closed_on(budget, counted) if counted is not None else None)
        if limit:
            yield f"budget {name}: {limit.why}, so nothing ever starts there; {limit.remedy}"


class _Limit(NamedTuple):
    why: str
    remedy: str


def _closed(budget: Budget) -> _Limit | None:
    """Why a budget admits nothing, however many nodes it selects; None where it may."""
    most, least, quarantined = budget.max_unavailable, budget.min_available, budget.max_quarantined
    if most is not None and not most.value:
        return _Limit(f"spec.maxUnavailable {_text(most)} lets no node become unavailable", "make it at least 1")
    if least is not None and least.percent and least.value >= 100:
        return _Limit(f"spec.minAvailable {_text(least)} lets no node become unavailable", _LESS)
    if not quarantined.value:
        return _Limit(f"spec.maxQuarantined {_text(quarantined)} is reached without any node", "make it at least 1")
    return None


def _closed_on(budget: Budget, counted: Members) -> _Limit | None:
    """Why it admits nothing on these nodes, or in some of its groups."""
    least = budget.min_available
    if least is None:
        return None
    groups = {group: each.total for group, each in counted.groups.items() if group} or {"": counted.total}
    closed = sorted(group for group, total in groups.items() if total and not budget.most(total))
    if not closed:
        return None
    amount = f"spec.minAvailable {_text(least)}"
    if not budget.group_by:
        return _Limit(f"{amount} of {counted.total} nodes lets none become unavailable", _LESS)
    where = f"in {len(closed)} of {len(groups)} groups of {budget.group_by} ({some(closed)})"
    return _Limit(f"{amount} lets no node become unavailable {where}", _LESS)


def unguarded(policies: Iterable[Policy], budgets: Iterable[Budget], nodes: Iterable[Node]) -> Iterator[str]:
    """A sentence for each policy that acts on nodes that no budget selects: its cases are held there for ever."""
    index = BudgetIndex(budgets)
    free = [node for node in nodes if not index.over(node)]
    for policy in policies:
        chosen = sorted(node.name for node in free if policy.selects(node)) if policy.acts else []
        if chosen:
            where = f"{len(chosen)} of the nodes that it selects ({some(chosen)})"
            yield (
                f"policy {policy.name} is in mode Enforce, and no budget selects {where}: nothing starts there "
                "(BudgetUnready); apply a budget that selects them, or one with fallback: true"
            )


def some(names: Collection[str]) -> str:
    """The first of these names.

    >>> some(["a", "b"]), some([f"n{number}" for number in range(7)])
    ('a, b', 'n0, n1, n2, n3, n4 and 2 more')
    """
    first = ", ".join(list(names)[:MOST_NAMED])
    return f"{first} and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else first


def _text(amount: Amount) -> str:
    return f"{amount.value}{'%' if amount.percent else ''}"
