"""What a detector owes node-problem-detector: an exit code, one line, and a mark that says it has run.

Every detector keeps its small files in one folder on a memory file system of the node, so that writing cannot hang.
"""

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import Any

from nodelib.state import slots

STATE = Path(slots.STATE)
LINE_BYTES = 512


class Verdict(IntEnum):
    """The exit codes: node-problem-detector turns them into the Condition's status False, True and Unknown."""

    OK = 0
    FAULT = 1
    UNKNOWN = 2


class OutOfReach(Exception):
    """What a detector needs and may not see; the message says what, and what to do: it is the line."""


def run(check: Callable[[], tuple[Verdict, str]]) -> None:
    """Print the line of `check` and end the process with its verdict; whatever it raises is UNKNOWN with its cause.

    All that is kept was written by then, so nothing is taken down piece by piece: that is a sixth of what a run costs.
    """
    try:
        verdict, line = check()
    except OutOfReach as error:
        verdict, line = Verdict.UNKNOWN, str(error)
    except Exception as error:
        verdict, line = Verdict.UNKNOWN, f"{type(error).__name__}: {error}"
    print(one_line(line), flush=True)
    os._exit(int(verdict))


def one_line(text: str) -> str:
    """Return `text` as one line of at most LINE_BYTES printable ASCII bytes (longer ones are cut), never an empty one.

    node-problem-detector takes a line for a format when it makes an event of it, and keeps the last text of a Condition
    where there is none: so there is no percent sign in a line, and always a word.
    """
    plain = " ".join(text.replace("%", " percent ").encode("ascii", "replace").decode().split())
    return "".join(char if char.isprintable() else "?" for char in plain)[:LINE_BYTES] or "no words"


def since_boot() -> float:
    """Return the seconds since boot, suspend included: no step of the wall clock moves it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id(proc: Path) -> str:
    """Return this boot's id, or "" where it cannot be read."""
    try:
        return (proc / "sys/kernel/random/boot_id").read_text().strip()
    except (OSError, ValueError):
        return ""


def mark_path(state: Path, detector: str) -> Path:
    """Return where `detector` leaves its freshness mark: {detector, finished_at (seconds since boot), boot_id}."""
    return state / "marks" / f"{detector}.json"


def leave_mark(state: Path, detector: str, finished_at: float, boot: str) -> None:
    """Say that `detector` has finished a run, whatever it found."""
    write_json(mark_path(state, detector), {"detector": detector, "finished_at": finished_at, "boot_id": boot})


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in `path`; {} where there is none or it is not an object."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def write_json(path: Path, value: dict[str, Any], odd: Callable[[Any], Any] | None = None) -> None:
    """Replace `path` by `value` in one step, so that no reader sees half of it.

    `odd` returns what stands for a value that JSON does not know. Raises OSError, which names `path`: the draft's name
    is another in each run. A full disk keeps no draft.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(value, sort_keys=True, default=odd))
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error
