"""Ports that a process serves end side by side."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from remediator.web.ending import ending_together


@pytest.mark.parametrize("fails", [False, True])
async def test_six_that_each_wait_for_the_five_others_all_end(fails: bool) -> None:
    """One after the other, the first would wait for ever. So too where the seventh cannot begin."""
    all_of_them, ended = asyncio.Barrier(6), list[int]()

    @asynccontextmanager
    async def port(number: int) -> AsyncIterator[int]:
        if number == 6:
            raise OSError("the port is taken")
        try:
            yield number
        finally:
            await all_of_them.wait()
            ended.append(number)

    async def serve() -> None:
        async with ending_together() as enter:
            assert [await enter(port(number)) for number in range(6)] == list(range(6))
            if fails:
                await enter(port(6))

    async with asyncio.timeout(10):
        if fails:
            with pytest.raises(OSError, match="the port is taken"):
                await serve()
        else:
            await serve()
    assert sorted(ended) == list(range(6))
