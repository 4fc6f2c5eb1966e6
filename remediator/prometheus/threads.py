"""What is asked in a thread is waited for on the loop, and no longer than is meant."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from remediator.prometheus.connection import TooSlow
from remediator.prometheus.failures import Server, failure
from remediator.prometheus.reading import CannotTell

T = TypeVar("T")


async def answered(worker: Executor, ask: Callable[[], T], server: Server, patience: float) -> T | CannotTell:
    """What a thread of the worker answers, or that it did not in time: as long for a thread that is free as for it."""
    asked = asyncio.get_running_loop().run_in_executor(worker, ask)
    try:
        return await asyncio.wait_for(asked, 2 * patience)
    except TimeoutError:
        return failure(server, TooSlow(), patience)
