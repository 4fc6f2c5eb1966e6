"""The work queue: no key twice, none by two workers, none lost, failures spaced out."""

import asyncio
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from remediator.kube.runtime.queue import WorkQueue
from remediator.kube.wire.errors import Unavailable

pytestmark = pytest.mark.looptime


def now():
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def serving(queue, worker, n=1):
    task = asyncio.create_task(queue.run(worker, n))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})
        queue.close()


async def test_a_key_added_twice_is_worked_on_once():
    """Keys come in the order of their first wish, each once."""
    queue = WorkQueue("tests")
    for key in ("a", "b", "a"):
        queue.add(key)
    assert queue.depth == 2
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    assert queue.depth == 0
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 1)


async def test_a_key_added_in_work_runs_again_after_it_and_never_beside_it():
    """Two workers never hold one key; what came during the pass is not lost."""
    queue, running, runs = WorkQueue("tests"), set(), []

    async def worker(key):
        assert key not in running
        running.add(key)
        runs.append(now())
        if len(runs) == 1:
            queue.add(key)
            queue.add(key)
            assert queue.depth == 1
        await asyncio.sleep(5)
        running.discard(key)

    async with serving(queue, worker, n=2):
        queue.add("a")
        await asyncio.sleep(60)
    assert runs == [0, 5]


async def test_different_keys_are_worked_on_side_by_side():
    """n workers make n passes at a time."""
    queue, ended = WorkQueue("tests"), []

    async def worker(key):
        await asyncio.sleep(10)
        ended.append(now())

    for key in range(4):
        queue.add(key)
    async with serving(queue, worker, n=2):
        await asyncio.sleep(60)
    assert ended == [10, 10, 20, 20]


async def test_of_several_timers_for_a_key_the_earliest_counts():
    """Later wishes neither delay nor double an earlier one."""
    queue, seen = WorkQueue("tests"), []
    for delay in (30, 10, 20):
        queue.add_at("a", delay)
    assert queue.depth == 0

    async def worker(key):
        seen.append(now())

    async with serving(queue, worker):
        await asyncio.sleep(15)
        queue.add_at("a", 50)
        await asyncio.sleep(100)
    assert seen == [10, 65]


async def test_a_worker_says_when_to_look_again():
    """A number schedules the next pass; None schedules nothing."""
    queue, seen = WorkQueue("tests"), []

    async def worker(key):
        seen.append(now())
        return 60 if len(seen) < 3 else None

    async with serving(queue, worker):
        queue.add("a")
        await asyncio.sleep(1000)
    assert seen == [0, 60, 120]


@pytest.mark.parametrize("error", [ValueError("a bug"), Unavailable(503, "", "away")])
async def test_a_failing_worker_is_retried_with_growing_waits_and_stops_nobody(error):
    """The key that fails waits longer each time and starts anew after a success; others go on."""
    queue, seen, others = WorkQueue("tests", rand=lambda: 1.0), [], []

    async def worker(key):
        if key == "good":
            return others.append(now())
        seen.append(now())
        if len(seen) not in (5, 6):
            raise error
        return 10.0 if len(seen) == 5 else None

    async with serving(queue, worker):
        queue.add("bad")
        await asyncio.sleep(7.8)
        queue.add("good")
        await asyncio.sleep(100)
        queue.add("bad")
        await asyncio.sleep(0.6)
    waits = [round(b - a, 6) for a, b in pairwise(seen)]
    assert waits[:5] == [0.5, 1.0, 2.0, 4.0, 10.0]
    assert waits[-1] == 0.5
    assert others == [7.8]


async def test_retries_never_wait_longer_than_a_minute():
    """Each failure doubles the wait only up to the cap."""
    queue, seen = WorkQueue("tests", rand=lambda: 1.0), []

    async def worker(key):
        seen.append(now())
        raise ValueError

    async with serving(queue, worker):
        queue.add("a")
        await asyncio.sleep(1000)
    assert seen[-1] - seen[-2] == 60


async def test_the_loop_turns_between_keys_that_are_ready():
    """A thousand passes that wait for nothing let others in after each of them."""
    queue, served, turns = WorkQueue("tests"), [], []

    async def worker(key):
        served.append(key)

    async def other():
        while len(served) < 1000:
            turns.append(len(served))
            await asyncio.sleep(0)

    for key in range(1000):
        queue.add(key)
    async with serving(queue, worker):
        await other()
    assert max(b - a for a, b in pairwise(turns)) == 1


async def test_close_cancels_timers():
    """After close nothing comes any more."""
    queue, errors = WorkQueue("tests", gives_way=lambda key: key == "later"), []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context))
    queue.add_at("a", 5)
    queue.add("later")
    queue.close()
    await asyncio.sleep(10)
    assert queue.depth == 1
    assert errors == []


async def test_a_pass_that_is_cancelled_from_within_is_tried_again_and_its_worker_stays():
    queue, runs = WorkQueue("tests", rand=lambda: 1.0), []

    async def worker(key):
        runs.append((key, now()))
        if len(runs) == 1:
            raise asyncio.CancelledError

    queue.add("a")
    queue.add("b")
    with capture_logs() as logs:
        async with serving(queue, worker) as task:
            await asyncio.sleep(5)
            assert not task.done()
    assert runs == [("a", 0), ("b", 0), ("a", 0.5)]
    assert [entry["event"] for entry in logs] == ["pass failed"]


