"""Conditions of others, that are written only when they change: who says that they still hold, and what is unknown."""

import pytest

from remediator.core.health import Health, health_of
from remediator.core.judgement import ConditionDoubt, judge
from remediator.core.node import Status
from remediator.core.policy import Clause, Mode
from remediator.core.proof import Proof, prove, well_since
from remediator.core.reporters import ALL, NO_SUCH_POD, NONE, Reporter, ReporterPod, asked, of_condition, own_condition
from remediator.core.trust import own_ages
from remediator.core.unproven import lacking
from remediator.kube import api
from remediator.kube.api import decode, reporter_pods
from remediator.kube.api.builtin import PodCondition, PodSpec
from remediator.kube.api.common import OwnerReference
from tests.builders import a_case, a_node, a_policy, at, condition, when

AGENT = Reporter("kube-system", (("app", "agent"), ("tier", "node")))
SIGN = AGENT.condition
FOREIGN = Clause("AcceleratedHardwareReady", Status.FALSE, stale_after=at(0) - at(0), reporter=SIGN)
POLICY = a_policy("eks", when(FOREIGN), settle=5, fresh=3, timeout=20)


def node(says="False", sign="True", heard=100.0, *more, since=1.0, ready_at=100.0, written=None):
    """A node whose agent wrote its Condition at minute 1 and never since, and was seen alive at `heard`."""
    seen = [condition("AcceleratedHardwareReady", says, since=since, heartbeat=written or since)]
    seen += [condition(SIGN, sign, since=0, heartbeat=heard)] if sign else []
    return a_node("n", *seen, *more, heartbeat=ready_at)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(
            node(), Health.UNHEALTHY, id="False is bad, and its agent lives: as true after 99 minutes as after one"
        ),
        pytest.param(node(says="True"), Health.HEALTHY, id="True is good"),
        pytest.param(node(says="Unknown"), Health.UNKNOWN, id="the agent cannot tell"),
        pytest.param(node(sign="False"), Health.UNKNOWN, id="no Pod of it is Ready"),
        pytest.param(node(says="True", sign="False"), Health.UNKNOWN, id="which is no health either"),
        pytest.param(node(sign="Unknown"), Health.UNKNOWN, id="nobody can tell whether one is"),
        pytest.param(node(sign=""), Health.UNKNOWN, id="the controller has said nothing yet"),
        pytest.param(node(heard=85), Health.UNHEALTHY, id="seen alive 15 minutes ago"),
        pytest.param(node(heard=84.9), Health.UNKNOWN, id="the controller has not looked for longer"),
        pytest.param(node(heard=105.1), Health.UNKNOWN, id="a look from the future is none"),
        pytest.param(a_node("n", condition(SIGN, "True", since=0, heartbeat=100)), Health.UNKNOWN, id="absent"),
        pytest.param(
            node("False", "True", 100, condition("DetectorStale", "True", since=0, heartbeat=100)),
            Health.UNHEALTHY,
            id="that our detectors have stopped says nothing of theirs",
        ),
    ],
)
def test_what_is_written_only_on_change_is_believed_while_those_who_write_it_are_alive(seen, expected):
    assert judge(seen, POLICY, at(100)).health is health_of(seen, POLICY, at(100)) is expected


@pytest.mark.parametrize(
    ("sign", "why"),
    [
        ("False", "is ignored: no Pod of kube-system/app=agent,tier=node is Ready"),
        (
            "",
            "is ignored: the controller has not said lately whether a Pod of kube-system/app=agent,tier=node is Ready",
        ),
    ],
)
def test_a_fault_that_is_ignored_says_who_is_missing(sign, why):
    assert judge(node(sign=sign), POLICY, at(100)).doubts == (
        ConditionDoubt("AcceleratedHardwareReady", why, holds=True),
    )
    text = lacking(a_case(), node("True", sign), POLICY, Health.UNKNOWN, at(100))
    assert text == f"AcceleratedHardwareReady {why}, so nobody can tell"


@pytest.mark.parametrize(("minutes", "expected"), [(30, Health.UNHEALTHY), (30.1, Health.UNKNOWN)])
def test_a_condition_with_heartbeats_of_its_own_is_believed_for_as_long_as_its_policy_says(minutes, expected):
    slow = Clause("KernelDeadlock", stale_after=at(30) - at(0))
    seen = a_node("n", condition("KernelDeadlock", "True", since=0, heartbeat=0), heartbeat=minutes)
    assert health_of(seen, a_policy("p", when(slow)), at(minutes)) is expected
    kept = Clause("KernelDeadlock", stale_after=at(30) - at(0), reporter=SIGN)
    assert health_of(seen, a_policy("p", when(kept)), at(minutes)) is Health.UNKNOWN, "and asked after its Pods"
    assert own_ages(seen, [a_policy("p", when(slow)), POLICY], at(minutes)) == (expected is Health.UNKNOWN,)


