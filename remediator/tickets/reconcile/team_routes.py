"""The status of TicketRoutes: whether they are used, why not, and how many open issues they fit; by the leader."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from remediator.clock import Clock
from remediator.core.ticket_route import RouteVerdict, TicketRoute
from remediator.kube import api
from remediator.kube.api import decode, encode
from remediator.kube.runtime.informer import Informer
from remediator.kube.runtime.leader import Leader, LeaderQueue
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.tickets.channels.live_routes import LiveRoutes

EVERY = 30.0
COUNTED = timedelta(minutes=2)  # until whoever begins to lead has looked at every Ticket
ALL = "ticket routes"
log = structlog.get_logger()


class TeamRoutes:
    """All TicketRoutes, in one pass after the other. `fitting`: how many open issues each of them fits, by its key."""

    def __init__(
        self,
        client: Client,
        informer: Informer[TicketRoute],
        routes: LiveRoutes,
        fitting: Callable[[], Mapping[str, int]],
        leader: Leader,
        clock: Clock,
    ) -> None:
        self._client, self._informer, self._routes = client, informer, routes
        self._fitting, self._leader, self._clock = fitting, leader, clock
        self._began = clock.now()
        self.queue: LeaderQueue[str] = LeaderQueue(
            "ticket routes",
            self.serve,
            lambda: (ALL,),
            workers=1,
            informers=lambda: (informer,),
            essential=False,
            began=self.began,
        )
        informer.on_change(lambda key, old, new: self.queue.add(ALL))

    def began(self) -> None:
        """We lead from now on, and have looked at no Ticket yet."""
        self._began = self._clock.now()

    async def serve(self, key: str) -> float:
        """One pass over all of them; seconds until the next."""
        now = self._clock.now()
        self._routes.current(now)
        fitting = self._fitting() if now - self._began >= COUNTED else None
        for route in list(self._informer):
            verdict = self._routes.verdicts.get(route.key)
            if verdict is not None and self._leader.is_leader:
                await self._tell(route, _counted(route, verdict, fitting), now)
        return EVERY

    async def _tell(self, route: TicketRoute, verdict: RouteVerdict, now: datetime) -> None:
        """Write its status, where that says something else."""
        shown = route.shown
        if shown and (shown.verdict, shown.generation) == (verdict, route.generation):
            return
        since = shown.since if shown and shown.verdict.ready == verdict.ready else now
        body = encode.route_status(route, verdict, since)
        try:
            wire = await self._client.patch(
                api.TICKET_ROUTE, route.name, body, namespace=route.namespace, subresource="status"
            )
        except errors.ApiError as error:  # it is gone, or has changed: the watch tells
            log.warning("status of a TicketRoute not written", route=route.key, message=error.message)
            return
        self._informer.note(route.key, decode.ticket_route(wire))


def _counted(route: TicketRoute, verdict: RouteVerdict, fitting: Mapping[str, int] | None) -> RouteVerdict:
    """With the number of issues; as it was while nobody has counted yet."""
    before = route.shown.verdict.issues if route.shown else 0
    return replace(verdict, issues=before if fitting is None else fitting.get(route.key, 0))
