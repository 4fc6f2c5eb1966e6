"""How an issue comes to be, once: the intent is written first, and what may have been created is searched."""

from datetime import timedelta
from typing import Any

from remediator.core.ticket import ClosedBy, ReportedCause, TicketPhase
from remediator.tickets.channels.base import Close, Draft, Issue, Later, Refused
from remediator.tickets.channels.routes import Route
from remediator.tickets.reconcile import conditions, parts
from remediator.tickets.reconcile.causes import all_reported
from remediator.tickets.reconcile.input import TicketInput
from remediator.tickets.reconcile.observe import issue_state, ticket_state
from remediator.tickets.reconcile.reconciler import Reconcile
from remediator.tickets.reconcile.states import IssueState, TicketState
from remediator.tickets.render.body import LABEL, SEVERITY_LABELS
from remediator.tickets.render.titles import titled

MARGIN = timedelta(minutes=1)  # between the clock of the channel and ours
INTENT = ("phase", "issue", "previous", "opened", "creating", "creating_in", "closed", "closed_by")


async def create(run: Reconcile) -> None:
    """Write that we begin, create, write that it is done. Of two leaders only one succeeds with the first write."""
    before, again = run.ticket, ticket_state(run.ticket) is TicketState.CREATING
    route = _route(run, again)
    await run.save(**_intent(run, route, again))
    given = run.given  # what the issue will say: more may become known while the channel answers
    try:
        issue, refused = await _created(run, given, route)
    except (Later, Refused):
        undone = {name: getattr(before, name) for name in INTENT}
        await run.save(**undone | {"phase": before.phase or TicketPhase.PENDING})
        raise
    if issue.repository.lower() != route.repository.lower():
        moved = f"{route.repository} is {issue.repository} now; correct the routes file"
        run.ticket = run.ticket.with_condition(conditions.route_invalid("RepositoryMoved", moved, run.now))
    written = {"written_hash": run.memory.rendered.digest(run.content(given)), "severity": given.severity}
    parts.note(run, refused | parts.dropped(issue, parts.without(route, *refused)))
    await _record(run, issue, maybe_twice=again, reported=all_reported((), given.causes), **written)


def _route(run: Reconcile, again: bool) -> Route:
    """Where the issue goes; a condition says where the routes file does not have the route that is asked for."""
    asked, to = run.given.route, run.given.destination
    known = run.routes.choose(asked, run.traits(run.given), to)[1]
    if not again:
        run.ticket = run.ticket.without_condition(conditions.ROUTE_INVALID).without_condition(conditions.BODY_FULL)
    if not known and not asked:
        message = f"the URL of a post names {to.repository}, which urlRepositories of the routes file does not list"
        message += f" any more; filed in {run.routes.default.repository}"
        run.ticket = run.ticket.with_condition(conditions.route_invalid("RepositoryNotAllowed", message, run.now))
    elif not known and "/" in asked:
        message = f"labels of an alert name {asked}, which labelRepositories of the routes file does not list"
        message += f"; filed in {run.route.repository}"
        run.ticket = run.ticket.with_condition(conditions.route_invalid("RepositoryNotAllowed", message, run.now))
    elif not known:
        message = f"no route {asked} in the routes file; filed under the default"
        run.ticket = run.ticket.with_condition(conditions.route_invalid("UnknownRoute", message, run.now))
    return parts.asked(run)


def _intent(run: Reconcile, route: Route, again: bool) -> dict[str, Any]:
    begun = {"creating": run.now, "creating_in": route.repository, "phase": TicketPhase.PENDING}
    if again:
        return begun
    last = run.ticket.issue
    return begun | {
        "issue": None,
        "previous": last.url if last else run.ticket.previous,
        "opened": run.now,
        "closed": None,
        "closed_by": ClosedBy.NOBODY,
    }


