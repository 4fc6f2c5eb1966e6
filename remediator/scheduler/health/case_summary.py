"""One case as far as placing goes, and whether placing still goes by it. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from remediator.core.case import Case, Phase
from remediator.core.guard import waits_in_queue
from remediator.core.reasons import Reason

RECENT = timedelta(hours=72)  # how long a repair is remembered: the default window of a relapse


@dataclass(frozen=True, slots=True)
class CaseSummary:
    """One case as far as placing goes. `repaired` is when operations ended it well."""

    name: str
    node: str
    node_uid: str
    policy: str
    open: bool
    claimed: bool
    escalated: bool
    waits: bool
    only_escalates: bool  # nothing will be done to the node
    repaired: datetime | None
    manual: bool = False  # a user asks for an operation: that says nothing of the node's health


def summary(case: Case) -> CaseSummary:
    """The little that must be kept of a case."""
    waits = case.open and not case.claimed and waits_in_queue(case.blocks)
    repairs = bool(case.attempts) and not case.manual and case.new_node is None
    repaired = case.ended if case.phase is Phase.RECOVERED and repairs else None
    return CaseSummary(
        name=case.name,
        node=case.node,
        node_uid=case.node_uid,
        policy=case.policy,
        open=case.open,
        claimed=case.open and case.claimed,
        escalated=case.open and case.phase is Phase.ESCALATED,
        waits=waits,
        only_escalates=any(block.reason is Reason.TICKET_ONLY for block in case.blocks),
        repaired=repaired,
        manual=case.manual is not None,
    )


def repaired_recently(case: CaseSummary, now: datetime) -> bool:
    """Whether operations ended the case well not long ago."""
    return case.repaired is not None and now - case.repaired < RECENT


def counts(case: CaseSummary, now: datetime) -> bool:
    """Whether placing goes by the case."""
    return case.open or repaired_recently(case, now)
