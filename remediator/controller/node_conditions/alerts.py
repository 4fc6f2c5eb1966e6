"""The Conditions Alert/NAME: whether an alert that a policy asks about fires, for policies like any other one."""

import asyncio
from collections.abc import Iterator, Mapping
from datetime import datetime

from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.controller.node_conditions.write import write
from remediator.controller.perform import Performer
from remediator.core.alerts import AlertState, asked, condition_of, node_names, own_condition
from remediator.core.node import Node
from remediator.kube.runtime.leader import LeaderQueue
from remediator.prometheus.alerts import QUIET, Alertmanagers, Firing, together

AT_ONCE = 4  # writes
EVERY = 30.0  # seconds between two looks
ASK = ""  # the key of the look itself; all others are names of nodes
Pair = tuple[str, str]  # a node and the type of a Condition


class AlertConditions:
    """Keeps the Conditions of the nodes that a policy asks about. Only who leads asks and writes.

    While nobody can tell what fires nothing is written: heartbeats grow old, and then prove nothing.
    """

    def __init__(self, alertmanagers: Alertmanagers, cache: ClusterCache, performer: Performer, clock: Clock) -> None:
        self._alertmanagers, self._cache, self._performer, self._clock = alertmanagers, cache, performer, clock
        self._firing: Mapping[Pair, bool] = {}  # whether it is active
        self._missing: Mapping[Pair, datetime] = {}
        self.queue: LeaderQueue[str] = LeaderQueue(
            "alert conditions", self._pass, lambda: [ASK], workers=AT_ONCE, essential=False, ended=self._forget
        )

    def _forget(self) -> None:
        self._firing, self._missing = {}, {}

    async def _pass(self, name: str) -> float | None:
        if name == ASK:
            await self._look()
            return EVERY
        if node := self._cache.nodes.get(name):
            await self._write(node)
        return None

    async def _look(self) -> None:
        """Ask what fires, where a policy wants to know, and have it written on the nodes."""
        now, types = self._clock.now(), frozenset().union(*map(asked, self._cache.policies))
        if not types:
            self._forget()
            return
        listings = await self._alertmanagers.listings()
        firing = await asyncio.to_thread(together, listings, self._alertmanagers.watchdog)
        self._firing = self._by_node(firing, types)
        known = {(node.name, type) for node in self._cache.nodes for type in types if type in node.conditions}
        missing = known - self._firing.keys() if firing.whole else ()
        self._missing = {pair: self._missing.get(pair, now) for pair in missing}
        self.queue.add(*{name for name, _ in (*self._firing, *self._missing)})

    def _by_node(self, firing: Firing, types: frozenset[str]) -> Mapping[Pair, bool]:
        pairs: dict[Pair, bool] = {}
        for alert in firing.alerts.values():
            type = condition_of(alert.labels.get("alertname", ""))
            name = next(filter(self._cache.nodes.get, node_names(alert.labels)), "") if type in types else ""
            if name:
                pairs[name, type] = pairs.get((name, type), False) or alert.active
        return pairs

    async def _write(self, node: Node) -> None:
        now = self._clock.now()
        has_case = self._cache.has_open_case(node.name)
        for type in self._wanted(node):
            words = own_condition(type, self._state((node.name, type), now), node.conditions.get(type), has_case)
            if words is not None:
                await write(self._performer, self._cache, node, words, now)

    def _wanted(self, node: Node) -> Iterator[str]:
        types = (asked(policy) for policy in self._cache.policies if policy.selects(node))
        yield from sorted(frozenset().union(*types))

    def _state(self, pair: Pair, now: datetime) -> AlertState:
        active = self._firing.get(pair)
        if active is not None:
            return AlertState.ACTIVE if active else AlertState.SUPPRESSED
        since = self._missing.get(pair)
        return AlertState.ABSENT if since is not None and now - since >= QUIET else AlertState.UNKNOWN
