"""The facts that tickets rest on, from the informers of the replica: for one subject, or for all of them."""

from collections.abc import Iterable, Iterator
from typing import Any

from remediator.core.case import Case
from remediator.core.policy import Policy
from remediator.core.ticket import About, Subject, Ticket
from remediator.core.ticket_route import TicketRoute
from remediator.kube.informers import Informers
from remediator.kube.runtime.informer import Informer
from remediator.tickets.floods.index import Folding
from remediator.tickets.floods.limits import FloodLimits
from remediator.tickets.reconcile.wanted import of_case

OF_ALERTS = (About.ALERT, About.OWNER, About.OVERFLOW)  # whatever policies say


class TicketCache:
    """Tickets, cases, policies and nodes as this replica knows them, with its own writes to Tickets."""

    def __init__(self, informers: Informers, limits: FloodLimits | None = None) -> None:
        """`limits`: when alerts of many nodes have one issue; without, never."""
        self.tickets, self.cases, self.policies = informers.tickets, informers.cases, informers.policies
        self.nodes = informers.nodes
        self._memory = informers.fault_memory
        self.folding = Folding(informers.tickets, limits)
        self.team_routes: tuple[Informer[TicketRoute], ...] = ()

    def take(self, routes: Informer[TicketRoute]) -> None:
        """Rest on TicketRoutes, too: an issue that was filed before they were read would never move."""
        self.team_routes = (routes,)

    @property
    def facts(self) -> tuple[Informer[Any], ...]:
        """What is to be told rests on these; who is told, on routes of teams, too."""
        return self.tickets, self.cases, self.policies, self.nodes

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """All that a pass rests on."""
        return self.tickets, self.cases, self.policies, *self.team_routes

    def ticket(self, name: str) -> Ticket | None:
        """The newest we know of one Ticket."""
        return self.tickets.get(name)

    def note(self, ticket: Ticket) -> None:
        """What the server answered; it counts until the watch has caught up, or should have."""
        self.tickets.note(ticket.name, ticket)

    def has_node(self, name: str) -> bool:
        """Whether a node of this name is known here now; one that has just come, or any while cut off, may not be."""
        return self.nodes.fresh() and self.nodes.get(name) is not None

    def earlier(self, subject: Subject, cases: Iterable[Case]) -> list[Case]:
        """All cases of a node and of the GPUs that these cases are about, wherever these were then."""
        if subject.about is not About.NODE:
            return []
        of_gpus = (other for case in cases for others in self._memory.of_gpus(case).values() for other in others)
        known = {case.name: case for case in (*self.cases.by("node", subject.node), *of_gpus)}
        return list(known.values())

    def knows_node(self, name: str) -> bool:
        """Whether a node is known here now, or was there when its Ticket was made: that one goes on without it."""
        return self.has_node(name) or self.ticket(Subject(About.NODE, node=name).name) is not None

    def about(self, subject: Subject) -> Iterator[tuple[Case, Policy | None]]:
        """Cases that may stand behind a ticket, with their policies."""
        shared = subject.about is About.CAUSE
        for case in self.cases.by("policy", subject.policy) if shared else self.cases.by("node", subject.node):
            yield case, self.policies.get(case.policy)

    def subjects(self, case: Case) -> list[Subject]:
        """The tickets that a case may be told of in, whatever its policy says today."""
        return list(dict.fromkeys((of_case(case), Subject(About.NODE, node=case.node))))

    def every(self) -> list[Subject]:
        """All that there may be a ticket about, in the same order in every process; but what waits for its turn."""
        return self._with_cases([*(ticket.subject for ticket in self.tickets), *self.folding.every()], self.cases)

    def under(self, policy: str) -> list[Subject]:
        """All that a policy has a say in, in the same way."""
        subjects = [ticket.subject for ticket in self.tickets if ticket.subject.about not in OF_ALERTS]
        return self._with_cases(subjects, self.cases.by("policy", policy))

    def _with_cases(self, subjects: list[Subject], cases: Iterable[Case]) -> list[Subject]:
        of_cases = [subject for case in cases if case.open for subject in self.subjects(case)]
        return list(dict.fromkeys(subjects + of_cases))
