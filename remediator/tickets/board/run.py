"""Cards follow the phases of their issues; by the leader. The Ticket holds where we put its card last."""

from contextlib import suppress

import structlog

from remediator.clock import Clock
from remediator.core import names
from remediator.core.ticket import IssueRef, Ticket
from remediator.kube import api
from remediator.kube.api import encode
from remediator.kube.runtime.leader import Leader, LeaderQueue
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.tickets.board.decide import BoardStep, place, step
from remediator.tickets.channels.base import ChannelError, Later
from remediator.tickets.channels.boards import Boards, ProjectBoard
from remediator.tickets.channels.live_routes import LiveRoutes
from remediator.tickets.channels.routes import Routes
from remediator.tickets.reconcile import conditions
from remediator.tickets.reconcile.cache import TicketCache
from remediator.tickets.reconcile.store import TicketChanged, TicketStore
from remediator.tickets.reconcile.wanted import concerns

EVERY, REFUSED = 30.0, 300.0
ALL = "boards"
log = structlog.get_logger()


class BoardMover:
    """All cards, in one pass after the other. `queue` is served where `leader` leads."""

    def __init__(
        self,
        client: Client,
        boards: Boards,
        cache: TicketCache,
        routes: Routes | LiveRoutes,
        leader: Leader,
        clock: Clock,
    ) -> None:
        self._client, self._boards, self._cache, self._routes, self._leader = client, boards, cache, routes, leader
        self._store, self._clock = TicketStore(client, cache), clock
        self._settled: dict[str, tuple[IssueRef, str]] = {}  # Ticket → its issue, and the column that needs no look
        self.queue: LeaderQueue[str] = LeaderQueue(
            "board",
            self.serve,
            lambda: (ALL,),
            workers=1,
            informers=lambda: cache.informers,
            essential=False,
            began=self._settled.clear,
        )

    async def serve(self, key: str) -> float | None:
        """One pass over all cards; seconds until the next, None for none. What cannot be moved holds no other up."""
        routes = self._routes.current(self._clock.now())
        tickets = [ticket for ticket in self._cache.tickets if ticket.issue is not None]
        self._settled = {name: self._settled[name] for ticket in tickets if (name := ticket.name) in self._settled}
        pause = EVERY
        for ticket in tickets:
            try:
                pause = max(pause, await self._served(ticket))
            except errors.ApiError as error:
                log.warning("card not moved", ticket=ticket.name, message=error.message)
        return pause if routes.boards else None

    async def _served(self, ticket: Ticket) -> float:
        """One card; seconds until the next look at it. Raises ApiError."""
        problem, pause = "", EVERY
        try:
            await self._ticket(ticket)
        except ChannelError as error:
            log.warning("card not moved", ticket=ticket.name, message=error.message)
            if isinstance(error, Later):
                return error.after
            problem, pause = error.message, REFUSED
        await self._tell(ticket, problem)
        return pause

    async def _tell(self, ticket: Ticket, problem: str) -> None:
        """Say on the Ticket what is wrong with its board, "" for nothing; what another has written comes first."""
        after = conditions.with_board_problem(ticket, problem, self._clock.now())
        if self._leader.is_leader and after != ticket:
            with suppress(TicketChanged):
                await self._store.save(ticket, after)

    async def _ticket(self, ticket: Ticket) -> None:
        board = self._board(ticket)
        if board is None or ticket.issue is None:
            return
        about = self._cache.about(ticket.subject)
        cases = [case for case, policy in about if concerns(case, policy, ticket.subject)]
        wanted = ticket.issue, board.column(place(ticket, cases))
        if self._settled.get(ticket.name) != wanted:
            await self._settle(ticket.name, board, *wanted)

    def _board(self, ticket: Ticket) -> ProjectBoard | None:
        """The board that the post of its alerts names, else that of the first route to its repository that has one."""
        if ticket.issue is None:
            return None
        routes, repository = self._routes.newest, ticket.issue.repository
        asked = [alert.destination for alert in ticket.alerts]
        named = [routes.url_board(to) for to in asked if to.repository.lower() == repository.lower()]
        boards = [*named, *(route.board for route in routes.to(repository).values())]
        return next((board for board in boards if board), None)

    async def _settle(self, name: str, board: ProjectBoard, issue: IssueRef, wanted: str) -> None:
        """Bring one card where it should be, unless a user wants it elsewhere."""
        if not self._leader.is_leader:
            return
        try:
            written = _written(await self._client.get(api.TICKET, name), issue)
            if written != wanted:
                await self._step(name, board, issue, wanted, written)
        except errors.NotFound:
            return
        self._settled[name] = issue, wanted

    async def _step(self, name: str, board: ProjectBoard, issue: IssueRef, wanted: str, written: str) -> None:
        card = await self._boards.card(board, issue)
        what = step(wanted, written, card.column)
        if what is BoardStep.LEAVE:
            log.info("card left where a user put it", ticket=name, column=card.column, wanted=wanted)
            return
        if what is BoardStep.MOVE:
            await self._boards.move(board, card, wanted)
        note = encode.annotations({names.CARD: f"{issue.number} {wanted}"})
        await self._client.patch(api.TICKET, name, note)


def _written(ticket: api.Ticket, issue: IssueRef) -> str:
    """Where we put the card of this issue last; "" for never, or where the record is of another issue."""
    number, _, column = ticket.metadata.annotations.get(names.CARD, "").partition(" ")
    return column if number == str(issue.number) else ""
