"""How a length of time is written for a person."""

from datetime import timedelta

import pytest

from remediator.core.duration import in_words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0 s"),
        (0.9, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (12_059, "3 h 20 min"),
        (3601, "1 h"),
        (21 * 86400 + 7200, "21 d 2 h"),
    ],
)
def test_its_two_largest_units_are_written_and_what_is_none_of_them_is_left_out(seconds: float, words: str) -> None:
    assert in_words(timedelta(seconds=seconds)) == words
