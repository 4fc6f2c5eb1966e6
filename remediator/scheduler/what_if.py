"""Whether so many Pods of one shape would find nodes now, and what the next one lacks. Pure.

How many fit does not depend on the order of the nodes, since all Pods ask for the same. The order is that of packing
within the verdict: kube-scheduler, with other plugins and weights, may take other nodes. Cards shared by memory are
given as the binder gives them.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from remediator.scheduler.reasons import VerdictReason
from remediator.scheduler.row import NodeState
from remediator.scheduler.shared.cards import choose
from remediator.scheduler.verdict import Shape, verdict
from remediator.scheduler.why import NodeClass, classes

_BEST_FIRST = {reason: place for place, reason in enumerate(VerdictReason)}


class NodePlacement(NamedTuple):
    """How many of the Pods go to one node, and what is said of it."""

    node: str
    reason: VerdictReason
    pods: int


class WhatIf(NamedTuple):
    """Where Pods would go, and the classes of nodes that the next one would meet."""

    placed: list[NodePlacement]
    next_one: list[NodeClass]

    @property
    def pods(self) -> int:
        """How many find a node."""
        return sum(place.pods for place in self.placed)


def what_if(
    rows: Mapping[str, NodeState], cordoned: Collection[str], shape: Shape, replicas: int, only_scores: bool
) -> WhatIf:
    """Place up to `replicas` Pods of a shape with GPUs, whole or by memory. `cordoned`: by a user."""
    now, placed = dict(rows), list[NodePlacement]()
    fitting = [name for each in classes(rows, cordoned, shape, only_scores) if each.fits for name in each.nodes]
    reasons = {name: verdict(rows[name], shape, only_scores) for name in fitting}
    for name in sorted(fitting, key=lambda name: (_BEST_FIRST[reasons[name]], _left(rows[name], shape), name)):
        count, now[name] = filled(now[name], shape, replicas - sum(place.pods for place in placed))
        if count:
            placed.append(NodePlacement(name, reasons[name], count))
    return WhatIf(placed, classes(now, cordoned, shape, only_scores))


def _left(row: NodeState, shape: Shape) -> int:
    """What is free on a node of what the Pods ask for."""
    if shape.memory.memory and row.cards is not None:
        return sum(room for _, room in row.cards.free)
    return sum(row.free().values())


def filled(row: NodeState, shape: Shape, most: int) -> tuple[int, NodeState]:
    """How many of so many Pods of the shape a node takes, and the node with them."""
    if shape.memory.memory:
        return _with_shares(row, shape, most)
    count = min(room(row, shape), most)
    return count, _taken(row, shape, count)


def room(row: NodeState, shape: Shape) -> int:
    """How many Pods of the shape find GPUs on a node that lists them all.

    >>> room(NodeState(VerdictReason.FIT, (("gpu", 8),), (("gpu", 1),)), Shape((("gpu", 2),)))
    3
    """
    return min((max(0, total - used) // asked for total, used, asked in row.of(shape.gpus) if asked), default=0)


def _taken(row: NodeState, shape: Shape, pods: int) -> NodeState:
    used = dict(row.used)
    for name, count in shape.gpus:
        used[name] = used.get(name, 0) + count * pods
    return row._replace(used=tuple(sorted(used.items())))


def _with_shares(row: NodeState, shape: Shape, most: int) -> tuple[int, NodeState]:
    """The same of Pods that ask for memory of cards: each gets those that the binder would give it."""
    cards, count = row.cards, 0
    while cards is not None and count < most and (shares := choose(cards.free, shape.memory)) is not None:
        cards, count = cards.without(shares), count + 1
    return count, row._replace(cards=cards)
