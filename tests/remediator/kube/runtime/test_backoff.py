"""Waits grow with failures, are drawn from the whole range, and stay under the cap."""

import pytest

from remediator.kube.runtime.backoff import full_jitter


@pytest.mark.parametrize(("failures", "longest"), [(0, 0.8), (1, 1.6), (3, 6.4), (6, 30.0), (5000, 30.0)])
def test_the_range_doubles_up_to_the_cap(failures, longest):
    """Each failure doubles the longest wait, until the cap, however many there were."""
    assert full_jitter(failures, base=0.8, cap=30.0, rand=lambda: 1.0) == pytest.approx(longest)


def test_the_whole_range_is_drawn_from():
    """Half the chance is half the wait, none is none: clients that failed together spread out."""
    assert full_jitter(2, base=1.0, cap=30.0, rand=lambda: 0.5) == 2.0
    assert full_jitter(2, base=1.0, cap=30.0, rand=lambda: 0.0) == 0.0
