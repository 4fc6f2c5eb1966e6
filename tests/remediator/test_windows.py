"""When windows are open: crons, time zones, clocks that are set forward and back."""

import zoneinfo
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator import windows
from remediator.core.window import Closed, InvalidWindow, Window
from remediator_sim.invariants.gates import is_open

TOKYO, BERLIN, NEW_YORK = "Asia/Tokyo", "Europe/Berlin", "America/New_York"
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
SECOND, MOMENT = timedelta(seconds=1), timedelta(microseconds=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def window(cron: str = "0 2 * * *", hours: float = 4, zone: str = "UTC") -> Window:
    return Window(cron, timedelta(hours=hours), zone)


def said(now: str | datetime, *given: Window) -> str:
    """What the windows say: open, or when the next one opens, in UTC."""
    shut = windows.shut(given, utc(now) if isinstance(now, str) else now)
    assert not isinstance(shut, InvalidWindow), shut
    return f"until {shut.until:%m-%d %H:%M}" if isinstance(shut, Closed) else "open"


def test_without_windows_nothing_is_shut() -> None:
    assert windows.shut((), utc("2026-11-20 09:00")) is None


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-11-20 01:59:59", "until 11-20 02:00"),
        ("2026-11-20 02:00", "open"),
        ("2026-11-20 05:59:59", "open"),
        ("2026-11-20 06:00", "until 11-21 02:00"),
        ("2026-12-31 23:00", "until 01-01 02:00"),
    ],
)
def test_a_window_of_four_hours_from_two_o_clock(now: str, expected: str) -> None:
    assert said(now, window()) == expected


def test_its_bounds_are_exact() -> None:
    begin = utc("2026-11-20 02:00")
    moments = (begin - MOMENT, begin, begin + 4 * HOUR - MOMENT, begin + 4 * HOUR)
    assert [said(now, window()) for now in moments] == ["until 11-20 02:00", "open", "open", "until 11-21 02:00"]


@pytest.mark.parametrize("order", [1, -1], ids=["forward", "backward"])
def test_what_ends_in_the_middle_of_a_minute_ends_there_in_whatever_order_moments_are_asked_about(order: int) -> None:
    begin, given = utc("2026-11-20 02:00"), window(hours=330.5 / 3600)
    end = begin + timedelta(seconds=330.5)
    moments = (begin, end - SECOND / 2, end - MOMENT, end, end + MOMENT, end + SECOND)
    expected = ("open", "open", "open", *["until 11-21 02:00"] * 3)
    assert [said(now, given) for now in moments[::order]] == list(expected[::order])


def test_passes_of_one_minute_work_a_window_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, first_after = [], windows._first_after
    monkeypatch.setattr(windows, "_first_after", lambda *of: asked.append(of) or first_after(*of))
    for milliseconds in range(0, 60_000, 100):
        said(utc("2026-11-21 09:00") + timedelta(milliseconds=milliseconds), window("7 3 * * *"))
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        pytest.param("0 2 * * 1-5", "until 11-23 02:00", id="Monday to Friday"),
        pytest.param("0 2 * * mon-fri", "until 11-23 02:00", id="by name"),
        pytest.param("0 2 * * 0", "until 11-22 02:00", id="0 is Sunday"),
        pytest.param("0 2 * * 7", "until 11-22 02:00", id="so is 7"),
        pytest.param("0 2 * * 1", "until 11-23 02:00", id="1 is Monday"),
        pytest.param("0 2 * * 6", "until 11-21 02:00", id="6 is Saturday"),
        pytest.param("0 2 * * 5-7", "until 11-21 02:00", id="Friday to Sunday"),
        pytest.param("0 2 * * fri-sun", "until 11-21 02:00", id="the same by name"),
        pytest.param("0 2 * * */2", "until 11-21 02:00", id="Sunday, Tuesday, Thursday, Saturday"),
        pytest.param("0 2 * * 1,3", "until 11-23 02:00", id="Monday and Wednesday"),
        pytest.param("30 2 1 * *", "until 12-01 02:30", id="the first of the month"),
        pytest.param("0 2 29 2 *", "until 02-29 02:00", id="leap days"),
        pytest.param("*/20 12-14 * jan,dec *", "until 12-01 12:00", id="steps, ranges and months by name"),
        pytest.param("5 */8 * * *", "until 11-20 16:05", id="every eight hours"),
    ],
)
def test_when_the_next_window_opens_after_a_friday_at_noon(cron: str, expected: str) -> None:
    assert said("2026-11-20 12:30", window(cron)) == expected


