"""What is asked of the second source about a node, and what its answers mean."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core import promql
from remediator.core.confirmation import ConfirmationAnswer, ConfirmationVerdict, Question, judged, question
from remediator.core.policy import Confirm
from tests.builders import a_policy, minutes

NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?(\.[a-z0-9]{1,9})?", fullmatch=True)


@pytest.mark.parametrize(
    ("query", "filled"),
    [
        ('X{node="{{node}}"} > 0', 'X{node="gpu-1.a"} > 0'),
        ("X{node='{{node}}', other=`{{node}}`}", "X{node='gpu-1.a', other=`gpu-1.a`}"),
        ('X{instance=~"{{node}}:.*"}', 'X{instance=~"gpu-1[.]a:.*"}'),
        ('X{instance!~ "{{node}}"}', 'X{instance!~ "gpu-1[.]a"}'),
        ('up # it\'s {{node}}\n{node="{{node}}"}', 'up # it\'s {{node}}\n{node="gpu-1.a"}'),
        ('X{a="\\"{{node}}"}', 'X{a="\\"gpu-1.a"}'),
    ],
)
def test_the_name_of_the_node_stands_where_the_placeholder_stood_inside_of_a_string(query: str, filled: str) -> None:
    assert promql.filled(query, "gpu-1.a") == filled


@pytest.mark.parametrize("name", ['a"} or vector(1) #', "a\\", "a`", "", "A", "a\n", "-a", "a{{node}}"])
def test_what_cannot_be_the_name_of_a_node_is_put_into_no_query(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a node"):
        promql.filled('X{node="{{node}}"}', name)


@given(NAMES)
def test_no_name_leaves_its_string(name: str) -> None:
    filled = promql.filled("X{node=\"{{node}}\",i=~'{{node}}.*'}", name)
    assert list(promql.faults(filled)) == []
    assert filled == f"X{{node=\"{name}\",i=~'{name.replace('.', '[.]')}.*'}}"


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ("X{node={{node}}}", "outside of quotes"),
        ('label_replace(up, "a", "{{node}}", "b", "")', "names no series with labels"),
        ('(X{node="{{node}}"}', "( is not closed"),
        ('X{node="{{node}}"})', ") closes nothing"),
        ('X{node="{{node}}"]', "] closes nothing"),
        ('X{node="{{node}}}', 'the string that begins with " does not end'),
        ('X{node="{{node}}"}[5m]', "asks for a range"),
    ],
)
def test_what_can_be_seen_to_be_wrong_is_named_with_what_to_do(query: str, fault: str) -> None:
    assert any(fault in found for found in promql.faults(query))


@pytest.mark.parametrize(
    "query",
    [
        'max(DCGM_FI_DEV_XID_ERRORS{node="{{node}}"}) > bool 0',
        'max_over_time(X{node="{{node}}"}[5m]) # (',
        'X{node="{{node}}", text="a ) } ]"}',
    ],
)
def test_a_query_that_is_right_has_no_fault(query: str) -> None:
    assert list(promql.faults(query)) == []


@pytest.mark.parametrize(
    ("query", "series"),
    [
        ('max(X{a="1"}) > bool 0', ['X{a="1"}']),
        ('changes(X{a="}{"}[15m] offset 5m) # Y{}', ['X{a="}{"}']),
        ('X{a="1"} and {__name__="Y"} or X{a="1"}', ['X{a="1"}', '{__name__="Y"}']),
        ('sum by (gpu) (X {a=~"1|2"})', ['X {a=~"1|2"}']),
        ("up", []),
    ],
)
def test_the_series_of_a_query_are_those_that_it_names_with_labels(query: str, series: list[str]) -> None:
    assert promql.selectors(query) == series


@pytest.mark.parametrize(
    ("query", "series"),
    [
        ("up", ["up"]),
        ('Y > bool 0 and on (node) max by (node) (X{a="1"})', ['X{a="1"}', "Y"]),
        ("sum(rate(job:X[5m] offset 1h)) BY (gpu, host) / ignoring(a) group_left(b) Y @ end()", ["job:X", "Y"]),
        ("max_over_time(X[30m:1m]) == bool Inf or NaN + 0x1F * 1e5 unless Y", ["X", "Y"]),
        ('count_values("Z", Y) # and Z\n and X', ["Y", "X"]),
        ('label_replace(up, "a", "$1", "b", "(.*)") > 5m', ["up"]),
        ('{"a.b"} or {__name__=~"X|Y"}', ['{"a.b"}', '{__name__=~"X|Y"}']),
        ("quantile without (a) (0.9, X) default 0 if (Y) keep_metric_names", ["X", "Y"]),
        ("vector(time() - 5) > 0", []),
    ],
)
def test_series_without_labels_are_dated_too(query: str, series: list[str]) -> None:
    assert promql.series(query) == series


def test_a_query_gives_nothing_where_one_of_its_series_is_old() -> None:
    assert promql.fresh('X{a="1"} > Y{a="1"} # why', 240) == (
        '(\nX{a="1"} > Y{a="1"} # why\n) and on() (min(timestamp(X{a="1"})) >= time() - 240)'
        ' and on() (min(timestamp(Y{a="1"})) >= time() - 240)'
    )
    with pytest.raises(ValueError, match="names no series"):
        promql.fresh("time()", 240)
    assert promql.fresh("up", 240) == "(\nup\n) and on() (min(timestamp(up)) >= time() - 240)"


def test_one_value_that_is_not_zero_confirms_and_zeros_do_not() -> None:
    assert judged((0.0, 79.0), "X") == ConfirmationAnswer(ConfirmationVerdict.CONFIRMED)
    assert judged((-1.0,), "X") == ConfirmationAnswer(ConfirmationVerdict.CONFIRMED)
    assert judged((0.0, 0.0), "X") == ConfirmationAnswer(ConfirmationVerdict.DENIED, "Prometheus says 0 to X")


def test_who_asks_for_a_series_of_which_0_is_the_fault_reads_how_to_ask_for_it() -> None:
    """up == 0 gives up, which is 0: the node that is down would be held for ever as if it were up."""
    query = 'up{node="gpu-1"} == 0'
    why = f"Prometheus says 0 to {query}; a series that is left with the value 0 says no: write == bool 0"
    assert judged((0.0,), query) == ConfirmationAnswer(ConfirmationVerdict.DENIED, why)


TIMES = [(300, 60, 240), (60, 30, 30), (30, 15, 15), (3600, 60, 3540)]


@pytest.mark.parametrize(("within", "valid", "lookback"), TIMES)
def test_a_sample_is_no_older_than_within_when_its_answer_is_used_for_the_last_time(
    within: int, valid: int, lookback: int
) -> None:
    question = Question("X", timedelta(seconds=within))
    assert question.valid_for == timedelta(seconds=valid)
    assert question.lookback == timedelta(seconds=lookback)


@pytest.mark.parametrize(("within", "valid", "lookback"), [(10, 1, 9), (2, 1, 1), (1, 0.5, 0.5)])
def test_how_old_a_sample_may_be_is_what_the_policy_says(within: float, valid: float, lookback: float) -> None:
    """An answer may be used for a minute of it, or half of it; the sample is so much younger when it is asked for."""
    asked = question(a_policy(confirm=Confirm('up{node="{{node}}"} == 0', minutes(within))), "gpu-1")
    assert asked == Question('up{node="gpu-1"} == 0', minutes(within))
    assert (asked.valid_for, asked.lookback) == (minutes(valid), minutes(lookback))
