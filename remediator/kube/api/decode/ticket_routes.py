"""TicketRoutes → nouns."""

from remediator.core.ticket_route import RouteReason, RouteVerdict, ShownVerdict, TicketRoute
from remediator.kube import api
from remediator.kube.api.decode.times import moment


def ticket_route(wire: api.TicketRoute) -> TicketRoute:
    """Where a team wants its issues."""
    meta, spec = wire.metadata, wire.spec
    return TicketRoute(
        namespace=meta.namespace,
        name=meta.name,
        repository=spec.repository,
        labels=spec.labels,
        assignees=spec.assignees,
        milestone=spec.milestone,
        severities=frozenset(spec.match.severity),
        labels_match={name: frozenset(values) for name, values in spec.match.labels.items()},
        version=meta.resource_version,
        generation=meta.generation,
        shown=_shown(wire.status),
    )


def _shown(status: api.TicketRouteStatus) -> ShownVerdict | None:
    """What it says; None where that is nothing of ours."""
    ready = next((condition for condition in status.conditions if condition.type == "Ready"), None)
    since = moment(ready.last_transition_time) if ready else None
    if ready is None or since is None or ready.reason not in set(RouteReason):
        return None
    verdict = RouteVerdict(RouteReason(ready.reason), ready.message, status.issues)
    return ShownVerdict(verdict, ready.observed_generation, since)