async def _created(run: Reconcile, given: TicketInput, route: Route) -> tuple[Issue, dict[str, str]]:
    """Create the issue, without what the channel refuses of the route; why it does, by part."""
    refused: dict[str, str] = {}
    while True:
        try:
            return await run.ask("create", run.channel.create(route.repository, _draft(run, given, route))), refused
        except Refused as error:
            if error.field not in conditions.PARTS or not getattr(route, error.field):
                raise
            refused[error.field] = error.message
            run.ticket = run.ticket.with_condition(conditions.parts_refused(refused, run.now))
            route = parts.without(route, error.field)


def _draft(run: Reconcile, given: TicketInput, route: Route) -> Draft:
    labels = dict.fromkeys((LABEL, SEVERITY_LABELS[given.severity], *route.labels))
    content = run.content(given)
    text = run.memory.rendered.text(content)
    return Draft(titled(content)[0], text, run.marker, tuple(labels), route.assignees, route.milestone)


async def _record(
    run: Reconcile, issue: Issue, *, maybe_twice: bool, reported: tuple[ReportedCause, ...], **written: Any
) -> None:
    """Record an issue as ours. Without `written` nobody knows what its text says."""
    run.issue_state = IssueState.UNREAD  # a user may have been faster: it is read before anything is written to it
    unknown = {"written_hash": "", "severity": None}
    await run.save(
        phase=TicketPhase.OPEN,
        issue=issue.ref,
        creating=run.ticket.creating if maybe_twice else None,
        closing_commented=False,
        written=run.now,
        reported=reported,
        **unknown | written,
    )


async def search(run: Reconcile) -> None:
    """Look for what a create of ours may have left; the issue before will do as well, if a user reopened it."""
    issues = await _searched(run, run.ticket.creating_in)
    reopened = [issue for issue in issues if issue.open and issue.url == run.ticket.previous]
    run.twins = _twins(run, issues) or reopened
    run.issue_state = issue_state(_best(run.twins)) if run.twins else IssueState.NOT_FOUND


async def _searched(run: Reconcile, repository: str) -> list[Issue]:
    """The issues of this subject that were touched since the present one was begun, oldest first."""
    since = (run.ticket.opened or run.now) - MARGIN
    return await run.ask("find", run.channel.find(repository, run.marker.searched, LABEL, since))


def _twins(run: Reconcile, issues: list[Issue]) -> list[Issue]:
    """Those that carry the marker of the present one."""
    return [issue for issue in issues if run.marker.whole in issue.body]


def _best(twins: list[Issue]) -> Issue:
    """The oldest that is open, else the oldest."""
    return next((issue for issue in twins if issue.open), twins[0])


async def take_over(run: Reconcile) -> None:
    """Take what a create of ours left. It reports what had begun by then: a user may have closed it since."""
    best, ticket = await _keep_one(run), run.ticket
    then = [cause for cause in run.given.causes if ticket.opened is None or cause.since <= ticket.opened]
    await _record(run, best, maybe_twice=ticket.creating != ticket.opened, reported=all_reported((), then))


async def merge_duplicates(run: Reconcile) -> None:
    """We created twice: where both succeeded, the older stays."""
    ours = run.ticket.issue
    if ours is None:
        return
    run.twins = _twins(run, await _searched(run, ours.repository))
    best = await _keep_one(run) if run.twins else None
    if best and best.number != ours.number:
        await _record(run, best, maybe_twice=False, reported=run.ticket.reported)
    else:
        await run.save(creating=None)


async def _keep_one(run: Reconcile) -> Issue:
    best = _best(run.twins)
    for twin in run.twins:
        if twin.open and twin.number != best.number:
            await run.ask("duplicate", run.channel.change(twin, Close(duplicate_of=best.number)))
    return best


async def give_up(run: Reconcile) -> None:
    """Nothing was created, and nothing is needed any more."""
    await run.save(creating=None, opened=None, phase=TicketPhase.NEW)
