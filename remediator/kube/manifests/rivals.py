"""Policies that act on one fault of the same nodes by different ladders, where neither covers the other."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations, product

from remediator.core.covers import covered
from remediator.core.node import Node
from remediator.core.policy import Clause, Policy, When
from remediator.core.selector import may_overlap
from remediator.core.template import Template


def warnings(
    policies: Iterable[Policy],
    others: Iterable[Policy],
    templates: Mapping[str, Template],
    nodes: Collection[Node] | None,
) -> Iterator[str]:
    """A sentence for each pair. `others`: those of the cluster, of which only pairs with `policies` are told."""
    mine = list(policies)
    covers = {name: template.covers for name, template in templates.items()}
    for policy, rival in (*combinations(mine, 2), *product(mine, others)):
        shared = _shared(policy, rival) if policy.mode is rival.mode and _ladder(policy) != _ladder(rival) else ""
        if shared and not _decided(policy, rival, covers) and (where := _where(policy, rival, nodes)):
            yield (
                f"policies {policy.name} and {rival.name} both act on {shared} of {where}, by different ladders, and "
                "one node has one repair at a time: make them one policy, or let their nodeSelector or reasons differ"
            )


def _ladder(policy: Policy) -> tuple[str, ...]:
    return tuple(rung.operation for rung in policy.ladder)


def _shared(policy: Policy, rival: Policy) -> str:
    """The condition that both act on; "" where no single one is."""
    both = (left.clauses[0] for left in policy.when for right in rival.when if _meet(left, right))
    return next((clause.condition for clause in both), "")


def _meet(left: When, right: When) -> bool:
    """Whether each clause of one has its like in the other: where one asks for more, it is meant as the exception."""
    pairs = zip(_ordered(left), _ordered(right), strict=False)
    return len(left.clauses) == len(right.clauses) and all(_alike(*pair) for pair in pairs)


def _ordered(when: When) -> list[Clause]:
    return sorted(when.clauses, key=lambda clause: clause.condition)


def _alike(left: Clause, right: Clause) -> bool:
    same = (left.condition, left.status) == (right.condition, right.status)
    return same and not (left.reasons and right.reasons and left.reasons.isdisjoint(right.reasons))


def _decided(policy: Policy, rival: Policy, covers: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether the first operation of one covers that of the other, which then gives way."""
    first, second = _ladder(policy)[:1], _ladder(rival)[:1]
    return bool(covered(covers, first) & set(second) or covered(covers, second) & set(first))


def _where(policy: Policy, rival: Policy, nodes: Collection[Node] | None) -> str:
    """Which nodes both select; "" for none."""
    if nodes is None:
        return "the same nodes" if may_overlap(policy.selector, rival.selector) else ""
    count = sum(policy.selects(node) and rival.selects(node) for node in nodes)
    return f"{count} nodes" if count > 1 else "1 node" if count else ""
