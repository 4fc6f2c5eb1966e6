"""Python's collector of cycles, kept from pausing the loop for as long as it takes to walk all caches.

What a full collection has left is not walked again: the caches live as long as the process, and what replaces a fact
frees it at once, since facts have no cycles. So each collection walks only what has come since the one before. Cycles
that end later than that are found by a walk through everything, a pause of a quarter of a second at 5,000 nodes: once
a day at most, and only where the process has grown since the last one.
"""

import asyncio
import gc
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# After so many collections of younger ones the oldest generation is collected: when 35,000 objects have come,
# a pause of 10 ms. Python's own number, 10, lets 90,000 come, a pause of 50 ms while a list is read.
OFTEN = 3
WHOLE_EVERY = 24 * 3600.0  # seconds between two collections of everything, at least
GROWN = 16 * 2**20  # bytes by which the process has grown since the last one, at least
STATM = Path("/proc/self/statm")
SELDOM = 100_000  # objects that come between two collections
FULL = 2  # the oldest generation


def seldom() -> None:
    """For a process that ends soon: what it imports is not walked again and again, which takes a tenth of its time."""
    gc.set_threshold(SELDOM)


@contextmanager
def short_pauses() -> Iterator[None]:
    """While this is open, full collections are frequent, and nothing that one has left is walked again."""
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, OFTEN)
    gc.callbacks.append(_keep)
    try:
        yield
    finally:
        gc.callbacks.remove(_keep)
        gc.set_threshold(young, middle, old)


def keep() -> None:
    """Walk nothing again of what there is, such as everything that was imported."""
    gc.collect()
    gc.freeze()
    gc.collect()  # Python waits until a quarter of what the last full collection has left has come


async def collect_grown() -> None:
    """Walk everything, until cancelled, once a day at most and where the process has grown since."""
    most = _resident() + GROWN
    while True:
        await asyncio.sleep(WHOLE_EVERY)
        if _resident() >= most:
            gc.unfreeze()
            gc.collect()
            most = math.inf
        most = min(most, _resident() + GROWN)


def _resident() -> float:
    """The bytes of this process that are in memory; without end where the system does not tell."""
    try:
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return math.inf


def _keep(phase: str, collection: Mapping[str, Any]) -> None:
    if phase == "stop" and collection["generation"] == FULL:
        gc.freeze()
