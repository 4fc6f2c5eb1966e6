"""Events about a node as evidence: a reason that repeats becomes a Condition, and silence ends it. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from remediator.core.clocks import AHEAD
from remediator.core.node import Node, NodeCondition, Status
from remediator.core.own_condition import OwnCondition
from remediator.core.policy import Policy
from remediator.core.writers import EVENT, ever_counted

PREFIX = EVENT
# What a rule may ask for. client-go sends one Event in 5 minutes about a node, once it has sent 25: a silence that is
# not longer may be no end of the fault. API servers keep Events for an hour.
SHORTEST, LONGEST, MOST_COUNT = timedelta(minutes=10), timedelta(hours=1), 100
_RULE = re.compile(r"Event/([A-Za-z][A-Za-z0-9_-]*)/([1-9][0-9]{0,2})-in-([1-9][0-9]{0,3})s", re.ASCII)
MOST = 256  # sightings that are kept of one reason on one node
REPEATS, QUIET = "Repeats", "Quiet"  # the reasons of such a Condition


@dataclass(frozen=True, slots=True)
class EventRule:
    """So many Events with this reason about one node, within this time."""

    reason: str
    count: int
    within: timedelta

    @property
    def condition(self) -> str:
        """The type of the Condition that says whether they repeat.

        >>> EventRule("TaskHung", 3, timedelta(minutes=10)).condition
        'Event/TaskHung/3-in-600s'
        """
        return f"{PREFIX}{self.reason}/{self.count}-in-{self.within.total_seconds():.0f}s"


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """One Event: what it is about, and how often it has happened. Whoever writes it counts up, or makes another one."""

    node: str
    count: int
    first: datetime
    last: datetime
    uid: str = ""
    version: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Sighting:
    """So many occurrences, none of them earlier than this."""

    at: datetime
    count: int


def of_condition(type: str) -> EventRule:
    """The inverse of `EventRule.condition`. Raises ValueError for what is none."""
    rule = _rule(type)
    if rule is None:
        raise ValueError(f"{type} is no Condition of Events")
    return rule


def _rule(type: str) -> EventRule | None:
    """None for what no policy can ask for by `event`: of no Events at all anybody would have enough."""
    match = _RULE.fullmatch(type)
    rule = EventRule(match[1], int(match[2]), timedelta(seconds=int(match[3]))) if match else None
    return rule if rule and rule.count <= MOST_COUNT and SHORTEST <= rule.within <= LONGEST else None


def asked(policy: Policy) -> Iterator[str]:
    """The types of the Conditions of all Events that a policy asks about; one that a user made up is none of them."""
    types = (clause.condition for when in policy.when for clause in when.clauses)
    return (type for type in types if type.startswith(PREFIX) and _rule(type))


def sightings(old: NodeEvent | None, new: NodeEvent) -> tuple[Sighting, ...]:
    """What an Event tells that was not known. Its last occurrence has a time; of those before it only the earliest time
    is known at which they can have been, and that counts: nothing starts by an occurrence that may be an old one. `old`
    is the `furthest` that the Event has been.
    """
    known = old if old is not None and _same(old, new) else None
    more = new.count - (known.count if known else 0)
    if more <= 0:
        return ()
    last, earlier = Sighting(new.last, 1), min(known.last, new.last) if known else new.first
    return (Sighting(earlier, more - 1), last) if more > 1 else (last,)


def furthest(old: NodeEvent | None, new: NodeEvent) -> NodeEvent:
    """All that an Event has told. Its count or its time may go back, by a second writer or a clock that is set: what
    was counted is not counted again.
    """
    if old is None or not _same(old, new):
        return new
    return replace(new, count=max(old.count, new.count), last=max(old.last, new.last))


def _same(old: NodeEvent, new: NodeEvent) -> bool:
    """Whether it goes on. One that was deleted and made again does not, nor one that begins anew after its last."""
    return old.uid == new.uid and (new.count >= old.count or new.first <= old.last)


def of_machine(known: Iterable[Sighting], node: Node) -> tuple[Sighting, ...]:
    """Those of this machine: Events name a node, and what was before the Node was made is of another one."""
    return tuple(seen for seen in known if node.created is None or seen.at >= node.created)


def kept(known: Iterable[Sighting], now: datetime) -> tuple[Sighting, ...]:
    """The youngest that may still count, oldest first; of times that clocks cannot have, none does."""
    return tuple(sorted((seen for seen in known if -AHEAD <= now - seen.at <= LONGEST), key=_at)[-MOST:])


def _at(seen: Sighting) -> datetime:
    return seen.at


def number(known: Iterable[Sighting], within: timedelta, now: datetime) -> int:
    """How many occurrences are proven within this time."""
    return sum(seen.count for seen in known if now - seen.at <= within)


def own_condition(
    type: str, known: Iterable[Sighting], conditions: Mapping[str, NodeCondition], has_case: bool, now: datetime
) -> OwnCondition | None:
    """What is to be said of a rule on a node; None for nothing: of a case fewer than its count change nothing.

    Where nothing was ever said nobody is told that nothing happens.
    """
    rule, before = of_condition(type), conditions.get(type)
    seen, minutes = number(known, rule.within, now), f"{rule.within.total_seconds() / 60:g} min"
    holds = before is not None and before.status is Status.TRUE
    if seen >= rule.count or (seen and holds):
        text = f"{rule.count} or more Events {rule.reason} within {minutes}, and no {minutes} without one since"
        return OwnCondition(type, Status.TRUE, REPEATS, text)
    if not ever_counted(type, conditions) or (seen and has_case):
        return None
    few = f"fewer than {rule.count} Events" if seen else "no Event"
    return OwnCondition(type, Status.FALSE, QUIET, f"{few} {rule.reason} within {minutes}")
