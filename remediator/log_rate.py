"""How many warnings of one sort a log takes: what fails everywhere at once must not fill the disk of its node."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog
from structlog.typing import EventDict

MOST, SECONDS = 50, 10.0
MOST_SORTS = 256
LIMITED = frozenset({"warning", "error", "exception", "critical"})
RECORDS = frozenset({"audit"})  # each is of a write that was made, and counts
ONCE = "once"  # the key of a line that is said at a change and never again: it is written, without that key
LAST = "more of these within 10 seconds have no line"


@dataclass(slots=True)
class WarningCount:
    """Ten seconds of one sort of lines."""

    began: float
    lines: int = 0
    left_out: int = 0


class LogRate:
    """A processor: of one text 50 warnings in 10 seconds. The last one says so, and the next how many there were.

    Those with `once=True` count for nothing: what is said once would be lost for good.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._windows: dict[str, WarningCount] = {}

    def __call__(self, _: object, method: str, event: EventDict) -> EventDict:
        """The line, or DropEvent."""
        text, once = str(event.get("event")), event.pop(ONCE, False)
        if once or method not in LIMITED or text in RECORDS:
            return event
        now, window = self._monotonic(), self._windows.get(text)
        if window is None or now >= window.began + SECONDS:
            if window is not None and window.left_out:
                event["left_out"] = window.left_out
            window = self._begun(text, now)
        return _counted(window, event)

    def _begun(self, text: str, now: float) -> WarningCount:
        """A new one, behind all others; of too many the oldest goes."""
        self._windows.pop(text, None)
        if len(self._windows) >= MOST_SORTS:
            del self._windows[next(iter(self._windows))]
        self._windows[text] = window = WarningCount(now)
        return window


def _counted(window: WarningCount, event: EventDict) -> EventDict:
    window.lines += 1
    if window.lines > MOST:
        window.left_out += 1
        raise structlog.DropEvent
    if window.lines == MOST:
        event["limit"] = LAST
    return event
