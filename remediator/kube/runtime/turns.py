"""Long work in slices: others run in between."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")


async def sliced(items: Iterable[T], size: int) -> AsyncIterator[T]:
    """The items; after each `size` of them the loop turns once."""
    for number, item in enumerate(items, 1):
        yield item
        if number % size == 0:
            await asyncio.sleep(0)
