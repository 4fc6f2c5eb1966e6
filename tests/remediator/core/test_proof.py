"""When a node counts as well again: by its own clock, never by ours."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core.absence import Absences
from remediator.core.health import Health, health_of
from remediator.core.node import Status
from remediator.core.policy import Clause
from remediator.core.proof import Proof, prove, watched
from tests.builders import GPU, a_node, a_policy, at, condition, when

POLICY = a_policy(settle=5, fresh=3, timeout=20)


BASE = {"Ready": at(10), GPU: at(10)}


def seen(*, gpu="False", since=11.0, heartbeat=16.0, ready="True", ready_heartbeat=None, more=()):
    """A node whose GpuLost turned at `since`; the operation had ended at minute 10."""
    beat = heartbeat if ready_heartbeat is None else ready_heartbeat
    return a_node("n", condition(GPU, gpu, since=since, heartbeat=heartbeat), *more, ready=ready, heartbeat=beat)


def test_a_condition_that_stands_for_another_reason_than_the_policys_proves_no_recovery():
    """Links were slower, and the node has lost a GPU since: the fault of the policy is over, the node is not well."""
    links = a_policy("links", when(Clause(GPU, reasons=frozenset({"PcieLanesMissing"}))), settle=5, fresh=3, timeout=20)
    lost = replace(condition(GPU, since=0, heartbeat=29), reason="GpusMissing")
    node = a_node("n", lost, heartbeat=29)
    assert health_of(node, links, at(29)) is Health.HEALTHY
    assert prove(node, links, BASE, at(10), at(29))[0] is Proof.WAITING
    assert prove(node, links, BASE, at(10), at(30))[0] is Proof.TIMED_OUT


@pytest.mark.parametrize(
    ("node", "base", "minute", "expected"),
    [
        pytest.param(seen(), BASE, 16, Proof.PASSED, id="False for 5 minutes, 6 minutes after the end"),
        pytest.param(seen(heartbeat=15.9), BASE, 16, Proof.WAITING, id="not yet settled"),
        pytest.param(seen(since=2, heartbeat=12.9), BASE, 16, Proof.WAITING, id="settled long ago but not yet fresh"),
        pytest.param(seen(since=2, heartbeat=13), BASE, 16, Proof.PASSED, id="settled, and fresh by 3 minutes"),
        pytest.param(seen(ready_heartbeat=12.9), BASE, 16, Proof.WAITING, id="the kubelet must be fresh as well"),
        pytest.param(seen(since=2, heartbeat=10), BASE, 29, Proof.WAITING, id="an old heartbeat is not health"),
        pytest.param(seen(gpu="True"), BASE, 16, Proof.WAITING, id="still sick"),
        pytest.param(seen(gpu="Unknown"), BASE, 16, Proof.WAITING, id="unknown is not health"),
        pytest.param(seen(ready="False"), BASE, 16, Proof.WAITING, id="not ready"),
        pytest.param(seen(ready="Unknown"), BASE, 16, Proof.WAITING, id="silent"),
        pytest.param(a_node("n", heartbeat=16), BASE, 16, Proof.WAITING, id="the condition is missing"),
        pytest.param(
            seen(since=15.5), BASE, 16, Proof.WAITING, id="a detector that restarts writes False: no recovery yet"
        ),
        pytest.param(seen(more=[condition("DetectorStale", "True")]), BASE, 16, Proof.WAITING, id="detectors stopped"),
        pytest.param(
            seen(more=[condition("DetectorStale", "False", since=11, heartbeat=16)]),
            BASE,
            16,
            Proof.PASSED,
            id="detectors run",
        ),
        pytest.param(
            seen(heartbeat=15.9), {}, 15.9, Proof.WAITING, id="nothing recorded to be fresher than: settling is asked"
        ),
        pytest.param(seen(), {}, 16, Proof.PASSED, id="and is enough"),
        pytest.param(seen(gpu="True"), BASE, 30, Proof.TIMED_OUT, id="20 minutes after the end it is too late"),
        pytest.param(seen(), BASE, 99, Proof.PASSED, id="proof is proof however late"),
    ],
)
def test_recovery_is_proven_by_fresh_and_settled_heartbeats(node, base, minute, expected):
    assert prove(node, POLICY, base, at(10), at(minute))[0] is expected


def test_a_heartbeat_from_the_future_is_no_evidence_of_recovery_either():
    """A clock that jumps ahead over a reboot would make each condition look settled at once."""
    node = seen(since=15, heartbeat=15 + 6 * 60)
    assert prove(node, POLICY, BASE, at(10), at(16))[0] is Proof.WAITING
    assert prove(node, POLICY, BASE, at(10), at(30))[0] is Proof.TIMED_OUT


def test_a_node_that_looks_well_when_time_is_up_is_given_the_time_to_prove_it():
    """Starts may have been held for longer than the time-out; the fault going meanwhile is recovery all the same."""
    node = seen(since=199, heartbeat=200)
    assert prove(node, POLICY, BASE, at(10), at(200))[0] is Proof.WAITING
    assert prove(node, POLICY, BASE, at(10), at(230))[0] is Proof.TIMED_OUT, "but not where it has fallen silent"


def test_it_looks_again_within_a_minute_and_never_after_the_deadline():
    again = prove(seen(gpu="True"), POLICY, BASE, at(10), at(20))[1]
    assert again == at(21)
    assert prove(seen(gpu="True"), POLICY, BASE, at(10), at(29, seconds=55))[1] == at(30)


def test_of_every_entry_one_condition_must_mean_health_and_ready_always():
    policy = a_policy("p", when(Clause("A")), when(Clause("B", Status.FALSE), Clause("Ready", Status.FALSE)))
    node = a_node("n", condition("DetectorStale", "False"))
    assert watched(node, policy) == [
        (Clause("Ready", Status.TRUE),),
        (Clause("DetectorStale", Status.FALSE),),
        (Clause("A", Status.FALSE),),
        (Clause("B", Status.TRUE), Clause("Ready", Status.TRUE)),
    ]
    assert (Clause("DetectorStale", Status.FALSE),) not in watched(a_node("n"), policy), "only where the node has it"


def test_an_entry_of_two_clauses_is_over_when_one_of_them_is():
    """A and not B made the node sick; A has gone, and B never mattered by itself: 6 minutes, of which 3 fresh."""
    policy = a_policy("p", when(Clause("A"), Clause("B", Status.FALSE)))
    seen_since = {"since": 2, "heartbeat": 16}
    node = a_node("n", condition("A", "False", **seen_since), condition("B", "False", **seen_since), heartbeat=16)
    base = {"A": at(10), "B": at(10)}
    assert prove(node, policy, base, at(10), at(16))[0] is Proof.PASSED


moment = st.integers(0, 20).map(float)


@given(
    status=st.sampled_from(["True", "False", "Unknown"]),
    since=moment,
    age=moment,
    base=moment,
    shift=st.integers(-16, 600),
)
def test_our_clock_being_off_changes_nothing_but_the_time_out(status, since, age, base, shift):
    heartbeat = min(since + age, min(11, 11 + shift) + 5)  # one further in the future is nobody's proof
    node = seen(gpu=status, since=min(since, heartbeat), heartbeat=heartbeat)
    recorded = {"Ready": at(base), GPU: at(base)}
    off = timedelta(minutes=shift)
    here = prove(node, POLICY, recorded, at(10), at(11))[0]
    there = prove(node, POLICY, recorded, at(10) + off, at(11) + off)[0]
    assert here is there


@given(since=moment, age=moment, base=moment, later=st.integers(0, 60))
def test_proof_once_given_is_not_lost_by_waiting(since, age, base, later):
    node, recorded = seen(since=since, heartbeat=since + age), {"Ready": at(base), GPU: at(base)}
    if prove(node, POLICY, recorded, at(10), at(11))[0] is Proof.PASSED:
        assert prove(node, POLICY, recorded, at(10), at(11 + later))[0] is Proof.PASSED


def test_a_newer_heartbeat_alone_does_not_make_it_another_node():
    assert seen(heartbeat=16) == replace(seen(heartbeat=17), version="77")
    assert seen(since=11) != seen(since=12)


def test_an_outage_of_the_api_server_in_the_middle_of_verifying_counts_against_nobody():
    """At minute 12 it goes, at minute 60 it is back; the last heartbeats that we know are of minute 11."""
    away = Absences().including(at(12), at(60))
    stale, beating = seen(since=2, heartbeat=11), seen(gpu="True", heartbeat=74)
    assert prove(stale, POLICY, BASE, at(10), at(60))[0] is Proof.TIMED_OUT, "as if it were the node's fault"
    assert prove(stale, POLICY, BASE, at(10), at(60), away)[0] is Proof.WAITING
    assert prove(beating, POLICY, BASE, at(10), at(74), away)[0] is Proof.WAITING, "of its 20 minutes 16 are over"
    assert prove(beating, POLICY, BASE, at(10), at(78), away)[0] is Proof.TIMED_OUT, "2 before, 18 after"


def test_after_an_outage_the_first_heartbeats_get_the_time_to_come():
    """A second before its time was over the API server went away; detectors write every five minutes."""
    away = Absences().including(at(29), at(60))
    stale = seen(since=2, heartbeat=11)
    assert prove(stale, POLICY, BASE, at(10), at(62), away)[0] is Proof.WAITING
    assert prove(stale, POLICY, BASE, at(10), at(74.9), away)[0] is Proof.WAITING
    assert prove(stale, POLICY, BASE, at(10), at(75), away)[0] is Proof.TIMED_OUT, "detectors that write nothing"
    sick = seen(gpu="True", heartbeat=61)
    assert prove(sick, POLICY, BASE, at(10), at(62), away)[0] is Proof.TIMED_OUT, "a fault that shows is clear"
