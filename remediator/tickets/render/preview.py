"""What an issue would look like, from objects of a file instead of a cluster. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from remediator.core.case import Case
from remediator.core.node import Node
from remediator.core.policy import Mode, Policy, Severity, TicketWhen, Verify
from remediator.core.selector import Selector
from remediator.core.ticket import Subject, Ticket
from remediator.core.ticket_route import TicketRoute
from remediator.tickets.channels.matching import Traits, traits
from remediator.tickets.channels.routes import Routes
from remediator.tickets.reconcile.input import TicketInput, ticket_input
from remediator.tickets.reconcile.wanted import of_case
from remediator.tickets.render.body import text
from remediator.tickets.render.content import Content
from remediator.tickets.render.facts import facts
from remediator.tickets.render.template import TextTemplate
from remediator.tickets.render.titles import titled

ROOM = 65_000


@dataclass(frozen=True, slots=True)
class Objects:
    """What the file holds: policies and nodes by name. `routes`: TicketRoutes."""

    tickets: Sequence[Ticket] = ()
    cases: Sequence[Case] = ()
    policies: Mapping[str, Policy] = field(default_factory=dict)
    nodes: Mapping[str, Node] = field(default_factory=dict)
    routes: Sequence[TicketRoute] = ()


@dataclass(frozen=True, slots=True)
class Preview:
    """One issue: its title and text. `problem`: what is wrong with its templates."""

    title: str
    text: str
    problem: str = ""


def preview(held: Objects, routes: Routes | None, template: TextTemplate | None, now: datetime) -> tuple[Preview, ...]:
    """The issue of each Ticket, and of each case that is in none of them."""
    tickets = {ticket.subject: ticket for ticket in held.tickets}
    for case in held.cases:
        subject = of_case(case)
        tickets.setdefault(subject, Ticket(subject.name, "", subject))
    return tuple(_preview(ticket, held, routes, template, now) for ticket in tickets.values())


def _preview(
    ticket: Ticket, held: Objects, routes: Routes | None, template: TextTemplate | None, now: datetime
) -> Preview:
    cases = [(case, _policy(case, held)) for case in held.cases]
    first = min((case.created for case, _ in cases), default=now)
    given = ticket_input(replace(ticket, opened=ticket.opened or first), cases)
    route = routes.choose(given.route, _traits(given, held), given.destination)[0] if routes else None
    links = (*routes.links, *route.links) if routes and route else ()
    cluster = routes.cluster if routes else ""
    known = facts(given, held.nodes.get(ticket.subject.node), _of(ticket.subject, held), now)
    made_by = template or (route.template if route else None)
    content = Content(given, ticket.previous, "", known, made_by, links, cluster, route.title if route else None)
    return Preview(titled(content)[0], *text(content, ROOM))


def _traits(given: TicketInput, held: Objects) -> Traits:
    node = held.nodes.get(given.subject.node)
    alerts = [alert for alert in given.alerts if alert.firing or not given.active]
    labels = [*(node.labels.items() if node else ()), *(pair for alert in alerts for pair in alert.labels)]
    return traits(given.severity, labels)


def _of(subject: Subject, held: Objects) -> list[Case]:
    return [case for case in held.cases if case.node == subject.node]


def _policy(case: Case, held: Objects) -> Policy:
    """The policy of a case, as if it had a ticket for each; one that is not in the file has no ladder."""
    policy = held.policies.get(case.policy) or _unknown(case.policy)
    return replace(policy, mode=Mode.ENFORCE, ticket=TicketWhen.ALWAYS)


def _unknown(name: str) -> Policy:
    zero = timedelta(0)
    return Policy(
        name=name,
        selector=Selector(()),
        when=(),
        ladder=(),
        severity=Severity.CRITICAL,
        verify=Verify(zero, zero, zero),
        attempts_max=1,
        attempts_window=zero,
        cooldown=zero,
        mode=Mode.ENFORCE,
    )
