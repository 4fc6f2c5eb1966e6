"""What is done next in one room: one table for each state of an issue there, with the reason for each row. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from remediator.core.table import Row, Table
from remediator.tickets.channels.chat import Looked


class ThreadState(Enum):
    """What Tickets remember of a thread."""

    NONE = auto()
    POSTING = auto()  # a post was begun in an earlier pass, and its answer was not recorded
    POSTED = auto()
    GIVEN_UP = auto()


class Want(Enum):
    """Whether a room is to hear of an issue that it has not heard of."""

    NOT_WANTED = auto()
    LATER = auto()  # in the quiet hours of its route, and not Critical
    WANTED = auto()


class Crowd(Enum):
    """Whether many issues come at the same time."""

    FEW = auto()
    MANY = auto()
    POSTING = auto()  # the thread for many is being posted
    POSTED = auto()


class MessageState(Enum):
    """The first message against what was last written."""

    SAME = auto()  # or it cannot be changed
    TOO_SOON = auto()
    OUTDATED = auto()


class Act(Enum):
    """What a pass does in a room."""

    NOTHING = auto()
    POST = auto()
    POST_CROWD = auto()  # begin one thread for all that wait
    JOIN = auto()
    LOOK = auto()  # for what a post may have left
    EDIT = auto()
    TELL = auto()
    GIVE_UP = auto()
    FORGET = auto()  # what comes back after this begins another thread


@dataclass(frozen=True, slots=True)
class ThreadObservation:
    """What is observed of one issue without a thread, or of one thread."""

    state: ThreadState
    want: Want = Want.NOT_WANTED
    crowd: Crowd = Crowd.FEW
    looked: Looked | None = None  # what the look of this leader has shown, None before it
    settled: bool = False  # a post that was carried out would be seen by now
    tries_left: bool = True
    text: MessageState = MessageState.SAME
    untold: bool = False  # a person is needed, it is over, or it is back
    quiet: bool = False  # nobody is to be called now
    over: bool = False
    over_long: bool = False  # for a day


def _row(act: Act, why: str, **asks: object) -> Row[Act]:
    return Row(asks, act, why)


TABLES: Mapping[ThreadState, Table[Act]] = {
    ThreadState.NONE: Table(
        (
            _row(Act.NOTHING, "The room does not hear of it.", want=Want.NOT_WANTED),
            _row(Act.NOTHING, "Its route is quiet now: it is posted later, if it is still there.", want=Want.LATER),
            _row(Act.NOTHING, "Where the crowd's thread is, is known soon.", crowd=Crowd.POSTING),
            _row(Act.JOIN, "A storm is one message, which is edited.", crowd=Crowd.POSTED),
            _row(Act.POST_CROWD, "More come at the same time than a person would read one by one.", crowd=Crowd.MANY),
            _row(Act.POST, "One thread for one issue."),
        )
    ),
    ThreadState.POSTING: Table(
        (
            _row(Act.NOTHING, "The request may still be under way.", settled=False),
            _row(Act.LOOK, "It may have been carried out: posting again could make two.", looked=None),
            _row(Act.GIVE_UP, "It is not there, and the room need not hear of it any more.", want=Want.NOT_WANTED),
            _row(Act.GIVE_UP, "Each post may have arrived: it is not repeated for ever.", tries_left=False),
            _row(Act.POST, "It is not there, or nobody can tell: twice is better than never."),
        )
    ),
    ThreadState.POSTED: Table(
        (
            _row(Act.FORGET, "What comes back after a day is another story.", over_long=True),
            _row(Act.EDIT, "Before the reply: whoever follows it reads what is so.", text=MessageState.OUTDATED),
            _row(Act.NOTHING, "In quiet hours nobody is called; the first message says it.", untold=True, quiet=True),
            _row(Act.TELL, "A reply tells those who follow the thread.", untold=True),
            _row(Act.NOTHING, "The room knows what is so, or was told less than a minute ago."),
        )
    ),
    ThreadState.GIVEN_UP: Table(
        (
            _row(Act.FORGET, "It is over: what comes next is told anew.", over=True),
            _row(Act.NOTHING, "Tried in vain, or deleted by a user."),
        )
    ),
}


def act(observation: ThreadObservation) -> Act:
    """What is done next."""
    return TABLES[observation.state].result(observation)
