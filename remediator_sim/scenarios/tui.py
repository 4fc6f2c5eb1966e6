"""What a person sees of the demo: a live table on a terminal, plain lines elsewhere."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from remediator.clock import Clock
from remediator_sim.scenarios.view import ViewLine

LINES = 9
COLOURS = {
    "Recovered": "green",
    "Resumed": "green",
    "Escalated": "red",
    "Held": "yellow",
    "Verifying": "cyan",
}


class FaultRow(NamedTuple):
    """One fault as it stands: where, in which phase, and the newest sentence about it."""

    name: str
    node: str
    phase: str
    text: str
    seconds: float | None


class Tui:
    """Prints each line once; on a terminal the last ones below a table of `rows()`."""

    def __init__(self, console: Console, rows: Callable[[], Sequence[FaultRow]], clock: Clock) -> None:
        self._console, self._rows, self._clock, self._start = console, rows, clock, clock.monotonic()
        self._lines: deque[Text] = deque(maxlen=LINES)

    def live(self) -> AbstractContextManager[object]:
        """The live table while the context is open; nothing where there is no terminal."""
        if not self._console.is_terminal:
            return nullcontext()
        return Live(get_renderable=self._picture, console=self._console, refresh_per_second=4, transient=True)

    def print(self, line: ViewLine) -> None:
        """One thing that happened."""
        seconds = self._clock.monotonic() - self._start
        text = Text(f"{seconds:5.1f} s  {line.node:<10} {line.reason:<20} {line.text}")
        self._lines.append(text)
        if not self._console.is_terminal:
            self._console.print(text, soft_wrap=True)

    def _picture(self) -> Group:
        lines = [text.copy() for text in self._lines]
        for text in lines:
            text.truncate(self._console.width, overflow="ellipsis")
        return Group(faults(self._rows()), *lines)


def faults(rows: Sequence[FaultRow]) -> Table:
    """One row for each fault; a text that is too long for its line goes on in the next."""
    drawn = table("fault", "node", "phase")
    drawn.add_column("", ratio=1)
    drawn.add_column("after", no_wrap=True, justify="right")
    for row in rows:
        after = "" if row.seconds is None else f"{row.seconds:.1f} s"
        drawn.add_row(row.name, row.node, Text(row.phase, COLOURS.get(row.phase, "")), row.text, after)
    return drawn


def invariants(checked: Mapping[str, tuple[str, int, Sequence[str]]]) -> Table:
    """One row for each invariant: what it says, how often it was checked, and what broke it."""
    drawn = table("", "invariant")
    drawn.add_column("checks", justify="right")
    drawn.add_column("")
    for name, (text, checks, broken) in checked.items():
        drawn.add_row(name, text, str(checks), _held(checks, broken))
    return drawn


def table(*columns: str) -> Table:
    """An empty table without lines, its cells never cut off."""
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        drawn.add_column(name, no_wrap=True, overflow="fold")
    return drawn


def _held(checks: int, broken: Sequence[str]) -> Text:
    if broken:
        return Text(f"broken: {broken[0]}", "red")
    return Text("held", "green") if checks else Text("never checked", "red")
