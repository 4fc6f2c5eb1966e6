"""What the page is made of: the caches of the replica, and the Lease, read once for each snapshot."""

from collections.abc import Callable
from contextlib import suppress
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
from remediator.core.node import Node
from remediator.core.past_cases import oldest_first
from remediator.core.running import Leading, Running
from remediator.kube.overview import Overview
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.settings import Settings
from remediator.web.page.detail_view import CaseDetail, NodeView, case_detail, case_page_data, node_view
from remediator.web.page.fleet_view import FleetFacts


class PageSource:
    """Reads; writes nothing."""

    def __init__(self, client: Client, cache: ClusterCache, settings: Settings, clock: Clock) -> None:
        self._client, self._cache, self._settings, self._clock = client, cache, settings, clock
        self._leader = Leading()

    def on_move(self, moved: Callable[[], None]) -> None:
        """Call it whenever something has changed that the page shows."""
        cache = self._cache
        for informer in (cache.nodes, cache.cases, cache.budgets, cache.policies, cache.pause):
            informer.on_view(lambda *_: moved())

    async def facts(self) -> FleetFacts:
        """Of now. A Lease that cannot be read is as it was: its age shows."""
        cache, now = self._cache, self._clock.now()
        with suppress(errors.ApiError, OSError, TimeoutError):
            self._leader = await leading(self._client, self._settings.namespace, now)
        nodes, open_cases = tuple(cache.nodes), tuple(case for case in cache.unfinished if case.open)
        fleet = Overview(len(nodes), open_cases, tuple(cache.policies), tuple(cache.budgets), cache.paused)
        silent = tuple(informer.kind for informer in cache.informers if not informer.fresh())
        where = (self._settings.namespace, self._settings.domains)
        return FleetFacts(fleet, nodes, self._leader, self._running, *where, now, silent)

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

    def node_view(self, name: str) -> NodeView | None:
        """The page of a node; of one that is gone None, unless a case of it is kept."""
        now, cases, node = self._clock.now(), self._cases(name), self._cache.nodes.get(name)
        if node is None:
            gone = Node(name, "", {}, {})
            return node_view(gone, cases, [f"{name}: there is no such node any more"], (), now) if cases else None
        lines = explain(self._told(now), node, self._breaker, now)
        controller = f"  controller: {self._leader.described(now)}"
        return node_view(node, cases, [*lines, controller], self._settings.domains, now)

    def node_data(self, name: str) -> Data | None:
        """As `remediator explain -o json`, but for what the scheduler would do."""
        now, node = self._clock.now(), self._cache.nodes.get(name)
        if node is None:
            return None
        explained = explain_data(self._told(now), node, self._breaker, now)
        return explained | {"controller": controller_data(self._leader, now)}

    def history_data(self, name: str) -> Data | None:
        """As `remediator history -o json`."""
        cases, now = self._cases(name), self._clock.now()
        if not cases and self._cache.nodes.get(name) is None:
            return None
        return {"node": name, "cases": [case_data(case, now) for case in cases]}

    def case_view(self, name: str) -> CaseDetail | None:
        """The page of a case."""
        case = self._cache.cases.get(name)
        return case_detail(case, self._clock.now()) if case else None

    def case_data(self, name: str) -> Data | None:
        """A case with its timeline and its evidence."""
        case = self._cache.cases.get(name)
        return case_page_data(case, self._clock.now()) if case else None

    def _cases(self, node: str) -> list[Case]:
        return oldest_first(self._cache.cases.by("node", node))
