"""When the rules of one file run: all in one batch, at the start and at each tick."""

import asyncio
import math
from collections.abc import Awaitable, Callable

from remediator_sim.npd.config import Monitor, Rule


async def repeat(monitor: Monitor, run: Callable[[Rule], Awaitable[None]]) -> None:
    """Run all rules now and then every interval, until cancelled. A batch lasts as long as its slowest rule."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    while True:
        begun = loop.time() - start
        await _batch(monitor, run)
        until = next_batch(begun, loop.time() - start, monitor.interval)
        await asyncio.sleep(start + until - loop.time())


def next_batch(begun: float, ended: float, interval: float) -> float:
    """When the next batch starts, all times in seconds since the ticker's start.

    Ticks keep their phase. Of those that a batch has missed one is caught up at once, the others are lost.

    >>> next_batch(0.0, 3.0, 10.0), next_batch(0.0, 25.0, 10.0), next_batch(25.0, 26.0, 10.0)
    (10.0, 25.0, 30.0)
    """
    following = (math.floor(begun / interval) + 1) * interval
    return max(following, ended)


async def _batch(monitor: Monitor, run: Callable[[Rule], Awaitable[None]]) -> None:
    """Every rule once, in the order of the file, at most `concurrency` at a time."""
    free = asyncio.Semaphore(monitor.concurrency)

    async def one(rule: Rule) -> None:
        async with free:
            await run(rule)

    async with asyncio.TaskGroup() as group:
        for rule in monitor.rules:
            group.create_task(one(rule))
