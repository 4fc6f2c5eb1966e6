"""Pods that stay though somebody has deleted them: which count, and how PodsStuckTerminating turns."""

import pytest

from remediator.core.node import NodeCondition, Status
from remediator.core.stuck_pods import LONG, PODS, SOON, STUCK_PODS, own_condition
from tests.builders import a_node, at, condition

TRUE, FALSE, UNKNOWN = (Status.TRUE, "PodsDoNotEnd"), (Status.FALSE, "NoPodStuck"), (Status.UNKNOWN, "EndOfPodsUnknown")


def stands(status: str = "True") -> NodeCondition:
    return condition(STUCK_PODS, status, since=0, reason="PodsDoNotEnd", message="as it was")


def told(*ends: float, now: float, before: NodeCondition | None = None, ready: str = "True", since: float = 0):
    """What is said of Pods whose grace was over at these minutes. `since`: of what the kubelet says of itself."""
    node = a_node("gpu-1", condition("Ready", ready, since=since), *filter(None, (before,)))
    return own_condition(node, {f"team/{number}": at(minute) for number, minute in enumerate(ends)}, at(now))


def said(*ends: float, **more):
    words = told(*ends, **more)
    return words and (words.status, words.reason)


@pytest.mark.parametrize(
    ("ends", "now", "expected"),
    [
        ((), 600, None),
        ((60,), 89, None),
        ((60,), 90, TRUE),
        ((60, 60), 89, None),
        ((60, 60, 60), 69, None),
        ((60, 60, 60), 70, TRUE),
        ((60, 60, 66), 75, None),
    ],
)
def test_three_pods_count_after_ten_minutes_and_one_after_thirty(ends, now, expected):
    assert (PODS, SOON.total_seconds(), LONG.total_seconds()) == (3, 600, 1800)
    assert said(*ends, now=now) == expected


def test_a_pod_whose_grace_lies_ahead_does_not_count():
    assert said(100, 100, 100, now=60) is None


@pytest.mark.parametrize(("since", "expected"), [(60, TRUE), (61, None), (95, None)])
def test_time_counts_from_when_the_kubelet_was_ready_again(since, expected):
    assert said(0, now=90, since=since) == expected


@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_of_a_node_whose_kubelet_is_not_ready_nobody_can_tell(ready):
    assert said(0, 0, 0, now=90, ready=ready) is None
    assert said(0, 0, 0, now=90, ready=ready, before=stands()) == UNKNOWN
    assert said(now=90, ready=ready, before=stands("Unknown")) == UNKNOWN
    assert said(0, 0, 0, now=90, ready=ready, before=stands("False")) is None


def test_a_kubelet_that_is_back_is_given_its_time_before_it_is_said_again():
    for before in (stands(), stands("Unknown")):
        assert said(0, now=90, since=85, before=before) == UNKNOWN
        assert said(0, now=95, since=85, before=before) == TRUE
        assert said(now=90, since=85, before=before) == FALSE, "the Pods are gone"


def test_it_stands_until_the_last_pod_that_is_late_is_gone():
    assert said(60, now=75, before=stands()) == TRUE, "one Pod of them is enough"
    assert said(74, now=75, before=stands()) == FALSE, "that one has its time"
    assert said(now=75, before=stands()) == FALSE


def test_it_says_how_many_there_are_and_which_one_stays_longest():
    words = told(61, 60, 62, now=100)
    assert words.message == (
        "3 Pods stay 10 minutes or more after the end of their grace; longest team/1, since 2026-01-01 13:00 UTC"
    )


@pytest.mark.parametrize(("now", "before", "minutes"), [(90, None, 30), (89, stands(), 10), (90, stands(), 30)])
def test_of_one_pod_it_says_the_time_after_which_that_one_counts(now, before, minutes):
    assert told(60, now=now, before=before).message == (
        f"1 Pod stays {minutes} minutes or more after the end of its grace: team/0, since 2026-01-01 13:00 UTC"
    )
