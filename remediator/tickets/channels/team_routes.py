"""TicketRoutes as routes: what a team may do is what the routes file leaves to its namespace. Pure.

A route writes with our token, and takes an issue away from where it went before: neither is a team's own to give.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from remediator.core.ticket_route import RouteReason, RouteVerdict, TicketRoute
from remediator.tickets.channels.matching import RouteMatch
from remediator.tickets.channels.routes import Route, Routes, TeamRow, permits

NAMED = 10  # repositories in a message, which has to fit into the status


@dataclass(frozen=True, slots=True)
class JudgedRoutes:
    """All TicketRoutes, judged by one routes file: the rows that are used, in their order, and what is told of each."""

    rows: tuple[TeamRow, ...]
    verdicts: Mapping[str, RouteVerdict]


def judged(routes: Routes, objects: Iterable[TicketRoute]) -> JudgedRoutes:
    """By namespace and name: which of two that fit an issue counts is no matter of when they were made."""
    ordered = sorted(objects, key=lambda route: route.key)
    verdicts = {route.key: verdict(routes, route) for route in ordered}
    rows = tuple(_row(routes, route) for route in ordered if verdicts[route.key].ready)
    return JudgedRoutes(rows, verdicts)


def verdict(routes: Routes, route: TicketRoute) -> RouteVerdict:
    """Whether a TicketRoute is used."""
    team = routes.teams.get(route.namespace)
    if team is None:
        why = f"the routes file leaves nothing to namespace {route.namespace}: ask for an entry in teams"
        return RouteVerdict(RouteReason.NAMESPACE_NOT_ALLOWED, why)
    if not permits(team.repositories, route.repository):
        only = f"the routes file allows namespace {route.namespace} only {_named(team.repositories)}"
        why = f"spec.repository is {route.repository}; {only}"
        return RouteVerdict(RouteReason.REPOSITORY_NOT_ALLOWED, why)
    if refused := routes.problem(_route(routes, route)):
        return RouteVerdict(RouteReason.INVALID, f"spec.{refused}; correct that field")
    return RouteVerdict(RouteReason.ACCEPTED, f"issues that fit go to {route.repository}")


def _named(repositories: Sequence[str]) -> str:
    more = f" and {len(repositories) - NAMED} more" if len(repositories) > NAMED else ""
    return f"{', '.join(repositories[:NAMED])}{more}"


def _row(routes: Routes, route: TicketRoute) -> TeamRow:
    """What fits the team and the route."""
    own = RouteMatch("", route.severities, tuple(route.labels_match.items()))
    return TeamRow(route.key, _route(routes, route), (routes.teams[route.namespace].match, own))


def _route(routes: Routes, route: TicketRoute) -> Route:
    """Nothing but these: no template, no commands, no board, and public only where the file says so."""
    public = any(known.public for known in routes.to(route.repository).values())
    return Route(route.repository, route.labels, route.assignees, public=public, milestone=route.milestone)
