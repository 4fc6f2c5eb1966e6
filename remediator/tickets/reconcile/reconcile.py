"""One pass over one ticket: look, decide by the table, do; again until nothing is left to do now."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from remediator.core.ticket import Ticket, TicketCondition
from remediator.tickets.channels.base import Issue, Later, Refused, TrackerError
from remediator.tickets.channels.routes import Routes
from remediator.tickets.reconcile.observe import Times, seen, sight, state
from remediator.tickets.reconcile.situation import Situation
from remediator.tickets.reconcile.states import Action, Seen, Sight, State, action
from remediator.tickets.reconcile.store import Moved, TicketStore
from remediator.tickets.render import body as render
from remediator.tickets.render.body import Marker

T = TypeVar("T")
STEPS = 16  # more than any pass takes: a tracker that answers nonsense must not keep us busy for ever
MOVED_SECONDS = 0.2
CROWDED = "what people wrote into the issue leaves no room for our part, which stays as it was; shorten it"
CHANGING = frozenset({"TrackerAway", "Unsure"})  # these messages hold seconds and addresses: never twice the same


@dataclass(frozen=True, slots=True)
class Rules:
    """What is the same for every visit. `key` is a Ticket's part of the hidden marker, from its name."""

    routes: Routes
    times: Times
    key: Callable[[str], str]


class Reconcile:
    """One ticket while a pass is over it.

    `notes` are the Ticket's conditions as they should be; the next `save` writes them. `reads` says of each Ticket when
    its issue was last read. `rests` is how many seconds the tracker is to be left alone now, whatever happens: our own
    writes wake the next pass at once.
    """

    def __init__(
        self,
        desk: TicketStore,
        rules: Rules,
        ticket: Ticket,
        look: Callable[[Ticket], Situation],
        reads: MutableMapping[str, datetime],
        now: datetime,
    ) -> None:
        self.desk, self.rules, self.ticket, self.now = desk, rules, ticket, now
        self.conditions = ticket.conditions
        self.sight = Sight.UNREAD
        self.issue: Issue | None = None
        self.twins: list[Issue] = []
        self.rests = 0.0
        self._look, self._reads = look, reads

    async def run(self, deeds: Mapping[Action, "Handler"]) -> float | None:
        """Do all that can be done now; seconds until the next look, None for no such wish."""
        try:
            for _ in range(STEPS):
                does = action(self._seen())
                if does in (Action.REST, Action.WAIT):
                    return await self._rest(does)
                if not self.desk.leads():
                    return 1.0
                await deeds[does](self)
        except Moved:
            return MOVED_SECONDS
        except TrackerError as error:
            return await self._failed(error)
        return self.rules.times.look_every.total_seconds()

    # --- what deeds need ---------------------------------------------------------------------------------------------

    @property
    def situation(self) -> Situation:
        """What is so, with the alerts that the Ticket holds now."""
        return self._look(self.ticket)

    @property
    def marker(self) -> Marker:
        """What tells this issue from all others."""
        return Marker(self.rules.key(self.ticket.name), self.ticket.opened or self.now)

    def section(self, situation: Situation, room: int = render.ROOM) -> str:
        """Our part of the body as it should be in a situation."""
        notices = [note.message for note in self.conditions if note.type == "RouteInvalid"]
        return render.section(situation, self.marker, self.ticket.previous, notices, room)

    def shown(self, issue: Issue) -> None:
        """The tracker has just shown the issue."""
        self.issue, self.sight = issue, sight(issue)
        self._reads[self.ticket.name] = self.now

    async def ask(self, what: str, call: Awaitable[T]) -> T:
        """One call of the tracker."""
        return await self.desk.ask(what, self.ticket.name, call)

    async def save(self, **changes: Any) -> None:
        """Write changes of the status, and the conditions as they should be. Raises Moved."""
        self.ticket = await self.desk.save(self.ticket, replace(self.ticket, conditions=self.conditions, **changes))

    def note(self, type: str, status: str, reason: str, message: str) -> None:
        """Set a condition; one that says the same already stays. Of words that change each time the first stay."""
        old, message = self._noted(type), message[:1024]
        if old and (old.status, old.reason) == (status, reason) and (reason in CHANGING or old.message == message):
            return
        since = old.since if old and old.status == status else self.now
        self.drop(type)
        self.conditions = (*self.conditions, TicketCondition(type, status, reason, message, since))

    def drop(self, type: str) -> None:
        """Take a condition back."""
        self.conditions = tuple(note for note in self.conditions if note.type != type)

    def _noted(self, type: str) -> TicketCondition | None:
        return next((note for note in self.conditions if note.type == type), None)

    # --- deciding ----------------------------------------------------------------------------------------------------

    def _seen(self) -> Seen:
        read, times = self._reads.setdefault(self.ticket.name, self.now), self.rules.times
        situation = self.situation
        digest = render.digest(self.section(situation))
        return seen(self.ticket, situation, self.sight, digest, read, self.now, times)

    async def _rest(self, does: Action) -> float | None:
        times = self.rules.times
        if state(self.ticket) is State.OPEN or (does is Action.REST and self.ticket.condition("Synced")):
            full = state(self.ticket) is State.OPEN and self._noted("BodyFull")
            said = ("False", "BodyFull", CROWDED) if full else ("True", "Synced", "the issue says what is so")
            self.note("Synced", *said)
        await self.save()
        if does is Action.REST:
            return None
        if state(self.ticket) is State.CREATING or self.ticket.written is None:
            self.rests = times.look_every.total_seconds()
            return self.rests
        return (self.ticket.written + times.edit_every - self.now).total_seconds()

    async def _failed(self, error: TrackerError) -> float:
        """Say on the Ticket what the tracker said; when to try again."""
        reason, self.rests, remedy = self._remedy(error)
        self.note("Synced", "False", reason, f"{error.message}; {remedy}")
        try:
            await self.save()
        except Moved:
            return MOVED_SECONDS
        return self.rests

    def _remedy(self, error: TrackerError) -> tuple[str, float, str]:
        times = self.rules.times
        if isinstance(error, Refused):
            remedy = (
                f"correct {error.field or 'the token or the routes file'}; where the issue is gone, delete this Ticket"
            )
            return "Refused", times.after_refusal.total_seconds(), remedy
        if isinstance(error, Later):
            return "TrackerAway", max(1.0, error.after), "it is tried again"
        return "Unsure", times.look_every.total_seconds(), "it is looked for before it is repeated"


Handler = Callable[[Reconcile], Awaitable[None]]
