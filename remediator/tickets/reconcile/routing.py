"""What the rows of the routes file are compared with, of one issue. Pure."""

from remediator.core.node import Node
from remediator.core.policy import Severity
from remediator.core.ticket import Ticket
from remediator.tickets.channels.matching import Traits, traits
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.reconcile.input import TicketInput


def issue_traits(routes: Routes, ticket: Ticket, given: TicketInput, node: Node | None) -> Traits:
    """The severity, and the labels of node and alerts; where no cause is left, as it was before."""
    if not routes.match and not routes.rows:
        return Traits()
    alerts = [alert for alert in given.alerts if alert.firing or not given.active]
    alerts += [shown.alert for shown in given.spread.shown] if given.spread else []
    labels = [*(node.labels.items() if node else ()), *(pair for alert in alerts for pair in alert.labels)]
    return traits(issue_severity(ticket, given), labels)


def issue_route(routes: Routes, ticket: Ticket, given: TicketInput, node: Node | None) -> tuple[str, Route]:
    """The route that it takes, and its name in the routes file."""
    route, _ = routes.choose(given.route, issue_traits(routes, ticket, given, node), given.destination)
    return next((name for name, named in routes.named.items() if named is route), "default"), route


def issue_severity(ticket: Ticket, given: TicketInput) -> Severity:
    """The severity of the active causes; where none is left, the last one."""
    return given.severity if given.active else ticket.severity or given.severity
