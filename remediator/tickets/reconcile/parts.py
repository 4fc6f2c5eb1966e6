"""What of a route an issue could not have when it was created: told, and tried again. What a person set stays."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from remediator.core.owner_work import firing, logins
from remediator.tickets.channels.base import Complete, Issue, Refused
from remediator.tickets.channels.oncall import assignees
from remediator.tickets.channels.routes import Route
from remediator.tickets.reconcile import conditions
from remediator.tickets.reconcile.reconciler import Reconcile

REMEDY: Mapping[str, str] = {
    "labels": "give the token write access to the repository",
    "assignees": "correct assignees in the route, or give them access to the repository",
    "milestone": "give the token write access to the repository",
}


def asked(run: Reconcile) -> Route:
    """The route of the issue, with whoever is on call now, and the owner whose work it is about."""
    given, route = run.given, run.route
    fixed = (*route.assignees, *logins(firing(run.ticket)))
    return replace(route, assignees=assignees(fixed, route.on_call, route.quiet, given.severity, run.now))


def without(route: Route, *names: str) -> Route:
    """The route without its labels, its assignees or its milestone."""
    empty: dict[str, Any] = {name: "" if name == "milestone" else () for name in names}
    return replace(route, **empty)


def dropped(issue: Issue, route: Route) -> dict[str, str]:
    """What is not in the issue, though nobody refused it; of labels and people, where none of them is."""
    held = {"labels": issue.labels, "assignees": issue.assignees, "milestone": issue.milestone}
    lost = [name for name in conditions.PARTS if getattr(route, name) and not held[name]]
    return {name: f"{route.repository} took none of {_shown(route, name)}; {REMEDY[name]}" for name in lost}


def _shown(route: Route, name: str) -> str:
    value = getattr(route, name)
    return value if isinstance(value, str) else ", ".join(value)


def note(run: Reconcile, refused: Mapping[str, str]) -> None:
    """Say on the Ticket what the issue is without. It is tried again when the route changes, and each hour."""
    run.memory.tried = run.route, run.now
    if refused:
        run.ticket = run.ticket.with_condition(conditions.parts_refused(refused, run.now))


async def complete(run: Reconcile, issue: Issue) -> None:
    """Try again what is missing. An issue that is elsewhere than the route leads now is left as it is."""
    route, missing = asked(run), conditions.missing_parts(run.ticket)
    run.memory.tried = run.route, run.now
    if route.repository.lower() != issue.repository.lower():
        return
    refused = [await _completed(run, issue, name, route) for name in missing]
    run.ticket = run.ticket.without_condition(conditions.ROUTE_INVALID)
    note(run, {name: why for name, why in zip(missing, refused, strict=True) if why})
    await run.save()


async def _completed(run: Reconcile, issue: Issue, name: str, route: Route) -> str:
    """Why one part is still missing, "" where it is not, or where a person has decided meanwhile."""
    change = Complete(**{name: getattr(route, name)})
    if change == Complete() or (name != "labels" and getattr(issue, name)):
        return ""
    try:
        made = await run.ask("complete", run.channel.change(issue, change))
    except Refused as error:
        if error.field != name:
            raise
        return error.message
    run.shown(made)
    return dropped(made, without(route, *(other for other in conditions.PARTS if other != name))).get(name, "")
