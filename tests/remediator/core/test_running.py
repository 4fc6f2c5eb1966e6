"""What the Lease says of who leads: how it was started, and whether it still leads."""

from datetime import timedelta

import pytest

from remediator.core.breaker import Breaker
from remediator.core.running import Leading, Running, read
from tests.builders import at, minutes


def test_what_is_written_is_read_again():
    running = Running(Breaker(7, timedelta(minutes=3)), "!nvidia.com/gpu.present")
    assert read(str(running)) == running


WRONG = ["", "[]", "{}", "null", '{"starts": "x", "window": 1}', '{"starts": 1, "window": 1e99}']


@pytest.mark.parametrize("text", WRONG)
def test_what_cannot_be_read_says_nothing(text):
    assert read(text) is None


@pytest.mark.parametrize(
    ("seconds", "leads", "phrase"),
    [
        (44, True, "a leads, last heard of 44 s ago"),
        (
            46,
            False,
            "no replica leads (for 46 s, since 2026-01-01 12:00:00 UTC): nothing starts or ends until one does",
        ),
    ],
)
def test_a_lease_of_15_seconds_counts_for_45_since_clocks_differ(seconds, leads, phrase):
    leader, now = Leading("a", at(0), timedelta(seconds=15)), at(seconds=seconds)
    assert (leader.leads(now), leader.described(now)) == (leads, phrase)


def test_a_lease_that_was_given_up_names_nobody():
    assert not Leading("", at(0), minutes(1)).leads(at(0))
