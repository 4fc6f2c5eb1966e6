"""Turns of the loop: long work in slices, and two works side by side."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")
U = TypeVar("U")


async def sliced(items: Iterable[T], size: int) -> AsyncIterator[T]:
    """The items; after each `size` of them the loop turns once."""
    for number, item in enumerate(items, 1):
        yield item
        if number % size == 0:
            await asyncio.sleep(0)


async def both(first: Coroutine[Any, Any, T], second: Coroutine[Any, Any, U]) -> tuple[T, U]:
    """What two works give that go on side by side. Where one fails, it is raised once the other is over, too."""
    one, other = await asyncio.gather(first, second, return_exceptions=True)
    for result in (one, other):
        if isinstance(result, BaseException):
            raise result
    return one, other
