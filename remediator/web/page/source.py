"""What the page is made of: the caches of the replica, and the Lease, read once for each snapshot."""

import asyncio
import math
from collections.abc import Callable
from datetime import datetime

from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.controller.explain import explain
from remediator.controller.explain_data import explain_data
from remediator.controller.leading import leading
from remediator.controller.status import controller_data
from remediator.core.breaker import Breaker
from remediator.core.case import Case
from remediator.core.case_data import Data, case_data
from remediator.core.past_cases import oldest_first
from remediator.core.running import Leading, Running
from remediator.kube.api import CASE, decode
from remediator.kube.overview import Overview
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.settings import Settings
from remediator.web.page.detail_view import CaseDetail, NodeView, case_detail, case_page_data, gone_node, node_view
from remediator.web.page.fleet_view import FleetFacts
from remediator.web.page.freshness import Freshness, freshness, freshness_data

READS = 4  # cases that are read at once
ANSWER_SECONDS = 3.0  # the page waits no longer for the Lease: it is made without


class PageSource:
    """Reads; writes nothing."""

    def __init__(self, client: Client, cache: ClusterCache, settings: Settings, clock: Clock) -> None:
        self._client, self._cache, self._settings, self._clock = client, cache, settings, clock
        self._leader, self._reads = Leading(), asyncio.Semaphore(READS)
        self._reached, self._answered_at = True, -math.inf

    def on_move(self, moved: Callable[[], None]) -> None:
        """Call it whenever something has changed that the page shows."""
        cache = self._cache
        for informer in (cache.nodes, cache.cases, cache.budgets, cache.policies, cache.pause):
            informer.on_view(lambda *_: moved())

    async def facts(self) -> FleetFacts:
        """Of now. A Lease that cannot be read is as it was: its age shows."""
        cache, now = self._cache, self._clock.now()
        await self._look(now)
        nodes, open_cases = tuple(cache.nodes), tuple(case for case in cache.unfinished if case.open)
        tests = tuple(pod for pod in cache.pods if pod.idle_test)
        fleet = Overview(len(nodes), open_cases, tuple(cache.policies), tuple(cache.budgets), cache.paused, tests)
        where = (self._settings.namespace, self._settings.domains)
        return FleetFacts(fleet, nodes, self._leader, self._running, *where, now, self._fresh(now))

    async def _look(self, now: datetime) -> None:
        """Read who leads: a server that answers is there, whatever it says."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                self._leader = await leading(self._client, self._settings.namespace, now)
            self._reached = True
        except errors.ApiError as failed:
            self._reached = 0 < failed.status < 500
        except (OSError, TimeoutError):
            self._reached = False
        if self._reached:
            self._answered_at = self._clock.monotonic()

    def _fresh(self, now: datetime) -> Freshness:
        """How fresh what is known is: before the first answer as its watches are."""
        silent: dict[str, float] = {}
        for informer in self._cache.informers:
            if not informer.fresh():
                silent[informer.kind] = max(informer.age(), silent.get(informer.kind, 0.0))
        since = self._clock.monotonic() - self._answered_at
        if since == math.inf:
            since = max(informer.age() for informer in self._cache.informers)
        return freshness(now, silent, since, reached=self._reached)

    @property
    def _running(self) -> Running:
        return self._leader.running or Running(self._settings.breaker, self._settings.api_pods_node_selector)

    @property
    def _breaker(self) -> Breaker:
        return self._running.breaker

    def _told(self, now: datetime) -> ClusterCache:
        """Where a replica leads, its words count, as on the command line; where none does, it is decided here."""
        return self._cache.beside_leader(self._leader.absences) if self._leader.leads(now) else self._cache

    def names(self) -> tuple[list[str], list[str]]:
        """Those of nodes and of cases."""
        return [node.name for node in self._cache.nodes], [case.name for case in self._cache.cases]

    def node_facts(self, name: str) -> tuple[object, ...]:
        """Differs once the node has changed, or a case of it."""
        return (self._cache.nodes.get(name), *self._cases(name))

    def case_facts(self, name: str) -> tuple[object, ...]:
        """Differs once the case has changed."""
        return (self._cache.cases.get(name),)

    def node_view(self, name: str) -> NodeView | None:
        """The page of a node; of one that is gone None, unless a case of it is kept."""
        now, cases, node = self._clock.now(), self._cases(name), self._cache.nodes.get(name)
        if node is None:
            return gone_node(name, cases, self._fresh(now)) if cases else None
        lines = explain(self._told(now), node, self._breaker, now)
        controller = f"  controller: {self._leader.described(now)}"
        return node_view(
            node, cases, [*lines, controller], self._settings.domains, self._fresh(now), self._settings.docs_url
        )

    def node_data(self, name: str) -> Data | None:
        """As `remediator explain -o json`, but for what the scheduler would do."""
        now, node = self._clock.now(), self._cache.nodes.get(name)
        if node is None:
            return None
        explained = explain_data(self._told(now), node, self._breaker, now)
        return explained | {"controller": controller_data(self._leader, now)} | self.freshness_data()

    def history_data(self, name: str) -> Data | None:
        """As `remediator history -o json`."""
        cases, now = self._cases(name), self._clock.now()
        if not cases and self._cache.nodes.get(name) is None:
            return None
        return {"node": name, "cases": [case_data(case, now) for case in cases]} | self.freshness_data()

    async def case(self, name: str) -> Case | None:
        """A case. Of one that is over the caches keep what repairs need: its timeline and evidence are read now."""
        known = self._cache.cases.get(name)
        if known is None or known.ended is None or known.timeline:
            return known
        try:
            async with self._reads, asyncio.timeout(ANSWER_SECONDS):
                return decode.whole_case(await self._client.get(CASE, name))
        except (errors.ApiError, OSError, TimeoutError):
            return known

    def case_view(self, case: Case) -> CaseDetail:
        """The page of a case."""
        return case_detail(case, self._fresh(self._clock.now()), self._settings.docs_url)

    def case_data(self, case: Case) -> Data:
        """A case with its timeline and its evidence."""
        return case_page_data(case, self._clock.now()) | self.freshness_data()

    def freshness_data(self) -> Data:
        """How fresh what is known is, for JSON."""
        return {"freshness": freshness_data(self._fresh(self._clock.now()))}

    def stale(self) -> str:
        """What makes it old, and of when it is; "" where it is of now."""
        return self._fresh(self._clock.now()).sentence

    def _cases(self, node: str) -> list[Case]:
        return oldest_first(self._cache.cases.by("node", node))
