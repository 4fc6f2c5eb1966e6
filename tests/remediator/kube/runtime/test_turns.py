"""Long work in slices: so many at once, in the order of the items, whatever happens to one."""

import asyncio

import pytest

from remediator.kube.runtime.turns import by_few


async def test_so_many_are_under_way_at_once_and_results_stand_in_the_order_of_the_items() -> None:
    """Of nine items three at once; the first ones take longest."""
    under_way, most = [0], [0]

    async def work(item: int) -> int:
        under_way[0] += 1
        most[0] = max(most[0], under_way[0])
        for _ in range(9 - item):
            await asyncio.sleep(0)
        under_way[0] -= 1
        return item * item

    assert await by_few(work, range(9), 3) == [0, 1, 4, 9, 16, 25, 36, 49, 64]
    assert most == [3]
    assert await by_few(work, [], 3) == []


async def test_what_one_raises_is_raised_once_the_others_are_done() -> None:
    done: list[int] = []

    async def work(item: int) -> None:
        await asyncio.sleep(0)
        if item == 1:
            raise LookupError
        done.append(item)

    with pytest.raises(LookupError):
        await by_few(work, range(6), 2)
    assert done == [0, 2, 3, 4, 5]
