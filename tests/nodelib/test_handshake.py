"""What a Pod says of its checkpoint, and until when it is waited for."""

from datetime import UTC, datetime, timedelta

import pytest

from nodelib.k8s.handshake import DONE, REQUESTED, WANTED, Checkpoint, checkpoint_of, last_call, text_of

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def read(phase="Running", **notes):
    named = {{"wanted": WANTED, "requested": REQUESTED, "done": DONE}[key]: value for key, value in notes.items()}
    return checkpoint_of({"metadata": {"annotations": named}, "status": {"phase": phase}}, NOW)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10m", 600), ("90s", 90), ("1h", 3600), ("1h30m", 3600), ("9999999h", 3600), ("soon", 600), ("", 600)],
)
def test_what_it_needs_is_never_more_than_an_hour_and_ten_minutes_where_nobody_can_read_it(text, seconds):
    assert read(wanted=text).wanted == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["0", "0s", "0h0m"])
def test_no_time_is_no_wish(text):
    assert read(wanted=text) is None


def test_without_the_annotation_or_a_running_program_there_is_no_wish():
    assert (read(), read(requested=text_of(NOW)), read("Pending", wanted="10m")) == (None, None, None)


@pytest.mark.parametrize(
    ("requested", "done", "over"),
    [
        (-60, None, False),
        (-600, None, True),
        (-599, None, False),
        (-60, -60, True),
        (-60, -59, True),
        (-60, -61, False),
        (-60, 99999, True),
    ],
)
def test_it_is_over_with_an_answer_that_is_not_before_the_request_or_with_its_time(requested, done, over):
    def at(seconds):
        return None if seconds is None else NOW + timedelta(seconds=seconds)

    assert Checkpoint(timedelta(minutes=10), at(requested), at(done), NOW).over is over


def test_a_time_that_cannot_be_read_was_never_written():
    found = read(wanted="10m", requested="yesterday", done="2026-13-01")
    assert (found.requested, found.done) == (None, None)
    assert not found.asked(NOW)


def test_a_request_that_lies_ahead_is_none_of_ours():
    assert read(wanted="10m", requested="2026-01-01T12:00:30Z").asked(NOW)
    assert not read(wanted="10m", requested="2099-01-01T00:00:00Z").asked(NOW)


def test_a_time_without_a_zone_is_in_utc_and_a_request_of_the_same_second_counts():
    assert read(wanted="10m", requested="2026-01-01T12:00:00").asked(NOW)
    assert read(wanted="10m", requested=text_of(NOW)).asked(NOW)
    assert not read(wanted="10m", requested=text_of(NOW - timedelta(seconds=1))).asked(NOW)


@pytest.mark.parametrize(
    ("timeout", "grace", "seconds"),
    [
        (1800, 30, 60),  # the least
        (1800, 0, 60),
        (1800, 600, 615),  # its grace, and the 15 s until its kubelet has reported
        (1800, 3600, 900),  # half of the drain's time
        (100, 30, 50),
        (8, 30, 4),
    ],
)
def test_nobody_is_waited_for_any_longer_when_it_could_no_more_end_within_the_drains_time(timeout, grace, seconds):
    assert last_call(timeout, grace) == seconds
