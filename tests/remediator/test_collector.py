"""The collector walks what has come since the last full collection, and nothing else."""

import gc
from itertools import pairwise

import pytest

from remediator import collector

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
