"""The status of TicketRoutes as we write it."""

from datetime import datetime

from remediator.core.node import Status
from remediator.core.ticket_route import RouteVerdict, TicketRoute
from remediator.kube import api
from remediator.kube.api.encode.objects import second, status_patch
from remediator.kube.api.patch import Body


def route_status(route: TicketRoute, verdict: RouteVerdict, since: datetime) -> Body:
    """A merge patch of the whole status, refused if the object has moved since we read it."""
    ready = api.Condition(
        type="Ready",
        status=Status.TRUE if verdict.ready else Status.FALSE,
        reason=verdict.reason.value,
        message=verdict.message[:4096],
        last_transition_time=second(since),
        observed_generation=route.generation,
    )
    return status_patch(route.version, api.TicketRouteStatus(issues=verdict.issues, conditions=(ready,)))
