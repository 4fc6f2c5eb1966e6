"""What is free on a node, and what a Pod takes of it: CPU in thousandths of a core, each card in thousandths."""

from bisect import bisect_left
from typing import NamedTuple

from remediator.scheduler.attributes.catalog import NO_FACTS, NodeAttributes
from remediator.scheduler.attributes.requirement import Met
from remediator.scheduler.attributes.selector import ANYTHING, AttributeSelector

CARD = 1000
CORE = 1000
CPU_STEP = 100  # in which the free CPU of nodes is known: whole cores would cost some GPUs, finer steps tell more apart


class NodeRoom(NamedTuple):
    """The free part of a node, for the cards of one resource. `rests`: of each card that is not full, ascending."""

    cpu: int
    rests: tuple[int, ...]
    cards: int  # that it has, full ones too
    resource: str = ""
    facts: NodeAttributes = NO_FACTS

    @property
    def rounded(self) -> "NodeRoom":
        """With CPU in steps: more is not known of nodes, so that many are alike."""
        return self._replace(cpu=self.cpu // CPU_STEP * CPU_STEP)

    @property
    def rest(self) -> int:
        """What is free of all cards together."""
        return sum(self.rests)

    def holds(self, task: "Task") -> bool:
        """Whether the task fits: CPU, cards and their attributes."""
        return self.cpu >= task.cpu and (not task.cards or (self.room(task) and task.takes(self.resource, self.facts)))

    def room(self, task: "Task") -> bool:
        """Whether enough cards have enough left."""
        return len(self.rests) - bisect_left(self.rests, task.milli) >= task.cards


class Task(NamedTuple):
    """What Pods of one kind ask for: so many cards of a resource, and so much of each."""

    cpu: int
    cards: int = 0
    milli: int = CARD  # of each card; less than the whole one only where `cards` is 1
    resource: str = ""
    attributes: AttributeSelector = ANYTHING

    def takes(self, resource: str, facts: NodeAttributes) -> bool:
        """Whether cards of this resource will do; those that nobody knows will not."""
        if resource != self.resource:
            return False
        return self.attributes is ANYTHING or self.attributes.met(facts, (resource,)) is Met.YES


def placed(room: NodeRoom, task: Task) -> list[NodeRoom]:
    """What is left once the task is there: one way for each different card that it may share; none where it is full.

    CPU may fall below 0: who asks about a node has found room for the Pod there, by counts that are newer than ours.
    """
    cpu, rests = room.cpu - task.cpu, room.rests
    if not task.cards:
        return [NodeRoom(cpu, rests, room.cards, room.resource, room.facts)]
    first = bisect_left(rests, task.milli)
    if len(rests) - first < task.cards:
        return []
    if task.milli == CARD:
        return [NodeRoom(cpu, rests[: len(rests) - task.cards], room.cards, room.resource, room.facts)]
    ways = dict.fromkeys(rests[first:])
    return [room._replace(cpu=cpu, rests=_less(rests, rest, task.milli)) for rest in ways]


def _less(rests: tuple[int, ...], rest: int, milli: int) -> tuple[int, ...]:
    """With one card of this rest less free by so much."""
    at = bisect_left(rests, rest)
    others = rests[:at] + rests[at + 1 :]
    if rest == milli:
        return others
    at = bisect_left(others, rest - milli)
    return (*others[:at], rest - milli, *others[at:])
