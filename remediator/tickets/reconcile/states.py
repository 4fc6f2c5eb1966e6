"""The life of an issue: one table per state, read from the top, first row that fits; a last row asks nothing.

Nothing is done on what we remember of the issue alone: whatever writes to it has read it in the same pass (`sight`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto


class State(Enum):
    """What the Ticket remembers."""

    ABSENT = auto()  # no issue, and none begun
    CREATING = auto()  # a create was begun in an earlier pass, and its end was not seen
    OPEN = auto()
    CLOSED = auto()  # by us
    LEFT = auto()  # closed by a person
    LOST = auto()  # deleted by a person: there is nothing left to look at


class Cause(Enum):
    """What stands behind the issue now."""

    NONE = auto()
    KEPT = auto()  # nothing that would open one, but a case is open: what is open stays open
    STANDS = auto()


class Text(Enum):
    """Our part of the body, against what was last written."""

    SAME = auto()
    HASTY = auto()  # it differs, and was written a moment ago
    STALE = auto()


class Sight(Enum):
    """The issue as the tracker shows it in this pass."""

    UNREAD = auto()
    NONE = auto()  # looked for, and not found
    OPEN = auto()
    CLOSED = auto()  # by us
    PERSON = auto()  # closed by a person
    GONE = auto()  # deleted, as only a person can


@dataclass(frozen=True, slots=True)
class Seen:
    """What is observed of one ticket."""

    state: State
    cause: Cause
    sight: Sight
    text: Text
    fresh: bool  # a cause began after what the issue says of it
    untold: bool  # something happened that people should hear of
    relabel: bool  # the severity is another one
    closing_commented: bool  # the closing comment was sent
    doubt: bool  # created twice, and it is time to look whether both succeeded
    look: bool  # the issue was not read for long
    recent: bool  # it was closed lately
    waited: bool  # long enough since the create whose end is not known
    lapsed: bool  # something of what is remembered of an issue that a person closed does not stand any more


class Action(Enum):
    """What a pass does."""

    REST = auto()
    WAIT = auto()
    CREATE = auto()  # write the intent, then create
    LOOK = auto()  # search for what a create may have left
    ADOPT = auto()  # it was created, indeed
    FORGET = auto()  # it was not, and is not needed any more
    READ = auto()
    SETTLE = auto()  # search for twins and close the younger
    EDIT = auto()
    LABEL = auto()
    TELL = auto()  # comment
    CLOSE = auto()
    CLOSED = auto()  # record that we closed it
    REOPEN = auto()
    RESUME = auto()  # a person opened it again
    LEAVE = auto()  # record that a person closed it
    LOSE = auto()  # record that a person deleted it
    REMEMBER = auto()  # drop what does not stand any more


Row = tuple[Mapping[str, object], Action]

_ABSENT: tuple[Row, ...] = (
    ({"cause": Cause.STANDS}, Action.CREATE),
    ({}, Action.REST),
)
_CREATING: tuple[Row, ...] = (
    ({"sight": Sight.UNREAD}, Action.LOOK),
    ({"sight": Sight.OPEN}, Action.ADOPT),
    ({"sight": Sight.CLOSED}, Action.ADOPT),
    ({"sight": Sight.PERSON}, Action.ADOPT),
    ({"waited": False}, Action.WAIT),
    ({"cause": Cause.STANDS}, Action.CREATE),
    ({}, Action.FORGET),
)
_OPEN: tuple[Row, ...] = (
    ({"doubt": True}, Action.SETTLE),
    ({"sight": Sight.GONE}, Action.LOSE),
    ({"sight": Sight.PERSON}, Action.LEAVE),
    ({"sight": Sight.CLOSED}, Action.CLOSED),
    ({"sight": Sight.UNREAD, "cause": Cause.NONE}, Action.READ),
    ({"sight": Sight.UNREAD, "untold": True}, Action.READ),
    ({"sight": Sight.UNREAD, "relabel": True}, Action.READ),
    ({"sight": Sight.UNREAD, "look": True}, Action.READ),
    ({"sight": Sight.UNREAD, "text": Text.STALE}, Action.READ),
    ({"sight": Sight.OPEN, "text": Text.STALE}, Action.EDIT),
    ({"sight": Sight.OPEN, "relabel": True}, Action.LABEL),
    ({"sight": Sight.OPEN, "untold": True}, Action.TELL),
    ({"sight": Sight.OPEN, "cause": Cause.NONE, "closing_commented": False}, Action.TELL),
    ({"sight": Sight.OPEN, "cause": Cause.NONE}, Action.CLOSE),
    ({"text": Text.HASTY}, Action.WAIT),
    ({}, Action.REST),
)
_CLOSED: tuple[Row, ...] = (
    ({"cause": Cause.NONE}, Action.REST),
    ({"cause": Cause.KEPT}, Action.REST),
    ({"sight": Sight.UNREAD}, Action.READ),
    ({"sight": Sight.GONE}, Action.LOSE),
    ({"sight": Sight.OPEN}, Action.RESUME),
    ({"sight": Sight.PERSON}, Action.LEAVE),
    ({"sight": Sight.CLOSED, "recent": True}, Action.REOPEN),
    ({}, Action.CREATE),
)
_LEFT: tuple[Row, ...] = (
    ({"sight": Sight.GONE}, Action.LOSE),
    ({"sight": Sight.OPEN}, Action.RESUME),
    ({"sight": Sight.UNREAD, "fresh": True}, Action.READ),
    ({"sight": Sight.UNREAD, "look": True}, Action.READ),
    ({"fresh": True}, Action.CREATE),
    ({"lapsed": True}, Action.REMEMBER),
    ({}, Action.REST),
)
_LOST: tuple[Row, ...] = (
    ({"fresh": True}, Action.CREATE),
    ({"lapsed": True}, Action.REMEMBER),
    ({}, Action.REST),
)
ROWS: Mapping[State, tuple[Row, ...]] = {
    State.ABSENT: _ABSENT,
    State.CREATING: _CREATING,
    State.OPEN: _OPEN,
    State.CLOSED: _CLOSED,
    State.LEFT: _LEFT,
    State.LOST: _LOST,
}


def action(seen: Seen) -> Action:
    """What a pass over the ticket does next."""
    return next(does for asks, does in ROWS[seen.state] if _fits(seen, asks))


def _fits(seen: Seen, asks: Mapping[str, object]) -> bool:
    return all(getattr(seen, name) == value for name, value in asks.items())
