"""Nodes that users keep out of service for a while: drained, counted, told when overdue, not given back by themselves.

Such a case is Escalated once the operation has succeeded: its user has the node, until they give it back. Pure.
"""

from datetime import datetime

from remediator.core.case import Case, KeepOut, Phase
from remediator.core.duration import in_words
from remediator.core.reasons import Reason

REASONS = frozenset({Reason.TAKEN_OUT, Reason.TAKE_OUT_OVERDUE})


def is_out(case: Case) -> bool:
    """Whether a user has the node of the case, and has not given it back."""
    return case.open and case.phase is Phase.ESCALATED and case.keep_out is not None and case.reason in REASONS


def is_overdue(case: Case) -> bool:
    """Whether the case says that its user has the node for longer than they said."""
    return is_out(case) and case.reason is Reason.TAKE_OUT_OVERDUE


def was_out(case: Case) -> bool:
    """Whether a user has or had the node, by what the case tells of itself."""
    return case.keep_out is not None and any(event.reason in REASONS for event in case.timeline)


def overdue(keep_out: KeepOut, now: datetime) -> bool:
    """Whether its time is over."""
    return keep_out.until <= now


def too_late(case: Case, now: datetime) -> Reason | None:
    """Why a case that holds no node yet must end: nobody wants to have it any more, so nobody's work must end."""
    late = case.keep_out is not None and not case.claimed and overdue(case.keep_out, now)
    return Reason.TAKE_OUT_OVERDUE if late else None


def standing(case: Case, now: datetime) -> tuple[Reason, str]:
    """Reason and message of a case whose user has the node. They change only when its time is over, or is changed."""
    if case.keep_out is None:
        raise ValueError(f"nobody keeps the node of case {case.name} out")
    taken, back = f"{case.node} is taken out {terms(case)}", f"remediator put-back {case.node}"
    if overdue(case.keep_out, now):
        more = f"remediator take-out {case.node} --for LENGTH"
        return Reason.TAKE_OUT_OVERDUE, f"{taken}; that time is over: give it back ({back}) or more time ({more})"
    return Reason.TAKEN_OUT, f"{taken}; give it back with: {back}"


def described(case: Case, now: datetime) -> str:
    """Who has the node, until when, since when that is over, and why; "" where nobody keeps it."""
    if case.keep_out is None:
        return ""
    late = f" (overdue by {in_words(now - case.keep_out.until)})" if overdue(case.keep_out, now) else ""
    return terms(case, late)


def terms(case: Case, late: str = "") -> str:
    """The same, whatever the time is."""
    if case.keep_out is None:
        return ""
    user = (case.manual.requested_by if case.manual else "") or "a user"
    reason = f": {case.keep_out.reason}" if case.keep_out.reason else ""
    return f"by {user} until {case.keep_out.until:%Y-%m-%d %H:%M:%S} UTC{late}{reason}"
