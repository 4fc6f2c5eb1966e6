"""When the digest of a week is filed, once; by the leader.

Nothing is remembered but in the issue itself: who begins to lead waits until a list would show an issue that another
leader has made, and looks before it creates one.
"""

from datetime import datetime, timedelta

import structlog

from remediator.clock import Clock
from remediator.kube.api.builtin import NAMESPACE
from remediator.kube.runtime.leader import Leader, LeaderQueue
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.tickets.channels.base import Channel, ChannelError, Close, Draft, Issue, Later, Marker, Unsure
from remediator.tickets.channels.live_routes import LiveRoutes
from remediator.tickets.channels.routes import Routes
from remediator.tickets.digest.facts import Week, facts, last_week
from remediator.tickets.digest.text import text, title
from remediator.tickets.reconcile.cache import TicketCache
from remediator.tickets.render.body import LABEL, key

SETTLED = timedelta(minutes=12)  # until a list shows what was made before
TRIED = timedelta(days=3)  # after its week has ended; later nobody misses it
EVERY = 3600.0
DIGEST = "weekly digest"  # in the place of a Ticket's name, which has no space
log = structlog.get_logger()


class Digest:
    """One issue a week. `queue` is served where `leader` leads."""

    def __init__(
        self,
        client: Client,
        channel: Channel,
        cache: TicketCache,
        routes: Routes | LiveRoutes,
        leader: Leader,
        clock: Clock,
    ) -> None:
        self._client, self._channel, self._cache = client, channel, cache
        self._routes, self._leader, self._clock = routes, leader, clock
        self._since: datetime = clock.now()
        self._filed = ""
        self.queue: LeaderQueue[str] = LeaderQueue(
            "digest",
            self.serve,
            lambda: (DIGEST,) if routes.newest.digest else (),
            workers=1,
            informers=lambda: cache.informers,
            essential=False,
            began=self.began,
        )

    def began(self) -> None:
        """We lead from now on; what was filed before, we do not know."""
        self._since, self._filed = self._clock.now(), ""

    async def serve(self, key: str) -> float | None:
        """File what is due; seconds until the next look, None while no route is named for it. Raises ApiError."""
        now = self._clock.now()
        if not self._routes.current(now).digest:
            return None
        week = last_week(now)
        if self._filed == week.name or now - week.end > TRIED:
            return EVERY
        if now - self._since < SETTLED:
            return (self._since + SETTLED - now).total_seconds()
        try:
            await self._file(week)
        except ChannelError as error:
            log.warning("digest not filed", week=week.name, message=error.message)
            self._since = now if isinstance(error, Unsure) else self._since  # it may be there: wait, and look
            return error.after if isinstance(error, Later) else EVERY / 6
        return EVERY

    async def _file(self, week: Week) -> None:
        """The issue of one week, created unless it is there. Of two the older stays."""
        routes = self._routes.newest
        route, _ = routes.find(routes.digest)
        marker = Marker(key(await self._cluster_uid(), DIGEST), week.start)
        issues = await self._channel.find(route.repository, marker.searched, LABEL, week.end)
        ours = [issue for issue in issues if marker.whole in issue.body]
        if not self._leader.is_leader:
            return
        if ours:
            await self._keep_first(ours)
        else:
            seen = facts(self._cache.cases, week)
            labels = tuple(dict.fromkeys((LABEL, *route.labels)))
            heading, body = title(seen, routes.cluster), text(seen)
            draft = Draft(heading, body, marker, labels, route.assignees, kept_up=False)
            issue = await self._channel.create(route.repository, draft)
            log.info("digest filed", week=week.name, issue=issue.url)
        self._filed = week.name

    async def _keep_first(self, issues: list[Issue]) -> None:
        first, *others = issues
        for issue in others:
            if issue.open:
                await self._channel.change(issue, Close(duplicate_of=first.number))

    async def _cluster_uid(self) -> str:
        """What tells this cluster from others that write to the same repository; "" where we may not know."""
        try:
            return (await self._client.get(NAMESPACE, "kube-system")).metadata.uid
        except (errors.NotFound, errors.Forbidden):
            return ""
