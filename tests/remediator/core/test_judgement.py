"""What Conditions prove of a node, and which of them are believed."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core.health import Health, health_of
from remediator.core.judgement import ConditionDoubt, judge
from remediator.core.node import Status
from remediator.core.policy import Clause
from remediator.core.trust import untimely
from tests.builders import GPU, a_node, a_policy, at, condition, when

POLICY = a_policy()
STOPPED = condition("DetectorStale", "True", since=11, heartbeat=16)


def seen(*more, gpu="False", heartbeat=16, ready="True"):
    """A node of which all was heard of at `heartbeat`."""
    return a_node("n", condition(GPU, gpu, since=11, heartbeat=heartbeat), *more, ready=ready, heartbeat=heartbeat)


def test_that_detectors_have_stopped_is_itself_evidence_and_the_only_one():
    policy = a_policy("detector-stale", when(Clause("DetectorStale")))
    stopped = seen(STOPPED, gpu="True")
    assert judge(stopped, policy, at(16)).health is Health.UNHEALTHY
    assert judge(stopped, POLICY, at(16)).health is Health.UNKNOWN
    silent = seen(STOPPED, ready="Unknown")
    assert judge(silent, policy, at(16)).health is Health.UNKNOWN


@pytest.mark.parametrize(
    ("more", "ready"),
    [([STOPPED], "True"), ([], "Unknown")],
    ids=["the detectors have stopped", "the kubelet does not report"],
)
def test_devices_that_a_detector_has_counted_are_missing_only_where_detectors_are_believed(more, ready):
    policy = a_policy("devices-missing", when(Clause("DevicesMissing")))
    short = condition("DevicesMissing", "True", heartbeat=16)
    assert judge(seen(short), policy, at(16)).health is Health.UNHEALTHY
    doubted = seen(short, *more, ready=ready)
    assert judge(doubted, policy, at(16)).health is Health.UNKNOWN


@pytest.mark.parametrize("status", ["True", "False"])
def test_of_a_test_nobody_can_tell_while_the_kubelet_does_not_report_whatever_detectors_do(status):
    """Nothing could run there: another policy is for a silent node."""
    policy = a_policy("idle-test-failed", when(Clause("IdleTestFailed")))
    tested = condition("IdleTestFailed", status, since=11, heartbeat=16)
    told = Health.UNHEALTHY if status == "True" else Health.HEALTHY
    for more in ([], [STOPPED]):
        assert judge(seen(tested, *more), policy, at(16)).health is told
        assert judge(seen(tested, *more, ready="Unknown"), policy, at(16)).health is Health.UNKNOWN
    assert judge(seen(ready="Unknown"), policy, at(16)).health is Health.HEALTHY, "it was never tested"


@pytest.mark.parametrize(("ahead", "health"), [(5, Health.UNHEALTHY), (5.1, Health.UNKNOWN)])
def test_a_heartbeat_more_than_5_minutes_in_the_future_is_no_evidence_of_a_fault(ahead, health):
    judged = judge(seen(gpu="True", heartbeat=16 + ahead), POLICY, at(16))
    assert judged.health is health
    if health is Health.UNKNOWN:
        (doubt,) = judged.doubts
        assert (doubt.holds, str(doubt)) == (True, "GpuLost has a heartbeat from the future: the node's clock is ahead")


@pytest.mark.parametrize(
    ("entries", "node", "health", "doubts"),
    [
        pytest.param((when(),), a_node("n", condition()), Health.UNHEALTHY, (), id="holds"),
        pytest.param((when(),), a_node("n", condition(status="False")), Health.HEALTHY, (), id="does not hold"),
        pytest.param((when(),), a_node("n"), Health.UNKNOWN, (ConditionDoubt(GPU, "is absent"),), id="absent"),
        pytest.param(
            (when(Clause("A")), when(Clause("B"))),
            a_node("n", condition("A", "False")),
            Health.UNKNOWN,
            (ConditionDoubt("B", "is absent"),),
            id="well in one way, unknown in the other",
        ),
        pytest.param(
            (when(Clause("A")), when(Clause("B"))),
            a_node("n", condition("A")),
            Health.UNHEALTHY,
            (),
            id="sick in one way, unknown in the other",
        ),
        pytest.param(
            (when(Clause("A", Status.FALSE)),),
            a_node("n", condition("A", "False")),
            Health.UNHEALTHY,
            (),
            id="False is the fault",
        ),
    ],
)
def test_one_policy_sees_sickness_health_or_nothing(entries, node, health, doubts):
    finding = judge(node, a_policy("p", *entries), at(3))
    assert (finding.health, finding.doubts) == (health, doubts)


@pytest.mark.parametrize("since", [0, 2 * 1440])
@pytest.mark.parametrize("heartbeat", [-10, 0, 4, 6, 2 * 1440])
def test_while_the_same_conditions_are_untimely_time_changes_nothing_that_a_node_proves(since, heartbeat):
    """Looked at for four days: whenever what is proven changes, so does what is untimely."""
    sick = a_node("n", condition(GPU, "True", since=since, heartbeat=heartbeat), heartbeat=heartbeat)
    proven: dict[object, set[Health]] = {}
    for minute in range(0, 4 * 1440, 3):
        proven.setdefault(untimely(sick, at(minute)), set()).add(health_of(sick, POLICY, at(minute)))
    assert all(len(healths) == 1 for healths in proven.values())
    assert len(proven) > 1


STATUSES = st.sampled_from(["True", "False", "Unknown", ""])


@given(st.tuples(STATUSES, STATUSES, STATUSES), st.sampled_from([-30, 0, 10, 3000]))
def test_the_health_of_a_node_is_what_its_judgement_says(statuses, heartbeat):
    """Three conditions, absent or of any status, in an entry with two of them and one with the third."""
    named = zip(("A", "B", "C"), statuses, strict=True)
    found = [condition(name, status, heartbeat=heartbeat) for name, status in named if status]
    node, policy = a_node("n", *found), replace(POLICY, when=(when(Clause("A"), Clause("B")), when(Clause("C"))))
    assert health_of(node, policy, at(5)) is judge(node, policy, at(5)).health
