"""The probe: which one counts, when it is made again, and what a node's health means for it."""

from dataclasses import replace

import pytest

from remediator.core.case import MOST_ATTEMPTS, AttemptOutcome, Phase
from remediator.core.health import Health
from remediator.core.ladder import Next, next_rung
from remediator.core.probe import calls_for, judged
from remediator.core.proof import Proof
from remediator.core.reasons import Reason
from tests.builders import a_case, a_node, a_policy, an_attempt, at

OPEN, SUCCEEDED, FAILED = AttemptOutcome.OPEN, AttemptOutcome.SUCCEEDED, AttemptOutcome.FAILED
REFUSED, CANCELLED = AttemptOutcome.REFUSED, AttemptOutcome.CANCELLED
NODE, PLAIN = a_node(), a_policy()
POLICY = replace(PLAIN, verify=replace(PLAIN.verify, probe="gpu-check"))
DEADLINE = at(20)
TRIED = an_attempt(0, SUCCEEDED, operation="op-1")


def a_probe(outcome, started=10.0, **more):
    """A probe that has ended a minute later."""
    return an_attempt(0, outcome, started=started, probe=True, template="gpu-check", boot_id="boot-1", **more)


IN_VAIN_BEFORE = an_attempt(0, CANCELLED, operation="op-1", counts=False)
CUT_SHORT = an_attempt(0, CANCELLED, operation="op-1", reason=Reason.CLEARED_ITSELF)
KEPT_BY_PODS = an_attempt(0, FAILED, operation="op-1", reason=Reason.DRAIN_FAILED)
STOPPED = a_probe(CANCELLED, reason=Reason.PAUSED)


@pytest.mark.parametrize(
    ("attempts", "minute", "expected"),
    [
        pytest.param([TRIED], 10, Proof.PROBE, id="none was made yet"),
        pytest.param([TRIED, a_probe(SUCCEEDED)], 12, Proof.PASSED, id="it has succeeded"),
        pytest.param([TRIED, a_probe(FAILED)], 12, Proof.REFUTED, id="it has failed"),
        pytest.param([TRIED, a_probe(REFUSED)], 11.5, Proof.WAITING, id="it cannot tell: not again at once"),
        pytest.param([TRIED, a_probe(REFUSED)], 12, Proof.PROBE, id="but a minute later"),
        pytest.param([TRIED, a_probe(CANCELLED)], 12, Proof.PROBE, id="its Pod never started: the same"),
        pytest.param([TRIED, a_probe(REFUSED), a_probe(REFUSED, 12)], 14.5, Proof.WAITING, id="the next pause is two"),
        pytest.param([TRIED, a_probe(REFUSED), a_probe(REFUSED, 12)], 15, Proof.PROBE, id="minutes"),
        pytest.param([TRIED, a_probe(REFUSED)], 20, Proof.TIMED_OUT, id="until the time to verify is over"),
        pytest.param([TRIED], 25, Proof.PROBE, id="the first one is made however late the node looks healthy"),
        pytest.param([TRIED, a_probe(SUCCEEDED, 18)], 25, Proof.PASSED, id="and counts however late it ends"),
        pytest.param([TRIED, STOPPED], 12, Proof.PROBE, id="one that a user stopped says nothing, and is made again"),
        pytest.param([TRIED, a_probe(FAILED), an_attempt(1, SUCCEEDED, started=13)], 16, Proof.PROBE, id="a new try"),
        pytest.param([a_probe(SUCCEEDED)], 12, Proof.PASSED, id="the node has become healthy before any try"),
        pytest.param([], 12, Proof.PASSED, id="nothing was done to the node, so nothing is tried out"),
        pytest.param([IN_VAIN_BEFORE], 12, Proof.PASSED, id="nor where no Pod of an attempt has run"),
        pytest.param([CUT_SHORT], 12, Proof.PASSED, id="nor where the fault went while the drain moved Pods"),
        pytest.param([KEPT_BY_PODS], 12, Proof.PASSED, id="nor after a drain that failed: Pods use the GPUs"),
        pytest.param([KEPT_BY_PODS, TRIED], 12, Proof.PROBE, id="an operation that ran later is tried out"),
        pytest.param([TRIED] * MOST_ATTEMPTS, 12, Proof.TIMED_OUT, id="the case has no room for one more"),
    ],
)
def test_what_the_probe_adds_to_healthy_conditions(attempts, minute, expected):
    case = a_case(attempts=tuple(attempts))
    proof, again = judged(case, POLICY, NODE, Proof.PASSED, Health.HEALTHY, DEADLINE, at(minute))
    assert proof is expected
    assert (again is not None) is (expected is Proof.WAITING)