ABSENT = a_policy("gke", when(Clause("XidCriticalError", stale_after=at(0) - at(0), reporter=SIGN)), settle=5, fresh=3)


def bare(sign="True", heard=100.0, ready="True"):
    """A node on which nobody has written XidCriticalError."""
    said = [condition(SIGN, sign, since=0, heartbeat=heard)] if sign else []
    return a_node("n", *said, ready=ready, heartbeat=heard)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(bare(), Health.HEALTHY, id="who would write it is alive, and has written nothing"),
        pytest.param(bare("False"), Health.UNKNOWN, id="nobody would write it"),
        pytest.param(bare(""), Health.UNKNOWN, id="nobody can tell"),
        pytest.param(bare(heard=84.9), Health.UNKNOWN, id="nobody could lately"),
        pytest.param(bare(ready="Unknown"), Health.UNKNOWN, id="its kubelet does not report"),
    ],
)
def test_that_nothing_was_written_is_health_while_those_who_would_are_alive(seen, expected):
    assert judge(seen, ABSENT, at(100)).health is health_of(seen, ABSENT, at(100)) is expected
    if expected is Health.UNKNOWN:
        assert str(judge(seen, ABSENT, at(100)).doubts[0]).startswith("XidCriticalError is absent")
    both = a_policy("p", when(Clause("XidCriticalError", Status.FALSE, stale_after=at(0) - at(0), reporter=SIGN)))
    assert health_of(seen, both, at(100)) is Health.UNKNOWN, "where False is the fault, that it is absent says nothing"


@pytest.mark.parametrize(
    ("seen", "minute", "expected"),
    [(bare(heard=14.9), 15, Proof.WAITING), (bare(heard=15), 15, Proof.PASSED), (bare("False", 15), 15, Proof.WAITING)],
)
def test_a_condition_that_is_taken_away_is_recovery_once_its_writers_were_alive_for_settle(seen, minute, expected):
    """The operation had ended at minute 10, and a reboot takes the Condition away."""
    base = {"Ready": at(10), "XidCriticalError": at(1), SIGN: at(10)}
    assert prove(seen, ABSENT, base, at(10), at(minute))[0] is expected
    assert (well_since(seen, ABSENT) is None) is (
        expected is Proof.WAITING and seen.conditions[SIGN].status is Status.FALSE
    )


@pytest.mark.parametrize(("ready_since", "expected"), [(10.9, Proof.WAITING), (10, Proof.PASSED)])
def test_writers_that_started_anew_after_the_operation_must_be_ready_for_settle_before_their_silence_is_recovery(
    ready_since, expected
):
    """The operation had ended at minute 10, and it is minute 15.9, settle 5: of no Condition, and of an old one."""
    sign = condition(SIGN, "True", since=ready_since + 0.9, heartbeat=15.9)
    base = {"Ready": at(10), "XidCriticalError": at(1), "AcceleratedHardwareReady": at(1), SIGN: at(10)}
    assert prove(a_node("n", sign, heartbeat=15.9), ABSENT, base, at(10), at(15.9))[0] is expected
    well = condition("AcceleratedHardwareReady", "True", since=8, heartbeat=8)
    assert prove(a_node("n", sign, well, heartbeat=15.9), POLICY, base, at(10), at(15.9))[0] is expected


VALIDATOR = Clause(SIGN, Status.FALSE)


def test_that_no_such_pod_exists_is_said_wherever_a_policy_rests_on_it():
    sign = condition(SIGN, "Unknown", since=0, heartbeat=100, reason=NO_SUCH_POD)
    nobody = "no Pod of kube-system/app=agent,tier=node exists: see whether the namespace and the labels are right"
    assert own_condition(SIGN, False, False, exist=False).message == nobody
    fault = a_node("n", condition("AcceleratedHardwareReady", "False", since=1), sign, heartbeat=100)
    assert [doubt.why for doubt in judge(fault, POLICY, at(100)).doubts] == [f"is ignored: {nobody}"]
    bare_node = a_node("n", sign, heartbeat=100)
    assert [doubt.why for doubt in judge(bare_node, ABSENT, at(100)).doubts] == [f"is absent, and {nobody}"]
    (doubt,) = judge(bare_node, a_policy("validator", when(VALIDATOR)), at(100)).doubts
    assert (doubt.condition, doubt.why) == (SIGN, f"is Unknown: {nobody}")


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (node(sign="False"), Health.UNHEALTHY),
        (node(sign="True"), Health.HEALTHY),
        (node(sign=""), Health.UNKNOWN),
        (node(sign="False", heard=84.9), Health.UNKNOWN),
        (node("False", "False", 100, condition("DetectorStale", "True", since=0, heartbeat=100)), Health.UNHEALTHY),
    ],
)
def test_pods_of_which_none_is_ready_are_a_fault_themselves_where_a_policy_says_so(seen, expected):
    assert judge(seen, a_policy("validator", when(VALIDATOR)), at(100)).health is expected


