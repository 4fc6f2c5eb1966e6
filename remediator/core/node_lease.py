"""The Lease by which the controllers of medik8s tell each other who works on a node, and what is done with one. Pure.

Their rules (github.com/medik8s/common, pkg/lease): it is named after its node, its holder renews it, whoever finds it
expired, or without times, may take it over, and its holder deletes it at the end.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto

from remediator.core.case import AttemptOutcome, Case, Phase
from remediator.core.clocks import AHEAD
from remediator.core.outside_request import NODE_HEALTH_CHECK

PREFIX = "remediator/"  # of our holders; then comes the name of the case
_OF_NODE = "node-"
LONGEST_HOLDER = 253  # letters of one in a sentence
LENGTH = timedelta(minutes=10)  # as NodeHealthCheck takes it
RENEW = LENGTH / 2
JUST = timedelta(minutes=1)  # a case has so long to claim its node, once it has the Lease


@dataclass(frozen=True, slots=True)
class NodeLease:
    """One Lease. `renewed` is None where it has no time, or none that can be read."""

    name: str
    holder: str
    renewed: datetime | None
    length: timedelta

    @property
    def ours(self) -> bool:
        """Whether a case of ours holds it."""
        return self.holder.startswith(PREFIX)

    @property
    def case(self) -> str:
        """The name of that case."""
        return self.holder.removeprefix(PREFIX)


class LeaseStanding(Enum):
    """What a Lease is to a case."""

    FREE = auto()  # there is none, or it may be taken over
    OURS = auto()
    LENT = auto()  # who holds it has asked for the case
    HELD = auto()  # another system works on the node


class LeaseStep(Enum):
    """What is done with a Lease that is there, or with that of a case."""

    NOTHING = auto()
    TAKE = auto()
    RENEW = auto()
    GIVE_BACK = auto()


def name(node: str) -> str:
    """The name of the Lease of a node.

    >>> name("gpu-17")
    'node-gpu-17'
    """
    return f"{_OF_NODE}{node}"


def node(lease: str) -> str:
    """The node of a Lease of this name; "" where it is not that of a node."""
    return lease.removeprefix(_OF_NODE) if lease.startswith(_OF_NODE) else ""


def holder(case: Case) -> str:
    """Who holds the Lease for a case."""
    return f"{PREFIX}{case.name}"


def valid(lease: NodeLease, now: datetime) -> bool:
    """Whether its holder has it still: by the clocks of both, which may differ by AHEAD."""
    if not lease.holder or lease.renewed is None or lease.renewed > now + AHEAD:
        return False
    return lease.renewed + lease.length >= now - AHEAD


def lent(case: Case, holder: str) -> bool:
    """Whether the holder is the NodeHealthCheck that has asked for the case: it holds the Lease until the case ends."""
    asked = case.manual.requested_by if case.manual else ""
    return asked.startswith(f"{NODE_HEALTH_CHECK} ") and holder == asked.replace(" ", "-", 1)


def standing(lease: NodeLease | None, case: Case, now: datetime) -> LeaseStanding:
    """What the Lease of its node is to the case."""
    if lease is None:
        return LeaseStanding.FREE
    if lease.holder == holder(case):
        return LeaseStanding.OURS
    if lease.ours or not valid(lease, now):  # the marks on the node say which of our cases has it
        return LeaseStanding.FREE
    return LeaseStanding.LENT if lent(case, lease.holder) else LeaseStanding.HELD


def works(case: Case) -> bool:
    """Whether a case works on its node. One that a person has does not, unless an operation goes on."""
    goes_on = case.attempt is not None and case.attempt.outcome is AttemptOutcome.OPEN
    return case.open and case.claimed and not case.unreadable and (case.phase is not Phase.ESCALATED or goes_on)


def step_of_case(lease: NodeLease | None, case: Case, now: datetime) -> LeaseStep:
    """What a case does with the Lease of its node, to work there."""
    match standing(lease, case, now):
        case LeaseStanding.FREE:
            return LeaseStep.TAKE
        case LeaseStanding.OURS if lease is not None and _due(lease, now):
            return LeaseStep.RENEW
    return LeaseStep.NOTHING


def step_of_lease(lease: NodeLease, case: Case | None, now: datetime) -> LeaseStep:
    """What is done with a Lease that is there. `case`: that holds it, None where it is gone."""
    if not lease.ours:
        return LeaseStep.NOTHING
    if case is None or not case.open:
        return LeaseStep.GIVE_BACK
    if case.unreadable or works(case):  # what cannot be read may be at work
        return LeaseStep.RENEW if _due(lease, now) else LeaseStep.NOTHING
    claiming = not case.claimed and lease.renewed is not None and now - lease.renewed < JUST
    return LeaseStep.NOTHING if claiming else LeaseStep.GIVE_BACK


def _due(lease: NodeLease, now: datetime) -> bool:
    return lease.renewed is None or not now - RENEW < lease.renewed <= now + AHEAD


def untaken(why: str, node: str) -> str:
    """Why nobody can tell who works on the node, and what to look at."""
    return f"nobody can tell who works on {node}: {why}; look at the Lease {name(node)}"


def held(holder: str, node: str) -> str:
    """Who works on the node, and by which sign that is known."""
    holder = holder[:LONGEST_HOLDER]
    return f"{holder} works on {node} (it holds the Lease {name(node)})"