@pytest.mark.parametrize("more", [{"phase": Phase.ESCALATED}, {"retried": at(5)}])
def test_on_a_node_that_a_person_has_had_the_probe_is_made_though_we_did_nothing(more):
    assert judged(a_case(**more), POLICY, NODE, Proof.PASSED, Health.HEALTHY, DEADLINE, at(12))[0] is Proof.PROBE


@pytest.mark.parametrize("outcome", [SUCCEEDED, FAILED])
def test_what_a_probe_said_before_the_node_booted_counts_no_more(outcome):
    case = a_case(attempts=(TRIED, a_probe(outcome)))
    booted = replace(NODE, boot_id="boot-2")
    assert judged(case, POLICY, booted, Proof.PASSED, Health.HEALTHY, DEADLINE, at(12))[0] is Proof.PROBE


@pytest.mark.parametrize("proof", [Proof.WAITING, Proof.TIMED_OUT])
def test_no_probe_is_made_before_the_conditions_are_healthy_nor_after_the_time(proof):
    case = a_case(attempts=(TRIED,))
    assert judged(case, POLICY, NODE, proof, Health.HEALTHY, DEADLINE, at(10))[0] is proof


@pytest.mark.parametrize("health", [Health.UNHEALTHY, Health.UNKNOWN])
def test_where_the_conditions_say_something_else_meanwhile_they_are_what_counts(health):
    case = a_case(attempts=(TRIED, a_probe(FAILED)))
    assert judged(case, POLICY, NODE, Proof.WAITING, health, DEADLINE, at(12))[0] is Proof.WAITING


def test_a_policy_without_a_probe_asks_for_none():
    assert judged(a_case(), PLAIN, NODE, Proof.PASSED, Health.HEALTHY, DEADLINE, at(1))[0] is Proof.PASSED


@pytest.mark.parametrize(
    ("attempts", "health", "expected"),
    [
        pytest.param([TRIED], Health.HEALTHY, Health.HEALTHY, id="a healthy node is not operated on"),
        pytest.param([TRIED, a_probe(OPEN)], Health.HEALTHY, Health.UNHEALTHY, id="a probe is for a healthy one"),
        pytest.param([TRIED, a_probe(OPEN)], Health.UNHEALTHY, Health.HEALTHY, id="and not for one with a fault"),
        pytest.param([TRIED, a_probe(OPEN)], Health.UNKNOWN, Health.UNKNOWN, id="nor for one that is unclear"),
        pytest.param(
            [TRIED, a_probe(FAILED), an_attempt(1, OPEN, started=13)],
            Health.HEALTHY,
            Health.UNHEALTHY,
            id="a probe that has failed is the fault",
        ),
        pytest.param(
            [TRIED, a_probe(FAILED), an_attempt(1, OPEN, started=13)],
            Health.UNKNOWN,
            Health.UNKNOWN,
            id="but nothing begins on unclear conditions",
        ),
        pytest.param(
            [TRIED, a_probe(SUCCEEDED), an_attempt(1, OPEN, started=13)],
            Health.HEALTHY,
            Health.HEALTHY,
            id="one that has succeeded is none",
        ),
        pytest.param(
            [TRIED, an_attempt(0, OPEN, started=13, follows="op-1")],
            Health.HEALTHY,
            Health.UNHEALTHY,
            id="what completes a try goes on",
        ),
    ],
)
def test_what_the_health_of_a_node_means_for_an_operation_of_its_case(attempts, health, expected):
    case = a_case(attempts=tuple(attempts))
    assert calls_for(case, attempts[-1].operation, health) is expected


def test_a_probe_is_no_try_of_the_ladder_and_does_not_count_as_one_in_which_nothing_ran():
    probes = [a_probe(CANCELLED, started, counts=False) for started in (10, 12, 14, 16)]
    case = a_case(attempts=(an_attempt(0, SUCCEEDED), *probes))
    assert next_rung(POLICY, case, [case], at(20)) == Next(1, 2)
    assert len(case.tries) == 1