BASE = {"Ready": at(10), "AcceleratedHardwareReady": at(1), SIGN: at(10)}


@pytest.mark.parametrize(
    ("seen", "minute", "expected"),
    [
        (node("True", since=8, heard=12.9, ready_at=16), 16, Proof.WAITING),  # 2.9 minutes after the end
        (node("True", since=8, heard=13, ready_at=16), 16, Proof.PASSED),  # 3 minutes after it, 5 minutes of True
        (node("True", since=12, heard=16.9, ready_at=17), 17, Proof.WAITING),  # 4.9 minutes of True
        (node("True", since=12, heard=17, ready_at=17), 17, Proof.PASSED),
        (node("True", "False", since=8, heard=16, ready_at=16), 16, Proof.WAITING),  # who says so?
        (node("True", "False", since=8, heard=30, ready_at=30), 30, Proof.TIMED_OUT),
        (node("False", since=1, heard=16, ready_at=16), 16, Proof.WAITING),
    ],
)
def test_recovery_is_proven_by_looks_at_those_who_write_it_after_the_end(seen, minute, expected):
    """The operation had ended at minute 10. fresh 3m, settle 5m."""
    assert prove(seen, POLICY, BASE, at(10), at(minute))[0] is expected


def pod(owner="", ready="True", **meta):
    owners = (OwnerReference(kind=owner, controller=True),) if owner else ()
    metadata = reporter_pods.ReporterPodMeta(owner_references=owners, resource_version="7", **meta)
    status = reporter_pods.ReporterPodStatus(conditions=(PodCondition(type="Ready", status=ready),))
    return reporter_pods.reporter_pod(
        reporter_pods.ReporterPod(metadata=metadata, spec=PodSpec(node_name="gpu-1"), status=status)
    )


def test_a_pod_of_a_daemon_set_speaks_for_its_node_and_any_other_for_all():
    told = [pod("DaemonSet"), pod("Node"), pod("ReplicaSet"), pod(), pod("DaemonSet", "False")]
    assert [one.speaks_for for one in told] == ["gpu-1", "gpu-1", ALL, ALL, NONE]
    assert pod("ReplicaSet", deletion_timestamp="2026-11-26T20:00:00Z").speaks_for == NONE, "one that is to go"
    assert (pod().version, pod() == ReporterPod("gpu-1", True, True)) == ("7", True)


def test_the_condition_says_which_pods_are_meant_and_whether_one_is_ready():
    assert (of_condition(SIGN), AGENT.selector) == (AGENT, "app=agent,tier=node")
    said = [
        own_condition(SIGN, here, everywhere) for here, everywhere in [(True, False), (False, True), (False, False)]
    ]
    assert [one.status for one in said] == [Status.TRUE, Status.TRUE, Status.FALSE]
    assert said[2].message == "no Pod of kube-system/app=agent,tier=node is Ready that speaks for this node"


def test_a_policy_is_read_with_whom_it_asks_and_for_how_long_it_believes():
    labels = {"tier": "node", "app": "agent"}
    by = api.ReportedBy(namespace="kube-system", match_labels=labels)
    entries = (
        api.When(condition="AcceleratedHardwareReady", status=Status.FALSE, stale_after="0s", reported_by=by),
        api.When(condition="KernelDeadlock", stale_after="30m"),
        api.When(condition="GpuLost"),
        api.When(no_ready_pod=by),
    )
    spec = api.RemediationPolicySpec(mode=Mode.DRY_RUN, node_selector=api.LabelSelector(), when=entries, ladder=())
    read = decode.remediation_policy(api.RemediationPolicy(metadata=api.ObjectMeta(name="p"), spec=spec))
    clauses = [entry.clauses[0] for entry in read.when]
    assert clauses == [FOREIGN, Clause("KernelDeadlock", stale_after=at(30) - at(0)), Clause("GpuLost"), VALIDATOR]
    assert list(asked(read)) == [SIGN, SIGN]
