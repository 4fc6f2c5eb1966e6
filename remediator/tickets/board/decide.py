"""Where an issue stands on a board, and whether its card is moved. Pure."""

from collections.abc import Iterable
from enum import Enum

from remediator.core.case import Case, Phase
from remediator.core.ticket import Ticket, TicketPhase
from remediator.tickets.channels.boards import BoardPlace
from remediator.tickets.reconcile.wanted import needs_user

UNDER_REPAIR = (Phase.DRAINING, Phase.OPERATING, Phase.VERIFYING)


class BoardStep(Enum):
    """What is done about a card."""

    MOVE = "move"
    RECORD = "record"  # it stands there already: only our record of it is missing
    LEAVE = "leave"  # a user has moved it


def place(ticket: Ticket, cases: Iterable[Case]) -> BoardPlace:
    """Where the issue stands: of its open cases, those that wait for a person count most."""
    if ticket.phase is TicketPhase.CLOSED:
        return BoardPlace.DONE
    open_cases = [case for case in cases if case.open]
    if any(case.phase is Phase.ESCALATED or any(map(needs_user, case.blocks)) for case in open_cases):
        return BoardPlace.PERSON
    return BoardPlace.REPAIRING if any(case.phase in UNDER_REPAIR for case in open_cases) else BoardPlace.WAITING


def step(wanted: str, written: str, current: str) -> BoardStep:
    """What is done where `written` is the column that we moved it to last, "" for never.

    Only a card that stands where we put it is moved: what a user has moved stays until the user moves it back.
    """
    if current == wanted:
        return BoardStep.RECORD
    return BoardStep.MOVE if current == written or not written else BoardStep.LEAVE
