"""The collector walks what has come since the last full collection, and nothing else."""

import asyncio
import gc
import math
from contextlib import suppress
from itertools import pairwise

import pytest

from remediator import collector
from tests.harness.controller import controller_harness, running
from tests.harness.kinds import NODES
from tests.harness.waiting import until

pytestmark = pytest.mark.sampled("collector")


def test_what_a_full_collection_has_left_is_not_walked_again() -> None:
    before = gc.get_freeze_count()
    try:
        with collector.short_pauses():
            kept = [[number] for number in range(50_000)]
            gc.collect()
            assert gc.get_freeze_count() >= before + len(kept)
            assert len(gc.get_objects()) < len(kept), "a collection from now on has that much less to walk"
        frozen = gc.get_freeze_count()
        gc.collect()
        assert gc.get_freeze_count() <= frozen, "outside of it Python does as it always does"
    finally:
        gc.unfreeze()


def test_between_two_full_collections_no_more_objects_come_than_are_walked_in_milliseconds() -> None:
    came, kept, before = [], [], gc.get_threshold()

    def note(phase: str, collection: dict[str, int]) -> None:
        if phase == "stop" and collection["generation"] == 2:
            came.append(len(kept))

    gc.callbacks.append(note)
    try:
        with collector.short_pauses():
            collector.keep()
            for number in range(150_000):
                kept.append([number])
        assert max(later - earlier for earlier, later in pairwise(came)) <= 40_000
        assert len(came) >= 4, "there were some to look at"
        assert gc.get_threshold() == before
    finally:
        gc.callbacks.remove(note)
        gc.unfreeze()


def test_what_is_there_before_anybody_is_served_is_not_walked_at_all() -> None:
    kept = [[number] for number in range(50_000)]
    try:
        collector.keep()
        assert len(gc.get_objects()) < len(kept)
    finally:
        gc.unfreeze()


MIB = 2**20


@pytest.mark.parametrize(
    ("resident", "walks"),
    [
        ([100] * 5, 0),
        ([100, 115, 115, 115], 0),
        ([100, 115, 116, 116, 116], 1),  # as large after the walk: no more of them
        ([100, 116, 108, 116, 124], 2),  # it has 108 after the first walk
        ([100, 90, 106], 1),  # a storm was over
        ([math.inf] * 4, 3),  # nobody tells
    ],
)
async def test_everything_is_walked_only_where_the_process_has_grown_by_16_mib_since_it_was_smallest(
    resident: list[float], walks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In MiB, on one day after the other."""
    days, walked = iter(resident), []
    now = next(days)

    async def a_day(_: float) -> None:
        nonlocal now
        now = next(days, None)
        if now is None:
            raise asyncio.CancelledError

    monkeypatch.setattr(collector.asyncio, "sleep", a_day)
    monkeypatch.setattr(collector, "_resident", lambda: now * MIB)
    monkeypatch.setattr(collector.gc, "unfreeze", lambda: walked.append(now))
    with suppress(asyncio.CancelledError):
        await collector.collect_grown()
    assert len(walked) == walks


def test_how_large_the_process_is_is_what_the_system_says() -> None:
    held = b"x" * (32 * MIB)
    with_it = collector._resident()
    del held
    assert 16 * MIB < with_it < 16 * 2**30
    assert collector._resident() <= with_it - 24 * MIB


async def test_six_hundred_changes_leave_next_to_nothing_to_a_walk_through_everything() -> None:
    """With a controller and the server that it follows; one case comes and ends."""
    async with controller_harness() as harness, running(harness):
        await harness.policy()
        await harness.node("gpu-1")
        gc.unfreeze()
        gc.collect()
        try:
            with collector.short_pauses():
                await harness.condition("gpu-1", "True")
                await until(lambda: harness.ended("gpu-1", "Recovered"))
                for number in range(600):
                    await harness.change(NODES, "gpu-1", metadata={"labels": {"number": str(number)}})
                    if number % 60 == 0:
                        gc.collect()  # freezes what lives now
                gc.collect()
            gc.unfreeze()
            assert gc.collect() < 600
        finally:
            gc.unfreeze()
