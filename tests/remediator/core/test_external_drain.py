"""Whether another system has drained a node since it was asked to."""

from datetime import timedelta

import pytest

from remediator.core import external_drain
from remediator.core.operation_table import DrainState
from remediator.core.template import Strategy
from tests.builders import a_node, a_template, an_operation, at, condition

TEMPLATE = a_template(strategy=Strategy.EXTERNAL, drain_condition="SlurmDrained")
NOW, ASKED = at(20), at(10)


def node(*conditions, requested=ASKED):
    return a_node("gpu-1", *conditions, drain_requested=requested)


def drained(status="True", since=5.0, heartbeat=5.0):
    return condition("SlurmDrained", status, since=since, heartbeat=heartbeat, reason="Idle")


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        (None, DrainState.ABSENT),
        (node(requested=None), DrainState.ABSENT),
        (node(drained(since=11), requested=at(9)), DrainState.ABSENT),
        (node(), DrainState.RUNNING),
        (node(drained("False", since=11, heartbeat=12)), DrainState.RUNNING),
        (node(drained("Unknown", since=11, heartbeat=12)), DrainState.RUNNING),
        (node(drained(since=5, heartbeat=9.9)), DrainState.RUNNING),
        (node(drained(since=10, heartbeat=10)), DrainState.SUCCEEDED),
        (node(drained(since=5, heartbeat=11)), DrainState.SUCCEEDED),
        (node(drained(since=11, heartbeat=5)), DrainState.SUCCEEDED),
        (node(drained(since=25, heartbeat=25)), DrainState.SUCCEEDED),
        (node(drained(since=25.1, heartbeat=5)), DrainState.RUNNING),
    ],
)
def test_only_what_was_found_true_since_the_request_is_an_answer(seen, state):
    assert external_drain.state(an_operation(drain_started=ASKED), TEMPLATE, seen, NOW) is state


def test_nothing_is_asked_for_before_the_operation_says_since_when():
    assert external_drain.state(an_operation(), TEMPLATE, node(drained(since=11)), NOW) is DrainState.ABSENT


def test_a_request_within_a_second_is_the_one_that_the_node_shows_in_whole_seconds():
    begun = an_operation(drain_started=ASKED + timedelta(milliseconds=700))
    assert external_drain.state(begun, TEMPLATE, node(drained(since=10)), NOW) is DrainState.SUCCEEDED


def test_what_the_condition_says_is_told_in_words():
    assert external_drain.standing(TEMPLATE, node(drained("False"))) == "the condition SlurmDrained is False, Idle"
    assert external_drain.standing(TEMPLATE, node()) == "no system has set the condition SlurmDrained"
