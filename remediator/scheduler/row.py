"""The row of one node: all that a verdict depends on in it, and what its change means for Pods that were refused."""

from typing import NamedTuple

from remediator.core.node import Gpus
from remediator.scheduler.attributes.catalog import NO_FACTS, NodeAttributes
from remediator.scheduler.mps import Mps
from remediator.scheduler.reasons import HISTORY, UNRESOLVABLE, WELL, VerdictReason
from remediator.scheduler.shared.cards import Cards


class NodeState(NamedTuple):
    """One node: what is so of its health, how many GPUs it has, how many of them Pods hold, and what labels say.

    `history`: how often it has failed lately, 0 to 3.
    `cpu`: what is free, in thousandths of a core, of a node with GPUs; in steps, so that nodes share rows.
    """

    health: VerdictReason
    total: Gpus = ()
    used: Gpus = ()
    facts: NodeAttributes = NO_FACTS
    history: int = 0
    cpu: int = 0
    cards: Cards | None = None  # that Pods share by memory; None where it has none, or where that is off
    mps: Mps | None = None  # what it offers of MPS; None for nothing

    @property
    def standing(self) -> VerdictReason:
        """What is so of its health, with the failures of a node that is well."""
        return HISTORY[self.history] if self.history and self.health in WELL else self.health

    def of(self, gpus: Gpus) -> list[tuple[int, int, int]]:
        """(total, used, asked) of each resource that is asked for and that the node lists."""
        total, used = dict(self.total), dict(self.used)
        return [(total[name], used.get(name, 0), count) for name, count in gpus if name in total]

    def free(self) -> dict[str, int]:
        """The GPUs that nobody holds, by resource."""
        used = dict(self.used)
        return {name: total - used.get(name, 0) for name, total in self.total}


def schedulable_again(old: NodeState, new: NodeState) -> bool:
    """Whether some Pod that the old row refused may be let through by the new one."""
    if new.health in UNRESOLVABLE:
        return False
    if old.health in UNRESOLVABLE or old.facts is not new.facts:
        return True
    if old.cards != new.cards and _more_room(old.cards, new.cards):
        return True
    if old.mps is not new.mps and new.mps is Mps.USABLE:
        return True
    return any(free > old.free().get(name, 0) for name, free in new.free().items())


def _more_room(old: Cards | None, new: Cards | None) -> bool:
    """Whether a card has more room, or a reason to give none is gone."""
    if old is None or new is None or old.reason is not new.reason:
        return True
    before = dict(old.free)
    return any(room > before.get(card, 0) for card, room in new.free)


def proven_again(old: NodeState, new: NodeState) -> bool:
    """Whether a Pod that requires proven health may be let through by the new row, and was not by the old one."""
    return old.health not in WELL and new.health in WELL


STRANGER = NodeState(VerdictReason.UNKNOWN_NODE)
