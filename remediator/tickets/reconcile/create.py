"""How an issue comes to be, once: the intent is written first, and what may have happened is looked for."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from remediator.core.ticket import ClosedBy, IssueRef, ReportedCause, TicketPhase
from remediator.tickets.channels.base import Draft, Issue, Later, Refused
from remediator.tickets.channels.routes import Route
from remediator.tickets.reconcile.observe import sight, state
from remediator.tickets.reconcile.reconcile import Reconcile
from remediator.tickets.reconcile.situation import Situation, remembered
from remediator.tickets.reconcile.states import Sight, State
from remediator.tickets.render import body as render
from remediator.tickets.render.body import LABEL, SEVERITY_LABELS

MARGIN = timedelta(minutes=1)  # between the clock of the tracker and ours
INTENT = ("phase", "issue", "previous", "opened", "creating", "creating_in", "closed", "closed_by")
FALLBACKS = {"assignees": "AssigneesRefused", "labels": "LabelsRefused"}


async def create(visit: Reconcile) -> None:
    """Write that we begin, begin, write that it is done. Of two leaders only one succeeds with the first write."""
    before, again = visit.ticket, state(visit.ticket) is State.CREATING
    asked = visit.situation.route
    route, known = visit.rules.routes.find(asked)
    if not again:
        visit.drop("RouteInvalid")
        visit.drop("BodyFull")
    if not known:
        visit.note(
            "RouteInvalid", "True", "UnknownRoute", f"no route {asked} in the routes file; filed under the default"
        )
    await visit.save(**_intent(visit, route, again))
    situation = visit.situation  # what is filed, and so what is told: more may become known while the tracker answers
    try:
        issue, text = await _file(visit, situation, route)
    except (Later, Refused):
        undone = {name: getattr(before, name) for name in INTENT}
        await visit.save(**undone | {"phase": before.phase or TicketPhase.PENDING})
        raise
    if issue.repository.lower() != route.repository.lower():
        moved = f"{route.repository} is {issue.repository} now; correct the routes file"
        visit.note("RouteInvalid", "True", "RepositoryMoved", moved)
    written = {"written_hash": render.digest(text), "severity": situation.severity}
    await _opened(visit, issue, doubt=again, reported=remembered((), situation.causes), **written)


def _intent(visit: Reconcile, route: Route, again: bool) -> dict[str, Any]:
    begun = {"creating": visit.now, "creating_in": route.repository, "phase": TicketPhase.PENDING}
    if again:
        return begun
    last = visit.ticket.issue
    return begun | {
        "issue": None,
        "previous": last.url if last else visit.ticket.previous,
        "opened": visit.now,
        "closed": None,
        "closed_by": ClosedBy.NOBODY,
    }


async def _file(visit: Reconcile, situation: Situation, route: Route) -> tuple[Issue, str]:
    """Create the issue, and say what was written: without whom or what the tracker will not have, if need be."""
    while True:
        text = visit.section(situation)
        draft = _draft(visit, situation, route, text)
        try:
            return await visit.ask("create", visit.desk.tracker.create(route.repository, draft)), text
        except Refused as error:
            if error.field not in FALLBACKS or not getattr(route, error.field):
                raise
            visit.note("RouteInvalid", "True", FALLBACKS[error.field], f"filed without {error.field}: {error.message}")
            route = replace(route, assignees=()) if error.field == "assignees" else replace(route, labels=())


def _draft(visit: Reconcile, situation: Situation, route: Route, text: str) -> Draft:
    labels = dict.fromkeys((LABEL, SEVERITY_LABELS[situation.severity], *route.labels))
    title = render.title(situation, visit.rules.routes.cluster)
    return Draft(title, text, tuple(labels), route.assignees)


async def _opened(
    visit: Reconcile, issue: Issue, *, doubt: bool, reported: tuple[ReportedCause, ...], **written: Any
) -> None:
    """Record an issue as ours. `doubt`: there may be a twin. Without `written` its text is of another moment."""
    visit.sight = Sight.UNREAD  # a person may have been faster: it is read before anything else is written to it
    unknown = {"written_hash": "", "severity": None}
    await visit.save(
        phase=TicketPhase.OPEN,
        issue=IssueRef(issue.repository, issue.number, issue.url),
        creating=visit.ticket.creating if doubt else None,
        closing_commented=False,
        written=visit.now,
        reported=reported,
        **unknown | written,
    )


async def search(visit: Reconcile) -> None:
    """Look for what a create of ours may have left; the issue before will do as well, if a person reopened it."""
    found = await _found(visit, visit.ticket.creating_in)
    reopened = [issue for issue in found if issue.open and issue.url == visit.ticket.previous]
    visit.twins = _twins(visit, found) or reopened
    visit.sight = sight(_best(visit.twins)) if visit.twins else Sight.NONE


async def _found(visit: Reconcile, repository: str) -> list[Issue]:
    """The issues of this subject that were touched since the present one was begun, oldest first."""
    since = (visit.ticket.opened or visit.now) - MARGIN
    return await visit.ask("find", visit.desk.tracker.find(repository, visit.marker.searched, LABEL, since))


def _twins(visit: Reconcile, found: list[Issue]) -> list[Issue]:
    """Those that carry the marker of the present one."""
    return [issue for issue in found if visit.marker.whole in issue.body]


def _best(twins: list[Issue]) -> Issue:
    """The oldest that is open, else the oldest."""
    return next((issue for issue in twins if issue.open), twins[0])


async def adopt(visit: Reconcile) -> None:
    """Take what a create of ours left. It speaks of what had begun by then: a person may have closed it since."""
    best, ticket = await _keep_one(visit), visit.ticket
    then = [cause for cause in visit.situation.causes if ticket.opened is None or cause.since <= ticket.opened]
    await _opened(visit, best, doubt=ticket.creating != ticket.opened, reported=remembered((), then))


async def settle(visit: Reconcile) -> None:
    """We created twice: where both succeeded, the older stays."""
    ours = visit.ticket.issue
    if ours is None:
        return
    visit.twins = _twins(visit, await _found(visit, ours.repository))
    best = await _keep_one(visit) if visit.twins else None
    if best and best.number != ours.number:
        await _opened(visit, best, doubt=False, reported=visit.ticket.reported)
    else:
        await visit.save(creating=None)


async def _keep_one(visit: Reconcile) -> Issue:
    best = _best(visit.twins)
    for twin in visit.twins:
        if twin.open and twin.number != best.number:
            await visit.ask(
                "duplicate", visit.desk.tracker.close(twin.repository, twin.number, "duplicate", best.number)
            )
    return best


async def forget(visit: Reconcile) -> None:
    """Nothing was created, and nothing is needed any more."""
    await visit.save(creating=None, opened=None, phase=TicketPhase.NEW)
