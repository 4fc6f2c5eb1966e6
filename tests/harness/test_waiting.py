"""Who waits for a condition looks often at first, and then seldom enough to leave a real server its time."""

import pytest

from tests.harness.waiting import pause


@pytest.mark.parametrize(("waited", "seconds"), [(0.0, 0.02), (0.4, 0.02), (1.0, 0.05), (2.0, 0.1), (60.0, 0.1)])
def test_the_next_look_comes_after_a_twentieth_of_what_has_been_waited_within_limits(waited, seconds):
    assert pause(waited) == seconds
