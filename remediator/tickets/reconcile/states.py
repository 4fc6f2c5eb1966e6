"""The life of an issue: one table for each state of a Ticket, with the reason for each row.

Nothing is done on what we remember of the issue alone: whatever writes to it has read it in the same pass (`issue`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from remediator.core.table import Row, Table


class TicketState(Enum):
    """What the Ticket remembers of its issue."""

    NO_ISSUE = auto()  # none, and none begun
    CREATING = auto()  # a create was begun in an earlier pass, and its answer was not recorded
    OPEN = auto()
    CLOSED_BY_US = auto()
    CLOSED_BY_USER = auto()
    DELETED = auto()  # by a user: there is nothing left to read


class IssueState(Enum):
    """The issue as the channel shows it in this pass."""

    UNREAD = auto()
    NOT_FOUND = auto()  # searched, and not found
    OPEN = auto()
    CLOSED_BY_US = auto()
    CLOSED_BY_USER = auto()
    DELETED = auto()


class Need(Enum):
    """Whether an issue is needed now."""

    NOT_NEEDED = auto()
    KEEP_OPEN = auto()  # no cause would open one, but a case is open: an issue that is open stays open
    NEEDED = auto()


class TextState(Enum):
    """Our part of the text against what was last written."""

    SAME = auto()
    TOO_SOON = auto()  # it differs, and was written less than a minute ago
    OUTDATED = auto()


@dataclass(frozen=True, slots=True)
class TicketObservation:
    """What is observed of one ticket."""

    ticket: TicketState
    need: Need
    issue: IssueState
    text: TextState
    new_cause: bool  # a cause began after the issue last reported it, or was never reported
    unreported: bool  # something is to be told in a comment
    parts_due: bool  # the label of the severity is another, or what was refused of the route is tried again
    closing_commented: bool  # the closing comment was sent
    maybe_twice: bool  # it was created twice, and it is time to look whether both succeeded
    read_due: bool  # the issue was not read for an hour
    closed_recently: bool  # less long ago than --reopen-within
    create_again: bool  # long enough since the create whose answer is not known
    causes_over: bool  # a cause that an issue closed by a user had reported is not active any more


class Action(Enum):
    """What a pass over the ticket does next."""

    NOTHING = auto()
    WAIT = auto()
    CREATE = auto()
    SEARCH = auto()  # look for what a create may have left
    TAKE_OVER = auto()  # record what the search has found as our issue
    MERGE_DUPLICATES = auto()  # we created twice: close all but the oldest
    GIVE_UP_CREATING = auto()  # nothing was created, and no issue is needed any more
    READ = auto()
    EDIT = auto()
    LABEL = auto()  # that of the severity, or what was refused of the route before
    COMMENT = auto()
    CLOSE = auto()
    RECORD_CLOSED_BY_US = auto()
    REOPEN = auto()
    RECORD_REOPENED = auto()  # a user opened it again
    RECORD_CLOSED_BY_USER = auto()
    RECORD_DELETED = auto()
    DROP_OVER_CAUSES = auto()  # forget reported causes that are over


def _row(action: Action, why: str, **asks: object) -> Row[Action]:
    return Row(asks, action, why)


_NO_ISSUE = Table(
    (
        _row(Action.CREATE, "An active cause needs an issue, and there is none.", need=Need.NEEDED),
        _row(Action.NOTHING, "No issue is needed."),
    )
)
_CREATING = Table(
    (
        _row(
            Action.SEARCH,
            "The answer to our create was lost: it may have been carried out, so we search before anything else.",
            issue=IssueState.UNREAD,
        ),
        _row(Action.TAKE_OVER, "The create was carried out: its issue is ours.", issue=IssueState.OPEN),
        _row(
            Action.TAKE_OVER,
            "It was carried out, and closed since: it is still ours, and creating another would make two.",
            issue=IssueState.CLOSED_BY_US,
        ),
        _row(
            Action.TAKE_OVER,
            "It was carried out, and a user closed the issue: it is recorded first, so that the user's wish is known.",
            issue=IssueState.CLOSED_BY_USER,
        ),
        _row(
            Action.WAIT,
            "Not found yet, but a search shows a new issue only minutes later: creating now could make two.",
            create_again=False,
        ),
        _row(Action.CREATE, "Not found for ten minutes, and an issue is still needed.", need=Need.NEEDED),
        _row(Action.GIVE_UP_CREATING, "Not found for ten minutes, and no issue is needed any more."),
    )
)
_OPEN = Table(
    (
        _row(
            Action.MERGE_DUPLICATES,
            "First, because it may change which issue is ours: two of our creates may have been carried out.",
            maybe_twice=True,
        ),
        _row(Action.RECORD_DELETED, "A deleted issue cannot be written to.", issue=IssueState.DELETED),
        _row(
            Action.RECORD_CLOSED_BY_USER,
            "A user's decision stands before all writes of ours.",
            issue=IssueState.CLOSED_BY_USER,
        ),
        _row(
            Action.RECORD_CLOSED_BY_US,
            "We closed it, in this pass or before a crash: only the record is missing.",
            issue=IssueState.CLOSED_BY_US,
        ),
        _row(
            Action.READ,
            "It is to be closed, and whatever is written is written to an issue that was read in this pass.",
            issue=IssueState.UNREAD,
            need=Need.NOT_NEEDED,
        ),
        _row(Action.READ, "A comment is due: read first.", issue=IssueState.UNREAD, unreported=True),
        _row(
            Action.READ,
            "The label, or what is missing of the route, is to be written: read first.",
            issue=IssueState.UNREAD,
            parts_due=True,
        ),
        _row(
            Action.READ,
            "Not read for an hour: without a look we would not see that a user closed it.",
            issue=IssueState.UNREAD,
            read_due=True,
        ),
        _row(
            Action.READ,
            "The text is to be replaced: what users wrote around it must be known.",
            issue=IssueState.UNREAD,
            text=TextState.OUTDATED,
        ),
        _row(
            Action.EDIT,
            "Before the comment, so that whoever follows the notification reads a text that is up to date.",
            issue=IssueState.OPEN,
            text=TextState.OUTDATED,
        ),
        _row(
            Action.LABEL,
            "Before the comment, for the same reason.",
            issue=IssueState.OPEN,
            parts_due=True,
        ),
        _row(Action.COMMENT, "What is new is reported once.", issue=IssueState.OPEN, unreported=True),
        _row(
            Action.COMMENT,
            "Before it is closed, a comment says how it ended.",
            issue=IssueState.OPEN,
            need=Need.NOT_NEEDED,
            closing_commented=False,
        ),
        _row(Action.CLOSE, "No cause is left, and that was reported.", issue=IssueState.OPEN, need=Need.NOT_NEEDED),
        _row(
            Action.WAIT,
            "The text was written less than a minute ago; the next edit holds all changes until then.",
            text=TextState.TOO_SOON,
        ),
        _row(Action.NOTHING, "The issue says what is so."),
    )
)
_CLOSED_BY_US = Table(
    (
        _row(Action.NOTHING, "It is closed, and no issue is needed.", need=Need.NOT_NEEDED),
        _row(
            Action.NOTHING,
            "A case that opens no issue does not reopen one either.",
            need=Need.KEEP_OPEN,
        ),
        _row(
            Action.READ,
            "A cause is active again: whether users touched the issue decides what comes next.",
            issue=IssueState.UNREAD,
        ),
        _row(Action.RECORD_DELETED, "A deleted issue cannot be reopened.", issue=IssueState.DELETED),
        _row(Action.RECORD_REOPENED, "A user opened it again: it is in use.", issue=IssueState.OPEN),
        _row(
            Action.RECORD_CLOSED_BY_USER,
            "A user opened and closed it since: what a user closed is not reopened.",
            issue=IssueState.CLOSED_BY_USER,
        ),
        _row(
            Action.REOPEN,
            "Within --reopen-within it is the same story, so it goes on in the same issue.",
            issue=IssueState.CLOSED_BY_US,
            closed_recently=True,
        ),
        _row(Action.CREATE, "Later a new issue is begun, which names the one before."),
    )
)
_CLOSED_BY_USER = Table(
    (
        _row(Action.RECORD_DELETED, "A deleted issue is not read again.", issue=IssueState.DELETED),
        _row(Action.RECORD_REOPENED, "A user opened it again, and wants it kept up to date.", issue=IssueState.OPEN),
        _row(
            Action.READ,
            "A new cause needs an issue: if the user has opened this one again, it is taken.",
            issue=IssueState.UNREAD,
            new_cause=True,
        ),
        _row(
            Action.READ,
            "Not read for an hour: without a look we would not see that a user opened it again.",
            issue=IssueState.UNREAD,
            read_due=True,
        ),
        _row(
            Action.CREATE, "The user closed the issue for the causes it reported; this one began later.", new_cause=True
        ),
        _row(
            Action.DROP_OVER_CAUSES,
            "A cause that is over is forgotten: when it comes back, it is new.",
            causes_over=True,
        ),
        _row(Action.NOTHING, "The user has closed the issue for these causes: it stays closed."),
    )
)
_DELETED = Table(
    (
        _row(
            Action.CREATE,
            "The user deleted the issue with the causes it reported; this one began later.",
            new_cause=True,
        ),
        _row(
            Action.DROP_OVER_CAUSES,
            "A cause that is over is forgotten: when it comes back, it is new.",
            causes_over=True,
        ),
        _row(Action.NOTHING, "There is nothing to read or to write."),
    )
)
TABLES: Mapping[TicketState, Table[Action]] = {
    TicketState.NO_ISSUE: _NO_ISSUE,
    TicketState.CREATING: _CREATING,
    TicketState.OPEN: _OPEN,
    TicketState.CLOSED_BY_US: _CLOSED_BY_US,
    TicketState.CLOSED_BY_USER: _CLOSED_BY_USER,
    TicketState.DELETED: _DELETED,
}


def action(observation: TicketObservation) -> Action:
    """What a pass over the ticket does next."""
    return TABLES[observation.ticket].result(observation)