@pytest.mark.parametrize(
    ("zone", "now", "expected"),
    [
        (TOKYO, "2026-11-20 16:59", "until 11-20 17:00"),
        (TOKYO, "2026-11-20 17:00", "open"),
        (BERLIN, "2026-11-20 00:59", "until 11-20 01:00"),
        (BERLIN, "2026-07-20 00:00", "open"),
        (NEW_YORK, "2026-11-20 06:59", "until 11-20 07:00"),
        ("Asia/Kathmandu", "2026-11-20 00:00", "open"),
        ("US/Pacific", "2026-11-20 09:59", "until 11-20 10:00"),
    ],
)
def test_two_o_clock_is_that_of_the_time_zone(zone: str, now: str, expected: str) -> None:
    assert said(now, window(zone=zone)) == expected


@pytest.mark.parametrize(
    ("zone", "jump"),
    # The clocks go from 02:00 to 03:00 at this time.
    [(BERLIN, "2027-03-28 01:00"), (NEW_YORK, "2027-03-14 07:00")],
)
@pytest.mark.parametrize("hours", [0.1, 0.5, 4, 25])
def test_where_the_clocks_skip_its_beginning_a_window_opens_an_hour_later_by_them(
    zone: str, jump: str, hours: float
) -> None:
    """02:30 does not exist on that day: it opens when the clocks show 03:30, and stays open for all of its time."""
    skipped, opens = window("30 2 * * *", hours, zone), utc(jump) + 30 * MINUTE
    assert windows.shut((skipped,), opens - MOMENT) in (Closed(opens), *([None] if hours > 24 else []))
    inside = [opens + timedelta(hours=hours) * part / 50 for part in range(50)]
    assert [windows.shut((skipped,), now) for now in inside] == [None] * 50
    after = windows.shut((skipped,), opens + timedelta(hours=hours))
    assert after == (Closed(opens + 23 * HOUR) if hours < 23 else None), "the next day it is 02:30 again"


@pytest.mark.parametrize(
    ("zone", "twice"),
    # The clocks go from the end of this hour back to its beginning.
    [(BERLIN, ("2026-10-25 00:00", "2026-10-25 01:00")), (NEW_YORK, ("2026-11-01 05:00", "2026-11-01 06:00"))],
)
def test_in_the_hour_that_comes_twice_a_window_opens_twice(zone: str, twice: tuple[str, str]) -> None:
    hour = 2 if zone == BERLIN else 1
    short, long = window(f"30 {hour} * * *", 0.5, zone), window(f"30 {hour} * * *", 4, zone)
    first, second = (utc(begin) + 30 * MINUTE for begin in twice)
    assert windows.shut((short,), first - MOMENT) == Closed(first)
    assert windows.shut((short,), first) is None
    assert windows.shut((short,), first + 30 * MINUTE) == Closed(second)
    assert windows.shut((short,), second) is None
    assert windows.shut((short,), second + 30 * MINUTE) == Closed(second + 24 * HOUR)
    assert [windows.shut((long,), now) for now in (first, second, second + 4 * HOUR - MOMENT)] == [None] * 3
    assert windows.shut((long,), second + 4 * HOUR) == Closed(second + 24 * HOUR)


def test_tokyo_sets_no_clock() -> None:
    opens = [windows.shut((window(zone=TOKYO),), utc(f"2026-{month:02}-15 16:00")) for month in range(1, 13)]
    assert opens == [Closed(utc(f"2026-{month:02}-15 17:00")) for month in range(1, 13)]


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-11-20 01:00", "until 11-20 02:00"),
        ("2026-11-20 03:30", "open"),
        ("2026-11-20 05:30", "open"),
        ("2026-11-20 07:00", "until 11-20 22:00"),
        ("2026-11-20 23:00", "open"),
    ],
)
def test_of_windows_that_overlap_one_is_enough_and_the_first_to_open_is_waited_for(now: str, expected: str) -> None:
    assert said(now, window("0 2 * * *", 3), window("0 3 * * *", 4), window("0 22 * * *", 2)) == expected


@pytest.mark.parametrize("hours", [24, 25, 168])
def test_a_window_that_is_as_long_as_its_period_is_always_open(hours: float) -> None:
    times = [utc("2026-11-20 00:00") + 37 * MINUTE * step for step in range(100)]
    assert {said(now, window(hours=hours)) for now in times} == {"open"}


