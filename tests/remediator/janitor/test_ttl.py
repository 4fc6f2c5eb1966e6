"""Times as kube-janitor's users write them, and those that it refused without telling anybody."""

import doctest
from datetime import UTC, datetime, timedelta

import pytest

from remediator.janitor import ttl
from remediator.janitor.ttl import UnreadableTime, in_units, parse_expiry, parse_ttl


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1), ("08s", 8), ("5m", 300), ("2h", 7200), ("7d", 604_800), ("1w", 604_800),
        ("1h30m", 5400), (" 1h", 3600), ("1h\n", 3600), ("1w2d6h", 799_200),
    ],
)  # fmt: skip
def test_a_ttl_is_a_number_with_a_unit_or_several_and_blanks_around_it_do_not_matter(text: str, seconds: int) -> None:
    assert parse_ttl(text) == timedelta(seconds=seconds)


def test_for_ever_is_no_length_of_time() -> None:
    assert parse_ttl("forever") is None


@pytest.mark.parametrize("text", ["", "foo", "1", "90", "5M", "-1s", "1.5h", "h", "0s", "0d0h", "99999999w", "1h 30m"])
def test_a_ttl_that_cannot_be_read_says_what_to_write(text: str) -> None:
    with pytest.raises(UnreadableTime, match="write"):
        parse_ttl(text)


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("2026-09-26T01:51:42Z", datetime(2026, 9, 26, 1, 51, 42, tzinfo=UTC)),
        ("2026-09-26T01:51", datetime(2026, 9, 26, 1, 51, tzinfo=UTC)),
        ("2026-09-26", datetime(2026, 9, 26, tzinfo=UTC)),
        ("2026-09-26T01:51:42+09:00", datetime(2026, 9, 25, 16, 51, 42, tzinfo=UTC)),
        ("2026-09-26 01:51:42.5", datetime(2026, 9, 26, 1, 51, 42, 500_000, tzinfo=UTC)),
    ],
)
def test_an_expiry_time_is_in_utc_unless_it_has_an_offset(text: str, when: datetime) -> None:
    assert parse_expiry(text) == when


@pytest.mark.parametrize(
    "text", ["", "foo", "2026", "20260926", "2026-13-01", "2026-09-26T25:00", "0001-01-01", "9999-12-31T23:59-12:00"]
)
def test_an_expiry_time_that_cannot_be_meant_says_what_to_write(text: str) -> None:
    with pytest.raises(UnreadableTime, match="write a time"):
        parse_expiry(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "-1s"), (0, "0s"), (1, "1s"), (61, "1m1s"), (3600, "1h"), (3900, "1h5m"), (90_000, "1d1h"),
        (1_209_600, "2w"),
    ],
)  # fmt: skip
def test_a_length_of_time_is_told_as_a_ttl_is_written(seconds: int, text: str) -> None:
    assert in_units(timedelta(seconds=seconds)) == text


def test_the_examples_of_the_module_are_true() -> None:
    assert doctest.testmod(ttl).failed == 0