async def test_of_eight_workers_two_serve_what_gives_way_while_the_others_have_work_and_then_all_do():
    queue, running, seen = WorkQueue("tests", gives_way=lambda key: key.startswith("later")), set(), []

    async def worker(key):
        running.add(key)
        seen.append(key)
        await asyncio.sleep(2.2 if key.startswith("first") else 1)
        running.discard(key)

    async with serving(queue, worker, n=8):
        for key in (*(f"later-{number}" for number in range(1, 8)), "first-1", "first-2"):
            queue.add(key)
        await asyncio.sleep(0.5)
        assert running == {"first-1", "first-2", "later-1", "later-2"}
        await asyncio.sleep(1)
        assert running == {"first-1", "first-2", "later-3", "later-4"}
        await asyncio.sleep(1)
        assert running == {"later-5", "later-6", "later-7"}
        await asyncio.sleep(20)
        assert not running
    assert seen[:2] == ["first-1", "first-2"]


@pytest.mark.parametrize(("workers", "beside"), [(1, 1), (2, 2), (4, 2), (8, 2), (16, 4), (64, 16)])
async def test_a_quarter_of_the_workers_and_two_at_least_serve_what_gives_way_beside_others(workers, beside):
    queue, running = WorkQueue("tests", gives_way=lambda key: key != "first"), set()

    async def worker(key):
        running.add(key)
        await asyncio.sleep(0.1 if key == "first" and workers == 1 else 100)
        running.discard(key)

    async with serving(queue, worker, n=workers):
        queue.add("first")
        for key in range(100):
            queue.add(key)
        await asyncio.sleep(4.9)
        assert len(running - {"first"}) == min(beside, workers - (workers > 1))


async def test_a_pass_that_takes_30_s_stops_none_of_199_others_that_give_way():
    """Admissions are asked for again while in work; four passes hang, as many as may be beside others."""
    queue, served = WorkQueue("tests", gives_way=lambda key: key != "admission"), []

    async def worker(key):
        if key == "admission":
            await asyncio.sleep(0.2)
            queue.add(key)
        elif key < 4:
            await asyncio.sleep(30)
        else:
            await asyncio.sleep(0.01)
            served.append(now())

    async with serving(queue, worker, n=16):
        queue.add("admission")
        await asyncio.sleep(0.1)
        for key in range(200):
            queue.add(key)
        await asyncio.sleep(10)
    assert len(served) == 196
    assert max(served) < 0.1 + 5 + 0.5


@pytest.mark.slow
async def test_a_key_that_has_given_way_for_five_seconds_stands_in_line_with_the_others():
    """33 passes a second of 60 ms go first: what gives way is served by one in four, and after 5 s by all."""
    queue, waited = WorkQueue("tests", gives_way=lambda key: key < 0), []

    async def worker(key):
        await asyncio.sleep(0.06)
        if key < 0:
            waited.append(now())

    async with serving(queue, worker, n=16):
        for key in range(1, 1001):
            queue.add(-key)
        for key in range(330):
            queue.add(key)
            await asyncio.sleep(1 / 33)
    assert len(waited) == 1000
    assert max(waited) < 9


async def test_all_workers_serve_what_gives_way_as_soon_as_nothing_else_is_in_work():
    queue, most, running = WorkQueue("tests", gives_way=lambda key: key != "first"), [0], set()

    async def worker(key):
        running.add(key)
        most.append(len(running))
        await asyncio.sleep(1)
        running.discard(key)

    async with serving(queue, worker, n=4):
        for key in ("a", "b", "c", "d", "e", "f", "first"):
            queue.add(key)
        await asyncio.sleep(1.5)
        assert "first" not in running
        assert len(running) == 4
        await asyncio.sleep(5)
    assert max(most) == 4


async def test_a_key_that_gives_way_no_more_goes_to_the_others_and_is_worked_on_once():
    giving, seen = {"a", "b"}, []
    queue = WorkQueue("tests", gives_way=lambda key: key in giving)
    queue.add("a")
    queue.add("b")
    giving.discard("b")
    queue.add("b")
    assert queue.depth == 2

    async def worker(key):
        seen.append(key)

    async with serving(queue, worker, n=1):
        await asyncio.sleep(1)
    assert seen == ["b", "a"]


async def test_keys_that_give_way_to_two_kinds_come_after_both_and_after_five_seconds_before_them():
    """0, 1 and 2 say what a key gives way to; one worker needs 1 s for each."""
    queue, seen = WorkQueue("tests", gives_way=lambda key: int(key[0])), []

    async def worker(key):
        seen.append(key)
        await asyncio.sleep(1)

    for key in ("2a", "1a", "2b", "0a", "1b", "0b", "1c"):
        queue.add(key)
    async with serving(queue, worker, n=1):
        await asyncio.sleep(4.5)
        queue.add("1d")
        await asyncio.sleep(20)
    assert seen == ["0a", "0b", "1a", "1b", "1c", "2a", "2b", "1d"]


async def test_of_eight_workers_two_serve_what_gives_way_most_beside_what_gives_way_less():
    queue, running = WorkQueue("tests", gives_way=int), set()

    async def worker(key):
        running.add(key)
        await asyncio.sleep(100)

    async with serving(queue, worker, n=8):
        for key in (2.1, 2.2, 2.3, 1.1, 1.2, 1.3):
            queue.add(key)
        await asyncio.sleep(4.5)
        assert running == {1.1, 1.2, 1.3, 2.1, 2.2}


async def test_a_worker_that_is_cancelled_as_a_key_comes_leaves_it_to_another():
    queue, taken = WorkQueue("tests"), []

    async def take():
        taken.append(await queue.get())

    first, second = asyncio.ensure_future(take()), asyncio.ensure_future(take())
    await asyncio.sleep(1)
    queue.add("a")
    first.cancel()
    await asyncio.wait({first, second}, timeout=5)
    assert taken == ["a"]
    assert first.cancelled()
