"""How many warnings of one sort a log takes: what fails everywhere at once must not fill the disk of its node."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog
from structlog.typing import EventDict

MOST, SECONDS = 50, 10.0
MOST_SORTS = 256
MOST_CHANGES, MOST_OBJECTS = 5, 2**14  # lines about changes of one object, and how many objects are remembered
LIMITED = frozenset({"warning", "error", "exception", "critical"})
RECORDS = frozenset({"audit"})  # each is of a write that was made, and counts
ONCE = "once"  # the key of a line that is said at a change of an object and never again; it is written without that key
OBJECTS = ("node", "policy", "budget", "ticket", "key")  # what else it has says about which object it is, the first
LAST = "more of these within 10 seconds have no line"


@dataclass(slots=True)
class WarningCount:
    """Ten seconds of one sort of lines."""

    began: float
    lines: int = 0
    left_out: int = 0


class LogRate:
    """A processor: of one text 50 warnings in 10 seconds. The last one says so, and the next how many there were.

    Those with `once=True` have 5 for each object, beside those 50: what is said once would be lost for good behind what
    others say, and a node may change as often as it likes.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._sorts, self._objects = (
            Windows(MOST, MOST_SORTS, monotonic),
            Windows(MOST_CHANGES, MOST_OBJECTS, monotonic),
        )

    def __call__(self, _: object, method: str, event: EventDict) -> EventDict:
        """The line, or DropEvent."""
        text, once = str(event.get("event")), event.pop(ONCE, False)
        if method not in LIMITED or text in RECORDS:
            return event
        if once:
            about = next((str(event[name]) for name in OBJECTS if name in event), "")
            return self._objects.counted(f"{text}: {about}", event)
        return self._sorts.counted(text, event)


class Windows:
    """Of each sort `most` lines in 10 seconds; so many sorts are remembered."""

    def __init__(self, most: int, sorts: int, monotonic: Callable[[], float]) -> None:
        self._most, self._most_sorts, self._monotonic = most, sorts, monotonic
        self.begun: dict[str, WarningCount] = {}  # the oldest first

    def counted(self, sort: str, event: EventDict) -> EventDict:
        """The line, or DropEvent."""
        now, window = self._monotonic(), self.begun.get(sort)
        if window is None or now >= window.began + SECONDS:
            if window is not None and window.left_out:
                event["left_out"] = window.left_out
            window = self._begin(sort, now)
        window.lines += 1
        if window.lines > self._most:
            window.left_out += 1
            raise structlog.DropEvent
        if window.lines == self._most:
            event["limit"] = LAST
        return event

    def _begin(self, sort: str, now: float) -> WarningCount:
        """A new one, behind all others; of too many the oldest goes."""
        self.begun.pop(sort, None)
        if len(self.begun) >= self._most_sorts:
            del self.begun[next(iter(self.begun))]
        self.begun[sort] = window = WarningCount(now)
        return window
