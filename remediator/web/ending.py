"""Ports that one process serves end side by side: each waits up to five seconds for those who are still sending."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

Port = AbstractAsyncContextManager[int]  # serves while it is entered; gives its number


@asynccontextmanager
async def ending_together() -> AsyncIterator[Callable[[Port], Awaitable[int]]]:
    """Gives the function that enters a port; those that it has entered are left at the same time when this is left."""
    entered: list[Port] = []

    async def enter(port: Port) -> int:
        number = await port.__aenter__()
        entered.append(port)
        return number

    try:
        yield enter
    finally:
        await asyncio.gather(*(port.__aexit__(None, None, None) for port in entered))
