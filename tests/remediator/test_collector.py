"""The collector walks what has come since the last full collection, and nothing else."""

import gc

from remediator import collector


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
