"""Turns of the loop: long work in slices, and works side by side."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


async def sliced(items: Iterable[T], size: int) -> AsyncIterator[T]:
    """The items; after each `size` of them the loop turns once."""
    for number, item in enumerate(items, 1):
        yield item
        if number % size == 0:
            await asyncio.sleep(0)


async def in_parts(items: Iterable[T], size: int) -> AsyncIterator[Sequence[T]]:
    """The items, so many at a time; the loop turns once between two parts."""
    rest = iter(items)
    part = tuple(islice(rest, size))
    while part:
        yield part
        if part := tuple(islice(rest, size)):
            await asyncio.sleep(0)


async def by_few(work: Callable[[T], Awaitable[R]], items: Sequence[T], few: int) -> list[R]:
    """What comes of each item, so many under way at once; the loop turns after each.

    What one raises is raised last, once nothing is under way any more. Each one that raises leaves one fewer under way:
    after `few` of them nothing more is begun. Who wants every item tried gives a work that returns what failed.
    Cancelled, it ends once all that were under way have ended.
    """
    results: dict[int, R] = {}
    waiting = iter(enumerate(items))

    async def worker() -> None:
        for number, item in waiting:
            results[number] = await work(item)
            await asyncio.sleep(0)

    workers = await asyncio.gather(*(worker() for _ in range(min(few, len(items)))), return_exceptions=True)
    for outcome in workers:
        if outcome is not None:
            raise outcome
    return [results[number] for number in range(len(items))]


async def both(first: Coroutine[Any, Any, T], second: Coroutine[Any, Any, R]) -> tuple[T, R]:
    """What two works give that go on side by side. Where one fails, it is raised once the other is over, too."""
    left, right = await asyncio.gather(first, second, return_exceptions=True)
    for result in (left, right):
        if isinstance(result, BaseException):
            raise result
    return left, right
