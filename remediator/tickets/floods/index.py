"""The alerts that fire on nodes, from the informer of Tickets, and which of them many nodes have."""

from collections import Counter, defaultdict

from remediator.core.ticket import About, Subject, Ticket
from remediator.kube.runtime.informer import Informer
from remediator.tickets.floods.fold import NodeAlert, firing, is_shared, is_told, shared_subject, untold
from remediator.tickets.floods.limits import FloodLimits


class Folding:
    """What has one issue for many nodes. Without `limits` nothing has."""

    def __init__(self, tickets: Informer[Ticket], limits: FloodLimits | None) -> None:
        self._tickets, self._limits = tickets, limits
        self._firing: defaultdict[Subject, set[str]] = defaultdict(set)  # names of Tickets, by the common subject
        self._changes: Counter[Subject] = Counter()
        self._losses: Counter[Subject] = Counter()  # changes after which it may be common no more
        self._common: dict[Subject, int] = {}  # those that are, and how many losses there were then
        self._nodes: dict[Subject, tuple[int, tuple[NodeAlert, ...]]] = {}  # the same of where they fire
        tickets.on_view(self._view)

    def nodes(self, subject: Subject) -> tuple[NodeAlert, ...]:
        """Where the alert of this subject fires, if one issue tells of it for many nodes; else nothing."""
        if not self._firing.get(subject) or self._limits is None:
            return ()
        changes, known = self._nodes.get(subject, (-1, ()))
        if changes != self._changes[subject]:
            known = self._found(subject, self._limits)
            self._nodes[subject] = self._changes[subject], known
        return known

    def elsewhere(self, ticket: Ticket) -> frozenset[str]:
        """The fingerprints of those alerts of a node that the common issue tells of, and no issue of the node."""
        return frozenset(
            alert.fingerprint
            for alert in firing(ticket)
            if not is_told(ticket, alert) and self._is_common(shared_subject(alert))
        )

    def touched(self, *tickets: Ticket | None) -> list[Subject]:
        """The common subjects that a change of Tickets may concern, in the same order in every process."""
        common = [shared_subject(alert) for ticket in tickets if ticket for alert in firing(ticket)]
        return [subject for subject in dict.fromkeys(common) if self._may_be_common(subject)]

    def every(self) -> list[Subject]:
        """All that may have a common issue."""
        return [subject for subject in self._firing if self._may_be_common(subject)]

    def _may_be_common(self, subject: Subject) -> bool:
        if self._limits is None:
            return False
        return len(self._firing[subject]) >= self._limits.fold_nodes or self._tickets.get(subject.name) is not None

    def _is_common(self, subject: Subject) -> bool:
        """One more node changes nothing about that; so in a storm it is not counted anew for each."""
        if self._common.get(subject) == self._losses[subject]:
            return True
        if not self.nodes(subject):
            return False
        self._common[subject] = self._losses[subject]
        return True

    def _found(self, subject: Subject, limits: FloodLimits) -> tuple[NodeAlert, ...]:
        held = [ticket for name in self._firing[subject] if (ticket := self._tickets.get(name))]
        nodes = untold(held, subject)
        return nodes if is_shared(nodes, self._tickets.get(subject.name), limits) else ()

    def _view(self, old: Ticket | None, new: Ticket | None) -> None:
        ticket = new or old
        if ticket is None or self._limits is None:
            return
        if ticket.subject.about is About.ALERT:
            self._changes[ticket.subject] += 1
            self._losses[ticket.subject] += 1
            return
        before, now = _untold(old), _untold(new)
        for subject in before ^ now:
            self._changes[subject] += 1
        for subject in before - now:
            self._losses[subject] += 1
        self._place(ticket.name, _subjects(old), _subjects(new))

    def _place(self, name: str, before: set[Subject], now: set[Subject]) -> None:
        for subject in before - now:
            self._firing[subject].discard(name)
            if not self._firing[subject]:
                for known in (self._firing, self._common, self._nodes):
                    known.pop(subject, None)
        for subject in now - before:
            self._firing[subject].add(name)


def _subjects(ticket: Ticket | None) -> set[Subject]:
    return {shared_subject(alert) for alert in firing(ticket)} if ticket else set()


def _untold(ticket: Ticket | None) -> set[Subject]:
    if ticket is None:
        return set()
    return {shared_subject(alert) for alert in firing(ticket) if not is_told(ticket, alert)}
