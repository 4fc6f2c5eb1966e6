"""What a person sees of the demo: a live table on a terminal, plain lines elsewhere."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from remediator_sim.scenarios.view import Line

LINES = 9
COLOURS = {"Recovered": "green", "Escalated": "red", "Resumed": "green", "Held": "yellow", "Verifying": "cyan"}


class Row(NamedTuple):
    """One fault as it stands: where, in which phase, and what was last said of it."""

    name: str
    node: str
    phase: str
    text: str
    seconds: float | None


class Screen:
    """Tells each line once; on a terminal the last ones below a table of `rows()`."""

    def __init__(self, console: Console, rows: Callable[[], Sequence[Row]]) -> None:
        self._console, self._rows, self._begin = console, rows, time.monotonic()
        self._lines: deque[Text] = deque(maxlen=LINES)

    def shown(self) -> AbstractContextManager[object]:
        """The live table while the context is open; nothing where there is no terminal."""
        if not self._console.is_terminal:
            return nullcontext()
        return Live(get_renderable=self._picture, console=self._console, refresh_per_second=4, transient=True)

    def tell(self, line: Line) -> None:
        """One thing that happened."""
        text = Text(f"{time.monotonic() - self._begin:5.1f} s  {line.node:<10} {line.word:<20} {line.text}")
        self._lines.append(text)
        if not self._console.is_terminal:
            self._console.print(text, soft_wrap=True)

    def _picture(self) -> Group:
        lines = [text.copy() for text in self._lines]
        for text in lines:
            text.truncate(self._console.width, overflow="ellipsis")
        return Group(table(self._rows()), *lines)


def table(rows: Sequence[Row]) -> Table:
    """One row for each fault."""
    drawn = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for name in ("fault", "node", "phase"):
        drawn.add_column(name, no_wrap=True)
    drawn.add_column("", ratio=1, no_wrap=True, overflow="ellipsis")
    drawn.add_column("after", no_wrap=True, justify="right")
    for row in rows:
        after = "" if row.seconds is None else f"{row.seconds:.1f} s"
        drawn.add_row(row.name, row.node, Text(row.phase, COLOURS.get(row.phase, "")), row.text, after)
    return drawn


def invariants(checked: Mapping[str, tuple[str, int, Sequence[str]]]) -> Table:
    """One row for each invariant: what it says, how often it was checked, and what broke it."""
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("", "invariant"):
        drawn.add_column(name)
    drawn.add_column("checks", justify="right")
    drawn.add_column("")
    for name, (text, checks, broken) in checked.items():
        drawn.add_row(name, text, str(checks), _held(checks, broken))
    return drawn


def _held(checks: int, broken: Sequence[str]) -> Text:
    if broken:
        return Text(f"broken: {broken[0]}", "red")
    return Text("held", "green") if checks else Text("never checked", "red")
