"""Waiting for a condition instead of for a time."""

import asyncio
import inspect
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

# How often a limit fits into what is waited for: it ends a test that hangs, and in CI others use the machine, too.
PATIENCE = 4 if os.environ.get("CI") else 1
SHORTEST, LONGEST, PART = 0.02, 0.1, 20  # seconds between two looks: a twentieth of what has been waited, within these


def pause(waited: float) -> float:
    """How long to wait before the next look: who looks fifty times a second keeps a real server busy."""
    return min(LONGEST, max(SHORTEST, waited / PART))


async def until(condition, seconds=60.0):
    """What `condition()` gives (awaited if need be) once it is true; fails after `seconds`, in CI later."""
    begun = time.monotonic()
    while True:
        found = condition()
        found = await found if inspect.isawaitable(found) else found
        if found:
            return found
        waited = time.monotonic() - begun
        assert waited < seconds * PATIENCE, f"not in {seconds * PATIENCE} s: {inspect.getsource(condition).strip()}"
        await asyncio.sleep(pause(waited))


def wait_for(condition: Callable[[], T], seconds: float = 20.0) -> T:
    """The same outside a loop."""
    end = time.monotonic() + seconds * PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, f"not in {seconds * PATIENCE} s: {inspect.getsource(condition).strip()}"
        time.sleep(0.05)
    return found


def gone(pid: int) -> bool:
    """Whether no process of this id runs any more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True
