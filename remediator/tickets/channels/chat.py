"""Rooms of a chat, in which people hear of issues: a chat with four verbs. Its errors are those of channels/base.py."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Protocol

from remediator.core.policy import Severity


@dataclass(frozen=True, slots=True)
class ChatLine:
    """One line of a message. Others wrote the text: a chat shows each character as it is, and obeys none."""

    text: str
    url: str = ""  # where it leads, "" for nowhere


@dataclass(frozen=True, slots=True)
class Message:
    """What is said of one issue, or of many that came at the same time. The title is a line, too."""

    severity: Severity
    title: ChatLine
    lines: tuple[ChatLine, ...] = ()


class Looked(Enum):
    """What a look for a thread has shown."""

    THERE = auto()
    NOT_THERE = auto()
    CANNOT_TELL = auto()  # the chat does not say, or we may not ask


@dataclass(frozen=True, slots=True)
class Search:
    """What a look for a thread has shown, and the oldest thread that is there."""

    looked: Looked
    thread: str = ""


class Chat(Protocol):
    """One room. Every call raises Later, Unsure (post and reply only) or Refused, and nothing else.

    `edits`: the first message of a thread can be changed, silently. What every chat must do is tested by
    tests/remediator/tickets/test_chats.py.
    """

    edits: bool

    async def post(self, message: Message, marker: str) -> str:
        """Begin a thread with a hidden marker; the chat's name of it. Never sent twice."""
        ...

    async def reply(self, thread: str, message: Message) -> None:
        """Say it below the first message; where a chat has no threads, to all. Never sent twice."""
        ...

    async def edit(self, thread: str, message: Message) -> None:
        """Put it in the place of the first message. Refused with the field "thread" where a user deleted that."""
        ...

    async def find(self, marker: str, since: datetime) -> Search:
        """Look for the thread of a marker that was begun after `since`."""
        ...

    async def aclose(self) -> None:
        """Let what is under way end, drop what waits, and give the connections back."""
        ...
