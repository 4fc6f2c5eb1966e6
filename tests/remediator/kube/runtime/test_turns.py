"""Long work in slices: so many at once, in the order of the items, whatever happens to one."""

import asyncio

import pytest

from remediator.kube.runtime.turns import by_few, in_parts


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


async def test_after_as_many_failures_as_may_be_under_way_nothing_more_is_begun() -> None:
    """Of nine items the second and the fourth fail, two at once: the fifth is begun by nobody."""
    begun: list[int] = []

    async def work(item: int) -> None:
        begun.append(item)
        await asyncio.sleep(0)
        if item in (1, 3):
            raise LookupError(item)

    with pytest.raises(LookupError):
        await by_few(work, range(9), 2)
    assert begun == [0, 1, 2, 3]


async def test_who_is_cancelled_leaves_nothing_behind() -> None:
    """Three are under way, and take up to three turns to end."""
    under_way: set[int] = set()
    three = asyncio.Event()

    async def work(item: int) -> None:
        under_way.add(item)
        if len(under_way) == 3:
            three.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(item):
                await asyncio.sleep(0)
            under_way.remove(item)

    task = asyncio.create_task(by_few(work, range(1, 9), 3))
    await three.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert under_way == set()


async def test_between_two_parts_the_loop_turns_once() -> None:
    """Seven items, three at a time; none and one part cost no turn."""
    turns = [0]

    async def count() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    assert [(part, turns[0]) async for part in in_parts(range(7), 3)] == [((0, 1, 2), 0), ((3, 4, 5), 1), ((6,), 2)]
    assert [part async for part in in_parts((), 3)] == []
    assert ([part async for part in in_parts("abc", 3)], turns[0]) == ([("a", "b", "c")], 2)
    counting.cancel()
