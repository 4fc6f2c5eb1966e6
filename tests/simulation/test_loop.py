"""The loop of the simulation: its time, its order, and processes that are stopped."""

import asyncio
import contextvars

import pytest

from remediator_sim.simulation import loop
from remediator_sim.simulation.loop import PROCESS, VirtualProcess


def test_an_hour_of_waiting_takes_no_time_and_the_clock_says_an_hour():
    async def main() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    assert loop.run(main()) == pytest.approx(3600)


def test_where_nothing_can_ever_happen_the_loop_ends_with_an_error():
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="nothing is left"):
        loop.run(main())


def test_a_frozen_process_runs_nothing_for_30_s_and_then_goes_on_where_it_was():
    async def main() -> list[float]:
        process, times = VirtualProcess("one"), []

        async def work() -> None:
            for _ in range(3):
                await asyncio.sleep(10)
                times.append(asyncio.get_running_loop().time())

        context = contextvars.copy_context()
        context.run(PROCESS.set, process)
        task = asyncio.get_running_loop().create_task(work(), context=context)
        await asyncio.sleep(15)
        process.freeze()
        await asyncio.sleep(30)
        process.thaw(asyncio.get_running_loop())
        await task
        return times

    assert loop.run(main()) == pytest.approx([10, 45, 55])


def test_a_timeout_that_was_left_while_its_process_stood_still_does_not_ring_afterwards():
    async def main() -> str:
        process, done = VirtualProcess("one"), asyncio.Event()

        async def work() -> str:
            async with asyncio.timeout(20):
                await done.wait()
            await asyncio.sleep(100)
            return "in time"

        context = contextvars.copy_context()
        context.run(PROCESS.set, process)
        task = asyncio.get_running_loop().create_task(work(), context=context)
        await asyncio.sleep(1)
        process.freeze()
        done.set()
        await asyncio.sleep(60)
        process.thaw(asyncio.get_running_loop())
        return await task

    assert loop.run(main()) == "in time"


def test_tasks_in_a_set_have_the_order_in_which_they_were_made():
    async def main() -> list[str]:
        ended: list[str] = []

        async def work(name: str) -> None:
            try:
                await asyncio.sleep(100)
            finally:
                ended.append(name)

        async def fail() -> None:
            async with asyncio.TaskGroup() as group:
                for number in range(5):
                    group.create_task(work(str(number)))
                await asyncio.sleep(1)
                raise ValueError

        with pytest.raises(ExceptionGroup):
            await fail()
        return ended

    assert loop.run(main()) == list("01234")


def test_timers_of_one_time_ring_in_the_order_in_which_they_were_made():
    async def main() -> list[int]:
        rung: list[int] = []
        loop_ = asyncio.get_running_loop()
        for number in range(50):
            loop_.call_at(7.0, rung.append, number)
        await asyncio.sleep(7.5)
        return rung

    assert loop.run(main()) == list(range(50))
