"""Issues hold serial numbers and kernel lines: nothing goes where everybody could read it, unless a route says so."""

from datetime import datetime

from remediator.clock import Clock
from remediator.core.ticket import IssueRef
from remediator.tickets.channels.base import (
    Change,
    Channel,
    ChannelError,
    Draft,
    Edit,
    Issue,
    Later,
    PublicRepository,
    Visibility,
    VisibilityUnknown,
)
from remediator.tickets.channels.live_routes import LiveRoutes
from remediator.tickets.channels.routes import Routes, permits

ASK_EVERY = 3600.0  # seconds: a repository that was private may be made public
ASK_AGAIN = 60.0  # where the channel does not say


def refusal(repository: str, visibility: Visibility, routes: Routes) -> ChannelError | None:
    """Why nothing may be written there, None where it may."""
    if visibility is Visibility.PRIVATE:
        return None
    lists = ((routes.url, "the URL of a post"), (routes.labelled, "labels of an alert"))
    other = next((word for allowed, word in lists if permits(allowed, repository)), "no route any more")
    teams = [f"TicketRoute {row.key}" for row in routes.rows if row.route.repository.lower() == repository.lower()]
    named = " and ".join([*(f"route {name}" for name in routes.to(repository)), *teams]) or other
    if visibility is Visibility.UNKNOWN:
        return VisibilityUnknown(f"{repository} ({named}) does not say whether it is private", ASK_AGAIN)
    return PublicRepository(
        f"{repository} ({named}) is public, and issues hold serial numbers and kernel lines. Make it private, choose "
        "another repository, or write `public: true` into the route",
        "repository",
    )


class PrivateOnly:
    """A `Channel` that writes texts only into repositories that are private, or that a route confirms to be public.

    Each repository is asked about before the first text, and again every hour.
    """

    def __init__(self, channel: Channel, routes: Routes | LiveRoutes, clock: Clock) -> None:
        self._channel, self._routes, self._clock = channel, routes, clock
        self._private_until: dict[str, float] = {}  # repository → monotonic seconds
        self.room = channel.room

    async def create(self, repository: str, draft: Draft) -> Issue:
        await self._require_private(repository)
        return await self._channel.create(repository, draft)

    async def get(self, ref: IssueRef) -> Issue:
        return await self._channel.get(ref)

    async def find(self, repository: str, marker: str, label: str, since: datetime) -> list[Issue]:
        return await self._channel.find(repository, marker, label, since)

    async def change(self, issue: Issue, change: Change) -> Issue:
        if isinstance(change, Edit):
            await self._require_private(issue.repository)
        return await self._channel.change(issue, change)

    async def comment(self, issue: IssueRef, text: str) -> None:
        await self._require_private(issue.repository)
        await self._channel.comment(issue, text)

    async def visibility(self, repository: str) -> Visibility:
        return await self._channel.visibility(repository)

    async def aclose(self) -> None:
        await self._channel.aclose()

    async def _require_private(self, repository: str) -> None:
        """Raises PublicRepository, VisibilityUnknown, and what the channel refuses."""
        routes, now = self._routes.newest, self._clock.monotonic()
        confirmed = any(route.public for route in routes.to(repository).values())
        if confirmed or now < self._private_until.get(repository, 0.0):
            return
        if refused := refusal(repository, await self._ask(repository), routes):
            raise refused
        self._private_until[repository] = now + ASK_EVERY

    async def _ask(self, repository: str) -> Visibility:
        try:
            return await self._channel.visibility(repository)
        except Later as error:
            why = f"could not tell whether {repository} is private, so nothing was written: {error.message}"
            raise VisibilityUnknown(why, error.after) from None
