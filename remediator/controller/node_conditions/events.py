"""The Conditions Event/RULE: whether Events about a node repeat, for policies on what no detector says otherwise."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

import structlog

from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.controller.node_conditions.write import write
from remediator.controller.perform import Performer
from remediator.core.node import Node
from remediator.core.node_events import (
    NodeEvent,
    Sighting,
    asked,
    furthest,
    kept,
    of_condition,
    of_machine,
    own_condition,
    sightings,
)
from remediator.core.policy import Policy
from remediator.core.writers import ever_counted
from remediator.kube.informers import Informers
from remediator.kube.runtime.informer import Informer
from remediator.kube.runtime.leader import LeaderQueue

AT_ONCE = 4  # writes
SILENT = 5.0  # seconds until a watch that says nothing is asked about again
LOOK = 30.0  # seconds between two looks at a node of which Events are known
MOST = 50_000  # Events of one watch: beyond that somebody floods it, and none of them is evidence
AGAIN = timedelta(minutes=10)  # until such a watch is tried again: API servers drop Events after an hour
log = structlog.get_logger(__name__)
ASK = ""  # the key of the look at what policies name; all others are names of nodes


class WatchedEvents:
    """The Events with one reason, and when each node had one lately. `on_event` is called with the name of the node.

    That is kept in memory alone: of what was before, the next leader knows what the Events themselves still say. An
    Event about no node, or from before there was this Node, is nothing. Of more than MOST Events none counts:
    `flooded`, and it ends.
    """

    def __init__(
        self,
        events: Informer[NodeEvent],
        clock: Clock,
        node: Callable[[str], Node | None],
        on_event: Callable[[str], None],
    ) -> None:
        self._events, self._clock, self._node, self._on_event = events, clock, node, on_event
        self.flooded = False
        self.task = asyncio.create_task(events.run())
        self._seen: defaultdict[str, tuple[Sighting, ...]] = defaultdict(tuple)
        self._furthest: dict[str, NodeEvent] = {}  # by the name of the Event
        events.on_change(lambda event, _, new: self._moved(event, new))

    def believed(self) -> bool:
        """Whether what it knows is all that there is."""
        return not self.flooded and self._events.fresh()

    def nodes(self) -> tuple[str, ...]:
        """The nodes that had one lately; all others are forgotten."""
        return tuple(node for node in tuple(self._seen) if self.of(node))

    def of(self, name: str) -> tuple[Sighting, ...]:
        """When a node had one; what is too old to count, or of a machine before it, is forgotten."""
        node = self._node(name)
        seen = of_machine(kept(self._seen.get(name, ()), self._clock.now()), node) if node else ()
        if seen:
            self._seen[name] = seen
        else:
            self._seen.pop(name, None)
        return seen

    def _moved(self, event: str, new: NodeEvent | None) -> None:
        if not self.flooded and len(self._events) > MOST:
            self._give_up()
        if self.flooded:
            return
        old = self._furthest.pop(event, None)
        if new is not None:
            self._furthest[event] = furthest(old, new)
            self._note(old, new)

    def _note(self, old: NodeEvent | None, new: NodeEvent) -> None:
        if self._node(new.node) is not None:
            self._seen[new.node] = kept((*self._seen[new.node], *sightings(old, new)), self._clock.now())
            self._on_event(new.node)

    def _give_up(self) -> None:
        self.flooded = True
        self._seen.clear()
        self._furthest.clear()
        self.task.cancel()


class EventConditions:
    """Keeps the Conditions of the nodes that a policy asks about. Only who leads watches and writes.

    While a watch is silent nothing is written: heartbeats grow old, and then prove nothing.
    """

    def __init__(self, informers: Informers, cache: ClusterCache, performer: Performer, clock: Clock) -> None:
        self._informers, self._cache, self._performer, self._clock = informers, cache, performer, clock
        self._watched: dict[str, WatchedEvents] = {}  # by reason
        self._flooded: dict[str, datetime] = {}  # by reason: when it is tried again
        self.queue: LeaderQueue[str] = LeaderQueue(
            "event conditions", self._pass, self._everything, workers=AT_ONCE, essential=False, ended=self._forget
        )
        cache.policies.on_change(lambda _, old, new: self._asked(old, new))
        cache.cases.on_change(lambda _, old, new: self.queue.add(*(case.node for case in (new or old,) if case)))

    def _everything(self) -> Iterator[str]:
        yield from [ASK] if any(any(asked(policy)) for policy in self._cache.policies) else []

    def _forget(self) -> None:
        for watched in self._watched.values():
            watched.task.cancel()
        self._watched, self._flooded = {}, {}

    def _asked(self, old: Policy | None, new: Policy | None) -> None:
        if any(any(asked(policy)) for policy in (old, new) if policy is not None):
            self.queue.add(ASK)

    async def _pass(self, name: str) -> float | None:
        if name == ASK:
            return self._look()
        node = self._cache.nodes.get(name)
        if node is None or not self._watched:
            return None
        return min([await self._write(node, type) for type in self._wanted(node)], default=None)

    def _look(self) -> float | None:
        """Watch the Events that policies name, and have a look at each node that had one, or is said to have had."""
        types = frozenset[str]().union(*map(asked, self._cache.policies))
        now = self._clock.now()
        self._drop_flooded(now)
        self._follow({of_condition(type).reason for type in types}, now)
        had = {node for watched in self._watched.values() for node in watched.nodes()}
        self.queue.add(*had, *self._said(types))
        return LOOK if types else None

    def _said(self, types: Iterable[str]) -> list[str]:
        """The nodes of which something was said by one of these rules, or by another one on the same Events."""
        names = frozenset[str]().union(*(node.conditions for node in self._cache.nodes))
        ours = {name for name in names if any(ever_counted(type, (name,)) for type in types)}
        return [node.name for node in self._cache.nodes if not ours.isdisjoint(node.conditions)]

    def _drop_flooded(self, now: datetime) -> None:
        for reason in [reason for reason, watched in self._watched.items() if watched.flooded]:
            del self._watched[reason]
            self._flooded[reason] = now + AGAIN
            log.warning(
                "too many Events about nodes have this reason, so none counts: policies on it neither start nor end "
                "anything; find who writes them, and delete them",
                reason=reason,
                more_than=MOST,
                again_in_minutes=AGAIN.total_seconds() / 60,
            )

    def _follow(self, reasons: set[str], now: datetime) -> None:
        for reason in self._watched.keys() - reasons:
            self._watched.pop(reason).task.cancel()
        flooded = {reason for reason, again in self._flooded.items() if now < again}
        for reason in sorted(reasons - self._watched.keys() - flooded):
            events = self._informers.node_events(reason)
            self._watched[reason] = WatchedEvents(events, self._clock, self._cache.nodes.get, self.queue.add)

    def _wanted(self, node: Node) -> list[str]:
        """The rules of the policies that select the node, where it had such an Event or is said to have had."""
        types = {type for policy in self._cache.policies if policy.selects(node) for type in asked(policy)}
        return sorted(type for type in types if ever_counted(type, node.conditions) or self._of(type, node))

    def _of(self, type: str, node: Node) -> tuple[Sighting, ...]:
        watched = self._watched.get(of_condition(type).reason)
        return watched.of(node.name) if watched is not None else ()

    async def _write(self, node: Node, type: str) -> float:
        watched, now = self._watched.get(of_condition(type).reason), self._clock.now()
        if watched is None or not watched.believed():
            return SILENT
        has_case = self._cache.has_open_case(node.name)
        words = own_condition(type, watched.of(node.name), node.conditions, has_case, now)
        return LOOK if words is None else min(LOOK, await write(self._performer, self._cache, node, words, now))
