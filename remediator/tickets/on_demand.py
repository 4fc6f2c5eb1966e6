"""Parts of tickets that the routes file switches on and off while the replica runs."""

from collections.abc import Callable
from typing import Any, NamedTuple

from remediator.clock import Clock
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import Leader, LeaderQueue
from remediator.kube.wire.client import Client
from remediator.tickets.channels.base import Channel
from remediator.tickets.channels.boards import Boards
from remediator.tickets.channels.inbox import Inbox
from remediator.tickets.channels.live_routes import LiveRoutes
from remediator.tickets.channels.routes import Routes
from remediator.tickets.reconcile.run import Tickets


class OptionalPart(NamedTuple):
    """What is made where routes want it. A queue whose part is not wanted any more comes to rest by itself."""

    wanted: Callable[[Routes], object]
    make: Callable[[], LeaderQueue[Any]]


class OnDemand:
    """Each part begins with the first routes that want it; with each change of the routes its queue looks again.

    `channel` is the tracker itself, which may have comments and boards. What a part imports is read when it begins.
    """

    def __init__(
        self,
        client: Client,
        channel: Channel,
        tickets: Tickets,
        routes: LiveRoutes,
        informers: Informers,
        leader: Leader,
        clock: Clock,
    ) -> None:
        self._client, self._tickets, self._routes, self._informers = client, tickets, routes, informers
        self._leader, self._clock = leader, clock
        self._parts = [
            OptionalPart(lambda routes: routes.teams, self._teams),
            OptionalPart(lambda routes: routes.digest, self._digest),
        ]
        if isinstance(channel, Inbox):
            self._parts.append(OptionalPart(lambda routes: routes.commanded, lambda: self._commands(channel)))
        if isinstance(channel, Boards):
            self._parts.append(OptionalPart(lambda routes: routes.boards, lambda: self._boards(channel)))
        self._begun: dict[OptionalPart, LeaderQueue[Any]] = {}
        routes.on_read(self.look)

    def look(self) -> None:
        """What the routes as they are now ask for."""
        for part in self._parts:
            if part in self._begun:
                self._begun[part].add_all()
            elif part.wanted(self._routes.newest):
                self._begun[part] = part.make()
                self._leader.add(self._begun[part])

    def _teams(self) -> LeaderQueue[str]:
        from remediator.tickets.reconcile.team_routes import TeamRoutes

        watched = self._informers.ticket_routes
        self._routes.take(watched)
        self._tickets.take(watched)
        fitting = self._tickets.fitting
        return TeamRoutes(self._client, watched, self._routes, fitting, self._leader, self._clock).queue

    def _digest(self) -> LeaderQueue[str]:
        from remediator.tickets.digest.run import Digest

        tickets = self._tickets
        return Digest(self._client, tickets.channel, tickets.cache, self._routes, self._leader, self._clock).queue

    def _commands(self, inbox: Inbox) -> LeaderQueue[str]:
        from remediator.tickets.commands.run import Commands

        made, where = self._tickets, (self._routes, self._leader, self._clock)
        return Commands(self._client, made.channel, inbox, made.cache, *where).queue

    def _boards(self, boards: Boards) -> LeaderQueue[str]:
        from remediator.tickets.board.run import BoardMover

        where = self._routes, self._leader, self._clock
        return BoardMover(self._client, boards, self._tickets.cache, *where).queue
