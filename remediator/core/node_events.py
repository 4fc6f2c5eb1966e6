"""Events about a node as evidence: a reason that repeats becomes a Condition, and silence ends it. Pure."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from remediator.core.node import NodeCondition, Status
from remediator.core.own_condition import OwnCondition
from remediator.core.policy import Policy
from remediator.core.trust import AHEAD
from remediator.core.writers import EVENT

PREFIX = EVENT
LONGEST = timedelta(hours=1)  # as long as API servers keep Events
_RULE = re.compile(r"Event/([A-Za-z][A-Za-z0-9_-]*)/([0-9]{1,3})-in-([0-9]{1,4})s", re.ASCII)
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
    version: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Sighting:
    """So many occurrences, none of them earlier than this."""

    at: datetime
    count: int


def of_condition(type: str) -> EventRule:
    """The inverse of `EventRule.condition`. Raises ValueError for what is none."""
    match = _RULE.fullmatch(type)
    if match is None:
        raise ValueError(f"{type} is no Condition of Events")
    return EventRule(match[1], int(match[2]), timedelta(seconds=int(match[3])))


def asked(policy: Policy) -> Iterator[str]:
    """The types of the Conditions of all Events that a policy asks about; one that a user made up is none of them."""
    types = (clause.condition for when in policy.when for clause in when.clauses)
    return (type for type in types if type.startswith(PREFIX) and _RULE.fullmatch(type))


def sightings(old: NodeEvent | None, new: NodeEvent) -> tuple[Sighting, ...]:
    """What an Event tells that was not known. Its last occurrence has a time; of those before it only the earliest time
    is known at which they can have been, and that counts: nothing starts by an occurrence that may be an old one.
    """
    known = old if old is not None and old.count <= new.count and old.last <= new.last else None
    more = new.count - (known.count if known else 0)
    if more <= 0:
        return ()
    last, earlier = Sighting(new.last, 1), known.last if known else new.first
    return (Sighting(earlier, more - 1), last) if more > 1 else (last,)


def kept(known: Iterable[Sighting], now: datetime) -> tuple[Sighting, ...]:
    """The youngest that may still count, oldest first; of times that clocks cannot have, none does."""
    return tuple(sorted((seen for seen in known if -AHEAD <= now - seen.at <= LONGEST), key=_at)[-MOST:])


def _at(seen: Sighting) -> datetime:
    return seen.at


def number(known: Iterable[Sighting], within: timedelta, now: datetime) -> int:
    """How many occurrences are proven within this time."""
    return sum(seen.count for seen in known if now - seen.at <= within)


def own_condition(
    type: str, known: Iterable[Sighting], before: NodeCondition | None, now: datetime
) -> OwnCondition | None:
    """What is to be said of a rule on a node; None for nothing: fewer than its count change nothing.

    Where nothing was ever said nobody is told that nothing happens.
    """
    rule = of_condition(type)
    seen, minutes = number(known, rule.within, now), f"{rule.within.total_seconds() / 60:g} min"
    holds = before is not None and before.status is Status.TRUE
    if seen >= rule.count or (seen and holds):
        text = f"{rule.count} or more Events {rule.reason} within {minutes}, and no {minutes} without one since"
        return OwnCondition(type, Status.TRUE, REPEATS, text)
    if seen or before is None:
        return None
    return OwnCondition(type, Status.FALSE, QUIET, f"no Event {rule.reason} within {minutes}")
