"""What is known of tickets, cases and policies: the reflectors' facts, and tickets as the server last returned them."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from remediator.core.case import Case
from remediator.core.policy import Policy
from remediator.core.reasons import Reason
from remediator.core.ticket import About, Subject, Ticket
from remediator.tickets.reconcile.wanted import of_case


def slim(case: Case) -> Case:
    """A case as far as a ticket needs it: of an ended one no evidence, and of its story only why it was held."""
    held = tuple(moment for moment in case.timeline if moment.reason is Reason.SHARED_CAUSE)
    return case if case.open else replace(case, evidence=None, timeline=held)


ANSWER_SECONDS = 2.0


class TicketCache:
    """Facts by name. `tickets`, `cases` and `policies` are the reflectors' own stores."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.tickets: Mapping[str, Ticket] = {}
        self.cases: Mapping[str, Case] = {}
        self.policies: Mapping[str, Policy] = {}
        self._monotonic = monotonic
        self._answered: dict[str, tuple[Ticket, float]] = {}
        self._by_node: defaultdict[str, set[str]] = defaultdict(set)
        self._by_policy: defaultdict[str, set[str]] = defaultdict(set)

    def ticket(self, name: str) -> Ticket | None:
        """The newest we know of one Ticket."""
        base = self.tickets.get(name)
        answered, until = self._answered.get(name, (None, 0.0))
        if answered is None or self._monotonic() > until or (base and _reaches(base.version, answered.version)):
            self._answered.pop(name, None)
            return base
        return answered

    def note(self, ticket: Ticket) -> None:
        """What the server answered; it counts until the reflector has caught up, or should have."""
        self._answered[ticket.name] = (ticket, self._monotonic() + ANSWER_SECONDS)

    def ticket_changed(self, name: str, new: Ticket | None) -> None:
        """What the reflector says: one that is gone was not answered either."""
        if new is None:
            self._answered.pop(name, None)

    def case_changed(self, name: str, old: Case | None, new: Case | None) -> None:
        """What the reflector says. Neither node nor policy of a case ever changes."""
        case = new or old
        if case is None:
            return
        for names in (self._by_node[case.node], self._by_policy[case.policy]):
            (names.discard if new is None else names.add)(name)

    def about(self, subject: Subject) -> Iterator[tuple[Case, Policy | None]]:
        """Cases that may stand behind a ticket, with their policies."""
        names = self._by_policy.get(subject.policy) if subject.about is About.CAUSE else self._by_node.get(subject.node)
        for name in sorted(names or ()):
            case = self.cases.get(name)
            if case is not None:
                yield case, self.policies.get(case.policy)

    def subjects(self, case: Case) -> set[Subject]:
        """The tickets that a case may be told of in, whatever its policy says today."""
        return {of_case(case), Subject(About.NODE, node=case.node)}

    def every(self) -> set[Subject]:
        """All that there may be a ticket about."""
        found = {ticket.subject for ticket in self.tickets.values()}
        return found.union(*(self.subjects(case) for case in self.cases.values() if case.open))

    def under(self, policy: str) -> set[Subject]:
        """All that a policy has a say in."""
        open_cases = (case for name in self._by_policy.get(policy, ()) if (case := self.cases.get(name)) and case.open)
        found = {ticket.subject for ticket in self.tickets.values() if ticket.subject.about is not About.ALERT}
        return found.union(*(self.subjects(case) for case in open_cases))


def _reaches(version: str, other: str) -> bool:
    """Whether a resourceVersion is the other or newer; those that are no numbers have no order."""
    if version.isdecimal() and other.isdecimal():
        return int(version) >= int(other)
    return version == other