@pytest.mark.parametrize(
    ("given", "always"),
    [
        (window(hours=24), True),
        (window(hours=23.99), False),
        (window("* * * * *", 1 / 60), True),
        (window("0 */6 * * *", 6), True),
        (window("0 2 * * 1-5", 24), False),
        (window("0 2 * * 1,4", 96), True),
        (window(hours=24, zone=BERLIN), True),
    ],
)
def test_a_window_that_keeps_nothing_out_is_found(given: Window, always: bool) -> None:
    assert windows.always_open(given) is always


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        (window("0 2 * *"), "cron", "'0 2 * *' is not minute, hour"),
        (window("0 24 * * *"), "cron", "write such as 0 2 * * 1-5"),
        (window("@daily"), "cron", "write such as 0 2 * * 1-5"),
        (window("0 2 last * *"), "cron", "write such as 0 2 * * 1-5"),
        (window("0 5-2 * * *"), "cron", "cannot be read"),
        (window("*/90 2 * * *"), "cron", "cannot be read"),
        (window("0 2 * * 4-2"), "cron", "'4-2' names no days of the week; write such as 1-5"),
        (window("0 2 1 * 1"), "cron", "write two windows instead"),
        (window("0 2 31 2 *"), "cron", "never comes; correct the day and the month"),
        (window("0 2 30,31 2 *"), "cron", "never comes"),
        (window(zone="Asia/Tokio"), "timeZone", "'Asia/Tokio' is unknown"),
        (window(zone="Asia"), "timeZone", "write such as Asia/Tokyo"),
        (window(zone=""), "timeZone", "write such as Asia/Tokyo"),
        (window(zone="../../etc/passwd"), "timeZone", "write such as Asia/Tokyo"),
        (window(zone="\0"), "timeZone", "write such as Asia/Tokyo"),
        (window(hours=0), "duration", "from 1m to 168h"),
        (window(hours=168.5), "duration", "write several windows for more"),
    ],
)
def test_what_cannot_be_is_refused_with_its_field_and_what_to_write(given: Window, field: str, words: str) -> None:
    shut = windows.shut((window(), given), utc("2026-11-20 09:00"))
    assert isinstance(shut, InvalidWindow), "also where another window is open: nobody knows what was meant"
    assert shut.field == f"windows[1].{field}"
    assert words in shut.why


def test_everything_that_is_wrong_is_said_at_once() -> None:
    found = windows.problems((window("x", 0, "x"), window()))
    assert [problem.field for problem in found] == ["windows[0].duration", "windows[0].timeZone", "windows[0].cron"]


@pytest.mark.parametrize("zone", [TOKYO, BERLIN, NEW_YORK, "US/Pacific"])
def test_zones_are_known_where_the_machine_has_none(zone: str) -> None:
    """A container may have no /usr/share/zoneinfo: the package tzdata has them."""
    zoneinfo.reset_tzpath(to=())
    zoneinfo.ZoneInfo.clear_cache()
    try:
        assert windows.zone(zone).key == zone
    finally:
        zoneinfo.reset_tzpath()
        zoneinfo.ZoneInfo.clear_cache()


CRONS = st.sampled_from(("0 2 * * *", "*/20 * * * *", "15,45 1-3 * * *", "30 22 * * 5-7", "10 0 1,15 * *", "0 4 * * 1"))


@given(
    CRONS,
    st.integers(1, 3000),
    st.sampled_from((TOKYO, NEW_YORK, BERLIN, "Asia/Kathmandu", "Australia/Lord_Howe")),
    st.integers(0, 200 * 24 * 60 * 2),
)
def test_it_is_open_when_it_began_less_than_its_duration_ago(cron: str, length: int, zone: str, halves: int) -> None:
    """From August to March: clocks are set back, but in Berlin and New York not forward."""
    now = utc("2026-08-01 00:00") + 30 * SECOND * halves
    shut = windows.shut((Window(cron, MINUTE * length, zone),), now)
    known = {"cron": cron, "duration": f"{length}m", "timeZone": zone}
    skips = zone == "Australia/Lord_Howe"  # forward in October; the judge knows of no time that does not exist
    assert skips or (shut is None) == is_open(known, now)
    if isinstance(shut, Closed) and not skips:
        assert is_open(known, shut.until)
        assert not is_open(known, shut.until - SECOND)
