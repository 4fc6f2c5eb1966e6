"""One pass over one ticket: observe, decide by the table, act; again until nothing is left to do now."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

import structlog

from remediator.core.ticket import Subject, Ticket
from remediator.kube.api.builtin import NAMESPACE
from remediator.kube.wire import errors
from remediator.tickets import metrics
from remediator.tickets.channels.base import Channel, ChannelError, Issue, Later, Marker, Refused, Unsure
from remediator.tickets.channels.live_routes import LiveRoutes
from remediator.tickets.channels.matching import Traits
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.floods.line import OVERFLOW, OpeningQueue
from remediator.tickets.floods.turns import OpeningPlace, place
from remediator.tickets.reconcile import conditions
from remediator.tickets.reconcile.input import TicketInput, ticket_input
from remediator.tickets.reconcile.observe import Times, abandoned, issue_state, observe, ticket_state
from remediator.tickets.reconcile.routing import issue_traits
from remediator.tickets.reconcile.states import Action, IssueState, TicketObservation, TicketState, action
from remediator.tickets.reconcile.store import TicketChanged, TicketStore
from remediator.tickets.reconcile.wanted import of_case, wants
from remediator.tickets.render.body import key
from remediator.tickets.render.content import Content
from remediator.tickets.render.facts import facts
from remediator.tickets.render.rendered import Rendered

T = TypeVar("T")
log = structlog.get_logger()
STEPS = 16  # more than any pass takes: a channel that answers nonsense must not keep us busy for ever
CHANGED_SECONDS, NOT_LEADING_SECONDS = 0.2, 1.0


@dataclass(slots=True)
class Memory:
    """What a leader remembers of one ticket between passes; losing it costs a read or a rendering.

    `read` is when its issue was last read. Before `not_before` the channel is left alone, whatever happens: our own
    writes wake the next pass at once. `tried`: with which route, and when, what it was refused was last asked for.
    `fits`: the TicketRoute that its open issue takes, by namespace and name.
    """

    read: datetime
    not_before: datetime
    rendered: Rendered
    tried: tuple[Route, datetime] | None = None
    fits: str = ""


@dataclass(frozen=True, slots=True)
class NextPass:
    """The pass is over: seconds until the next one, None where only an event calls for it."""

    seconds: float | None


@dataclass(slots=True)
class Reconcile:
    """One ticket while a pass is over it: what handlers read, and how they act.

    `saved` is the Ticket as it was written last, `ticket` as it should be. `issue` is what the channel showed in this
    pass, and `twins` are what a search has found.
    """

    store: TicketStore
    channel: Channel
    routes: Routes
    times: Times
    saved: Ticket
    ticket: Ticket
    key: str  # of the hidden marker
    memory: Memory
    now: datetime
    line: OpeningQueue | None = None
    issue_state: IssueState = IssueState.UNREAD
    issue: Issue | None = None
    twins: list[Issue] = field(default_factory=list)

    @property
    def given(self) -> TicketInput:
        """What is so now, with the alerts that the Ticket holds now."""
        cache, subject = self.store.cache, self.ticket.subject
        waiting = self.line.backlog(cache.tickets, self.now) if self.line and subject == OVERFLOW else None
        folding = cache.folding
        of_many = folding.elsewhere(self.ticket), folding.nodes(subject)
        return ticket_input(self.ticket, cache.about(subject), *of_many, waiting)

    @property
    def marker(self) -> Marker:
        """What tells this issue from all others."""
        return Marker(self.key, self.ticket.opened or self.now)

    @property
    def route(self) -> Route:
        """Where the routes lead this issue now."""
        given = self.given
        return self.routes.choose(given.route, self.traits(given), given.destination)[0]

    @property
    def team_row(self) -> str:
        """The TicketRoute that this issue takes, "" where it takes none."""
        given = self.given
        if not self.routes.rows or self.routes.heeds(given.route) or given.destination.repository:
            return ""
        traits = self.traits(given)
        row = None if any(match.fits(traits) for match in self.routes.match) else self.routes.row(traits)
        return row.key if row else ""

    @property
    def incomplete(self) -> bool:
        """Whether something of the route is missing in the issue, and it is time to try it again."""
        if not conditions.missing_parts(self.ticket):
            return False
        tried, every = self.memory.tried, self.times.read_every
        return tried is None or tried[0] != self.route or self.now - tried[1] >= every

    def content(self, given: TicketInput) -> Content:
        """What our part of the text is made of."""
        notice, cache = self.ticket.condition(conditions.ROUTE_INVALID), self.store.cache
        subject, route = self.ticket.subject, self.routes.choose(given.route, self.traits(given), given.destination)[0]
        earlier = cache.earlier(subject, (linked.case for linked in given.cases))
        return Content(
            given,
            self.ticket.previous,
            notice.message if notice else "",
            facts(given, cache.nodes.get(subject.node), earlier, self.now),
            route.template,
            (*self.routes.links, *route.links),
            self.routes.cluster,
            route.title,
        )

    def traits(self, given: TicketInput) -> Traits:
        """What the rows of the routes file are compared with; where no cause is left, as it was before."""
        return issue_traits(self.routes, self.ticket, given, self.store.cache.nodes.get(self.ticket.subject.node))

    def place(self) -> OpeningPlace:
        """Its place among the issues that are to be opened."""
        given = self.given
        begun = [linked.case.created for linked in given.cases if linked.wanted]
        begun += [alert.starts for alert in given.alerts if alert.firing]
        begun += [node_alert.alert.starts for node_alert in given.spread.shown] if given.spread else []
        return place(self.ticket.subject, given.severity, min(begun, default=self.now), self.route.repository, self.now)

    def shown(self, issue: Issue) -> None:
        """The channel has just shown the issue."""
        self.issue, self.issue_state, self.memory.read = issue, issue_state(issue), self.now

    def leave_alone(self, seconds: float) -> None:
        """Let no pass ask the channel for so long, whatever wakes it."""
        self.memory.not_before = self.now + timedelta(seconds=seconds)

    async def save(self, **changes: Any) -> None:
        """Write the Ticket as it should be, with these changes of its status. Raises TicketChanged."""
        self.saved = self.ticket = await self.store.save(self.saved, replace(self.ticket, **changes))

    async def ask(self, verb: str, call: Awaitable[T]) -> T:
        """One call of the channel, counted; what it did not do is logged."""
        result = "failed"
        try:
            answer = await call
            result = "done"
            return answer
        except (Later, Unsure, Refused) as error:
            result = type(error).__name__.lower()
            log.warning("issue not written", action=verb, ticket=self.ticket.name, result=result, message=error.message)
            raise
        finally:
            metrics.ISSUE_CALLS.labels(verb, result).inc()


Handler = Callable[[Reconcile], Awaitable[NextPass | None]]


class TicketReconciler:
    """Passes over tickets, for one leader. `leads` is asked before each action; `actions` maps every Action.

    Issues are opened in the order of `line`, where there is one. `rooms_outdated`: why the file of rooms
    of a chat is not used as it is.
    """

    def __init__(
        self,
        store: TicketStore,
        channel: Channel,
        routes: Routes | LiveRoutes,
        times: Times,
        actions: Mapping[Action, Handler],
        leads: Callable[[], bool],
        line: OpeningQueue | None = None,
        rooms_outdated: Callable[[], str] = str,
    ) -> None:
        self._rooms_outdated = rooms_outdated
        self._store, self._channel, self._routes, self._times = store, channel, routes, times
        self._actions, self._leads, self._line = actions, leads, line
        self._memory: dict[str, Memory] = {}
        self._cluster: str | None = None

    async def reconcile(self, subject: Subject, now: datetime) -> float | None:
        """One pass; seconds until the next one, None where only an event calls for it. Raises ApiError: try again."""
        if subject == OVERFLOW and self._line and (young := self._line.young(now).total_seconds()) > 0:
            return young
        ticket = self._store.cache.ticket(subject.name)
        if ticket is None and not self._wanted(subject, now):
            self._memory.pop(subject.name, None)
            self._leave(subject)
            return None
        ticket = ticket or await self._store.make(subject)
        run = await self._begun(ticket, now)
        if abandoned(ticket, run.given, now, self._times):
            await self._store.delete(ticket)
            self._leave(subject)
            return None
        if run.memory.not_before > now:
            return (run.memory.not_before - now).total_seconds()
        return await self._finished(run)

    def fitting(self) -> Mapping[str, int]:
        """How many open issues each TicketRoute fits, of those that this leader has looked at."""
        return Counter(memory.fits for memory in self._memory.values() if memory.fits)

    async def _begun(self, ticket: Ticket, now: datetime) -> Reconcile:
        memory = self._memory.setdefault(ticket.name, Memory(now, now, Rendered(self._channel.room)))
        marker = key(await self._cluster_uid(), ticket.name)
        routes = self._routes.current(now)
        line, times = self._line, self._times
        return Reconcile(self._store, self._channel, routes, times, ticket, ticket, marker, memory, now, line)

    async def _finished(self, run: Reconcile) -> float | None:
        try:
            return (await self._steps(run)).seconds
        except TicketChanged:
            return CHANGED_SECONDS
        except ChannelError as error:
            return await self._failed(run, error)
        finally:
            run.memory.rendered.drop_text(run.saved.written_hash)

    async def _steps(self, run: Reconcile) -> NextPass:
        """Do all that can be done now."""
        for _ in range(STEPS):
            if not self._leads():
                return NextPass(NOT_LEADING_SECONDS)
            todo = action(self._observed(run))
            pause = await (self._create(run) if todo is Action.CREATE else self._actions[todo](run))
            if todo not in (Action.CREATE, Action.SEARCH):
                self._leave(run.ticket.subject)
            if pause is not None:
                return pause
        return NextPass(self._times.search_every.total_seconds())

    async def _create(self, run: Reconcile) -> NextPass | None:
        """Create an issue when its turn has come; until then it stands in the line, which is said on its Ticket."""
        if self._line is None:
            return await self._actions[Action.CREATE](run)
        wait = self._line.wait(run.place(), self._store.cache.tickets, run.now)
        if wait is not None:
            if wait.full:
                run.ticket = run.ticket.with_condition(conditions.waiting(run.now))
                await run.save()
            return NextPass(wait.after.total_seconds())
        try:
            return await self._actions[Action.CREATE](run)
        finally:
            begun = ticket_state(run.ticket) in (TicketState.OPEN, TicketState.CREATING)
            self._line.done(run.ticket.name, begun=begun)

    def _leave(self, subject: Subject) -> None:
        if self._line is not None:
            self._line.leave(subject.name)

    def _observed(self, run: Reconcile) -> TicketObservation:
        """What the table asks about; only of an open issue the text matters."""
        given, memory = run.given, run.memory
        open_now = ticket_state(run.ticket) is TicketState.OPEN
        memory.fits = run.team_row if open_now else ""
        digest = memory.rendered.digest(run.content(given)) if open_now else ""
        if open_now:
            run.ticket = conditions.with_routes_problem(run.ticket, run.routes.outdated, run.now)
            run.ticket = conditions.with_rooms_problem(run.ticket, self._rooms_outdated(), run.now)
            _note_template(run, memory.rendered.problem)
        missing = open_now and run.incomplete
        return observe(run.ticket, given, run.issue_state, digest, memory.read, run.now, self._times, missing)

    async def _failed(self, run: Reconcile, error: ChannelError) -> float:
        """Say on the Ticket why the issue is not written; when it is tried again."""
        condition, seconds = conditions.failed(error, self._times, run.now)
        run.leave_alone(seconds)
        if self._line is not None and ticket_state(run.ticket) is not TicketState.OPEN:
            self._line.failed(run.ticket.name, run.memory.not_before, refused=isinstance(error, Refused))
        run.ticket = run.ticket.with_condition(condition, keep_message=condition.reason in conditions.CHANGING)
        try:
            await run.save()
        except TicketChanged:
            return CHANGED_SECONDS
        return seconds

    def _wanted(self, subject: Subject, now: datetime) -> bool:
        cache = self._store.cache
        if subject == OVERFLOW:
            return self._line is not None and self._line.backlog(cache.tickets, now) is not None
        if cache.folding.nodes(subject):
            return True
        about = self._store.cache.about(subject)
        return any(wants(case, policy) and of_case(case) == subject for case, policy in about)

    async def _cluster_uid(self) -> str:
        """What tells this cluster from others that write to the same repository; read once."""
        if self._cluster is None:
            try:
                self._cluster = (await self._store.client.get(NAMESPACE, "kube-system")).metadata.uid
            except (errors.NotFound, errors.Forbidden) as refused:
                remedy = "allow get on namespace kube-system"
                log.warning("no name for this cluster", failed=str(refused), remedy=remedy)
                self._cluster = ""
        return self._cluster


def _note_template(run: Reconcile, problem: str) -> None:
    """Say once where the template of a route gives no text: the shipped one has given it."""
    before, run.ticket = run.ticket, conditions.with_template_problem(run.ticket, problem, run.now)
    if problem and run.ticket != before:
        metrics.TEMPLATE_ERRORS.inc()
        log.warning("template not used", ticket=run.ticket.name, message=problem, once=True)
