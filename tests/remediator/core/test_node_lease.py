"""What a Lease of a node is to a case, and what is done with it, at each age and in each phase."""

from dataclasses import replace
from datetime import timedelta

import pytest

from remediator.core import node_lease
from remediator.core.case import AttemptOutcome, Manual, Phase
from remediator.core.node_lease import LeaseStanding, LeaseStep, NodeLease
from tests.builders import a_case, an_attempt, at

NOW, HOUR = at(60), timedelta(hours=1)
CASE = a_case("gpu-1-gpu-lost", phase=Phase.DRAINING, started=at(1))
OURS = node_lease.holder(CASE)


def lease(holder=OURS, age=0.0, length=600.0) -> NodeLease:
    """One that was renewed so many minutes ago, and is good for so many seconds."""
    return NodeLease("node-gpu-1", holder, NOW - timedelta(minutes=age), timedelta(seconds=length))


@pytest.mark.parametrize(
    ("found", "standing"),
    [
        (None, LeaseStanding.FREE),
        (lease(), LeaseStanding.OURS),
        (lease(age=600), LeaseStanding.OURS),  # nobody has taken it over
        (lease("remediator/another"), LeaseStanding.FREE),
        (lease("node-maintenance"), LeaseStanding.HELD),
        (lease("node-maintenance", age=10), LeaseStanding.HELD),
        (lease("node-maintenance", age=15), LeaseStanding.HELD),  # clocks may differ by five minutes
        (lease("node-maintenance", age=15.1), LeaseStanding.FREE),
        (lease("node-maintenance", age=-5), LeaseStanding.HELD),
        (lease("node-maintenance", age=-5.1), LeaseStanding.FREE),
        (lease(""), LeaseStanding.FREE),
        (replace(lease("node-maintenance"), renewed=None), LeaseStanding.FREE),
        (lease("node-maintenance", age=1, length=2**31 - 1), LeaseStanding.HELD),
        (lease("node-maintenance", age=1, length=-(2**31)), LeaseStanding.FREE),
    ],
    ids=str,
)
def test_a_lease_of_another_counts_until_it_has_expired_by_both_clocks(found, standing):
    assert node_lease.standing(found, CASE, NOW) is standing


@pytest.mark.parametrize(
    ("asked", "holder", "standing"),
    [
        ("NodeHealthCheck workers", "NodeHealthCheck-workers", LeaseStanding.LENT),
        ("NodeHealthCheck workers", "NodeHealthCheck-others", LeaseStanding.HELD),
        ("NodeHealthCheck a b", "NodeHealthCheck-a b", LeaseStanding.LENT),
        ("Machine workers", "Machine-workers", LeaseStanding.HELD),
        ("", "", LeaseStanding.FREE),
    ],
)
def test_only_the_node_health_check_that_asks_lends_its_lease(asked, holder, standing):
    case = replace(CASE, manual=Manual("op", "u", "reboot", {}, asked))
    assert node_lease.standing(lease(holder), case, NOW) is standing


@pytest.mark.parametrize(
    ("age", "step"), [(0, LeaseStep.NOTHING), (4.9, LeaseStep.NOTHING), (5, LeaseStep.RENEW), (-6, LeaseStep.RENEW)]
)
def test_a_case_that_works_renews_at_half_of_ten_minutes(age, step):
    assert node_lease.step_of_lease(lease(age=age), CASE, NOW) is step
    assert node_lease.step_of_case(lease(age=age), CASE, NOW) is step


@pytest.mark.parametrize(
    ("case", "age", "step"),
    [
        (None, 0, LeaseStep.GIVE_BACK),
        (replace(CASE, ended=NOW), 0, LeaseStep.GIVE_BACK),
        (replace(CASE, phase=Phase.ESCALATED), 0, LeaseStep.GIVE_BACK),
        (
            replace(CASE, phase=Phase.ESCALATED, attempts=(an_attempt(outcome=AttemptOutcome.OPEN),)),
            0,
            LeaseStep.NOTHING,
        ),
        (replace(CASE, phase=Phase.HELD, started=None), 0.9, LeaseStep.NOTHING),
        (replace(CASE, phase=Phase.HELD, started=None), 1, LeaseStep.GIVE_BACK),
        (replace(CASE, unreadable=True), 0, LeaseStep.NOTHING),  # it may be at work
        (replace(CASE, unreadable=True), 5, LeaseStep.RENEW),
    ],
)
def test_it_is_given_back_once_its_case_works_no_more_and_not_while_a_claim_is_being_made(case, age, step):
    assert node_lease.step_of_lease(lease(age=age), case, NOW) is step


def test_one_of_another_system_is_left_alone_however_old_it_is():
    assert node_lease.step_of_lease(lease("fence", age=10**5), None, NOW) is LeaseStep.NOTHING
