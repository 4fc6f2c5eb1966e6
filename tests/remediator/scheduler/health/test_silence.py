"""Detectors that are silent: for an hour nobody can tell, then the node is used last."""

from datetime import timedelta

import pytest

from remediator.core.node import Node
from remediator.core.policy import Clause
from remediator.scheduler.health.node_health import health
from remediator.scheduler.health.policy_index import PolicyIndex
from remediator.scheduler.health.silence import LONG, silent, silent_conditions
from remediator.scheduler.reasons import VerdictReason
from tests.builders import a_node, a_policy, at, condition, when

HOUR = LONG.total_seconds() / 60


def node(*, heartbeat: float = 0, **stale: str) -> Node:
    told = [condition("DetectorStale", status, heartbeat=heartbeat) for status in stale.values()]
    return a_node("gpu-1", condition(status="False", heartbeat=heartbeat), *told, heartbeat=heartbeat)


@pytest.mark.parametrize(
    ("minute", "reason"),
    [
        (15, VerdictReason.FIT),
        (16, VerdictReason.HEALTH_UNKNOWN),
        (HOUR, VerdictReason.HEALTH_UNKNOWN),
        (HOUR + 1, VerdictReason.DETECTORS_SILENT),
    ],
)
def test_what_is_said_of_a_node_whose_detectors_were_heard_of_last_at_minute_0(minute, reason) -> None:
    assert health(node(), [], PolicyIndex([a_policy()]), at(minute)) is reason


def test_a_detector_that_was_never_heard_of_is_not_silent() -> None:
    never = a_node(heartbeat=2 * HOUR)
    assert health(never, [], PolicyIndex([a_policy()]), at(2 * HOUR)) is VerdictReason.HEALTH_UNKNOWN


@pytest.mark.parametrize(("status", "expected"), [("True", True), ("Unknown", True), ("False", False)])
def test_detector_stale_tells_of_silence_though_heartbeats_come(status: str, expected: bool) -> None:
    told = node(heartbeat=HOUR + 1, stale=status)
    assert silent(told, [a_policy()], at(HOUR + 1)) is expected
    assert not silent(told, [a_policy()], at(HOUR)), "not yet for an hour"


def test_only_conditions_that_a_policy_asks_for_count() -> None:
    late = at() + LONG + timedelta(minutes=1)
    assert silent_conditions(node(), late) == ("Ready", "GpuLost")
    assert not silent(node(), [a_policy("other", when(tolerance=1))][:0], late)


@pytest.mark.parametrize("stale_after", [timedelta(0), None], ids=["written on change", "with heartbeats"])
@pytest.mark.parametrize(
    ("minute", "reason"),
    [(HOUR, VerdictReason.HEALTH_UNKNOWN), (HOUR + 1, VerdictReason.DETECTORS_SILENT)],
)
def test_a_reporter_of_which_no_pod_is_ready_for_an_hour_is_silent_though_the_controller_says_so_each_minute(
    stale_after, minute, reason
) -> None:
    sign = condition("ReportedBy/nvsentinel/app=monitor", "False", heartbeat=minute)
    fault = condition("GpuMemWatch", "False", heartbeat=minute)
    policy = a_policy("p", when(Clause("GpuMemWatch", stale_after=stale_after, reporter=sign.type)))
    assert health(a_node("gpu-1", sign, fault, heartbeat=minute), [], PolicyIndex([policy]), at(minute)) is reason
