"""Work in steps, done at once or over turns of the loop, between which others are answered."""

import asyncio
from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]


def at_once(steps: Steps[T]) -> T:
    """What comes of all steps."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            made: T = done.value
            return made


async def in_turns(steps: Steps[T]) -> T:
    """The same; others have their turn after each step."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            made: T = done.value
            return made
        await asyncio.sleep(0)
