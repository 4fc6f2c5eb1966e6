"""Time in which nobody could act, and what it does to deadlines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core.absence import MOST_GAPS, Absences, read
from tests.builders import at, minutes

gaps = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 50)), max_size=8)


def away(*spans: tuple[float, float]) -> Absences:
    absences = Absences()
    for begin, end in spans:
        absences = absences.including(at(begin), at(end))
    return absences


@pytest.mark.parametrize(
    ("spans", "start", "deadline"),
    [
        ([], 0, 30),
        ([(10, 20)], 0, 40),
        ([(10, 20), (15, 25)], 0, 45),
        ([(10, 20), (39, 40)], 0, 41),
        ([(10, 20), (40, 50)], 0, 40),
        ([(0, 20)], 10, 50),
        ([(0, 10)], 10, 40),
        ([(30, 60)], 0, 30),
    ],
)
def test_only_time_in_which_we_could_act_counts(spans, start, deadline):
    assert away(*spans).deadline(at(start), minutes(30)) == at(deadline)


@given(gaps, st.integers(0, 500), st.integers(0, 120))
def test_what_is_left_of_the_time_until_the_deadline_is_the_whole_time(spans, start, time):
    absences = away(*((begin, begin + length) for begin, length in spans))
    deadline = absences.deadline(at(start), minutes(time))
    lost = sum(max((min(gap.end, deadline) - max(gap.begin, at(start))).total_seconds(), 0.0) for gap in absences.gaps)
    assert (deadline - at(start)).total_seconds() - lost == time * 60


def test_what_began_after_now_is_left_out_and_what_ends_after_it_is_cut():
    spans = away((0, 10), (20, 40), (50, 60))
    assert spans.until(at(30)) == away((0, 10), (20, 30))
    assert spans.until(at(20)) == away((0, 10))
    assert spans.until(at(60)) == spans


@given(gaps)
def test_what_is_written_is_read_again(spans):
    absences = away(*((begin, begin + length) for begin, length in spans))
    assert read(str(absences), at(10_000)) == absences


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "/",
        "2026-01-01/2026-01-02",
        "9999-12-31T00:00:00Z",
        ",,,",
        "a/b,c",
        "2026-01-01T00:00:00Z/9999-12-31T00:00:00Z",
    ],
)
def test_what_somebody_else_wrote_is_no_absence(text):
    assert read(text, at(0)) == Absences()


def test_of_a_hundred_gaps_none_is_forgotten_those_that_lie_nearest_to_each_other_are_one():
    """A replica that dies again and again after the API server was away for 20 minutes."""
    long = away((5, 25))
    many = [(26 + number, 26.1 + number) for number in range(100)]
    absences = away((5, 25), *many)
    assert (len(absences.gaps), absences.regained) == (MOST_GAPS, at(125.1))
    assert absences.gaps[0].begin == at(5)
    assert long.deadline(at(0), minutes(30)) == at(50) <= absences.deadline(at(0), minutes(30))


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 5)), max_size=150), st.integers(0, 5000))
def test_one_more_gap_never_brings_a_deadline_nearer(spans, start):
    absences, deadline = Absences(), at(start) + minutes(30)
    for begin, length in spans:
        absences = absences.including(at(begin), at(begin + length))
        assert len(absences.gaps) <= MOST_GAPS
        assert absences.deadline(at(start), minutes(30)) >= deadline
        deadline = absences.deadline(at(start), minutes(30))


def test_a_gap_that_ends_a_minute_ahead_of_our_clock_counts_up_to_now_and_one_further_ahead_does_not():
    """Who led before has a clock that is ahead of ours."""
    written = str(away((0, 120)))
    assert read(written, at(119)) == away((0, 119))
    assert read(written, at(118)) == Absences()
