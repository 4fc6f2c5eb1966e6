"""What a Ticket remembers of rooms of a chat: which thread its issue has there, and what was last told in it."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ChatThread:
    """The thread of one issue in one room.

    `opened` is when it was first wanted. `id` is the chat's name of the thread; while it is "", a post begun at `began`
    was not answered, for the `tries`-th time. `crowd`: issues that come at the same time join it. Those that did have
    no `written`: what was last told stands with the one that began. `given_up`: the post was tried in vain, or a user
    deleted the thread.
    """

    room: str
    opened: datetime
    began: datetime
    tries: int = 1
    id: str = ""
    crowd: bool = False
    place: str = ""  # where the issue, or the most urgent of a crowd, stood when that was last told
    written_hash: str = ""
    written: datetime | None = None
    given_up: bool = False
