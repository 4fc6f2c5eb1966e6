"""What a policy makes starts wait for: windows, approvals, nodes without work."""

from dataclasses import replace

import pytest

from remediator.core import guard
from remediator.core.absence import Absences
from remediator.core.case import Block, Phase, SetBy
from remediator.core.guard import FleetContext, preconditions, waits_in_queue
from remediator.core.idle import Work
from remediator.core.policy import Approval, Mode, Urgency
from remediator.core.reasons import CHOSEN, REMEDY, STOPS, Reason
from remediator.core.window import Closed, InvalidWindow
from tests.builders import a_case, a_policy, a_sick_node, at, minutes

NOW = at(5)
AROUND = FleetContext(frozenset({"reset-gpu", "reboot"}), paused=False, controller_nodes=frozenset())
CLOSED = replace(AROUND, shut={"gpu-lost": Closed(at(480))})
WRONG = replace(AROUND, shut={"gpu-lost": InvalidWindow("windows[0].timeZone", "'Asia/Tokio' is unknown")})
CLAIMED = a_case(phase=Phase.DRAINING, started=at(1))
HELD = a_sick_node(unschedulable=True, cordoned_by="uid-case-1")
ASKS = a_policy(approval=Approval.REQUIRED)
PATIENT = a_policy(urgency=Urgency.WHEN_IDLE, idle_deadline=minutes(60))


def blocks(*, case=None, node=None, policy=None, around=AROUND) -> list[Block]:
    asked = case or a_case()
    given = node or (HELD if asked.claimed else a_sick_node())
    return list(preconditions(asked, given, policy or a_policy(), [asked], around, NOW))


@pytest.mark.parametrize("case", [a_case(), CLAIMED], ids=["a claim", "a climb"])
def test_outside_of_its_windows_nothing_of_a_policy_starts_and_the_hold_says_until_when(case):
    (block,) = blocks(case=case, around=CLOSED)
    assert (block.reason, block.until) == (Reason.OUTSIDE_WINDOW, at(480))
    assert block.message == f"no window of policy gpu-lost is open; {REMEDY[Reason.OUTSIDE_WINDOW]}"


def test_a_window_that_nobody_can_tell_holds_everything_and_names_the_field():
    (block,) = blocks(around=WRONG)
    assert (block.reason, block.until) == (Reason.WINDOW_INVALID, None)
    assert block.message.startswith("policy gpu-lost, spec.windows[0].timeZone: 'Asia/Tokio' is unknown; ")


def test_the_windows_of_another_policy_hold_nobody():
    assert blocks(around=replace(AROUND, shut={"other": Closed(at(480))})) == []


def test_a_node_that_is_repaired_tonight_gets_no_new_work_where_another_has_room():
    assert waits_in_queue(blocks(around=CLOSED))


@pytest.mark.parametrize("case", [a_case(), CLAIMED], ids=["a claim", "a climb"])
def test_what_nobody_has_approved_does_not_start(case):
    (block,) = blocks(case=case, policy=ASKS)
    assert block.reason is Reason.APPROVAL_NEEDED
    assert block.message == f"policy gpu-lost needs an approval for each case; {REMEDY[Reason.APPROVAL_NEEDED]}"
    assert blocks(case=replace(case, approved=True), policy=ASKS) == []


def test_who_takes_an_approval_back_is_told():
    (block,) = blocks(case=a_case(set_by=SetBy(approved="alice@example.com")), policy=ASKS)
    assert "; spec.approved is false, set by alice@example.com; " in block.message


@pytest.mark.parametrize("policy", [replace(ASKS, mode=Mode.DRY_RUN), replace(ASKS, urgency=Urgency.NEVER)])
def test_what_does_nothing_needs_no_approval(policy):
    assert Reason.APPROVAL_NEEDED not in [block.reason for block in blocks(policy=policy)]


def test_a_missing_approval_is_a_stop_of_which_a_person_is_told():
    assert Reason.APPROVAL_NEEDED in STOPS - CHOSEN
    assert [block.reason for block in guard.stops(CLAIMED, HELD, ASKS, False, guard.Hosted(), NOW)] == [
        Reason.APPROVAL_NEEDED
    ]


def test_a_case_that_a_person_has_waits_for_no_approval():
    """It starts nothing, and its release disturbs nobody."""
    escalated = replace(CLAIMED, phase=Phase.ESCALATED)
    assert guard.stops(escalated, HELD, ASKS, False, guard.Hosted(), NOW) == ()


def at_work(*pods: str) -> FleetContext:
    return replace(AROUND, working={"uid-case-1": Work(pods, NOW)})


def test_a_case_claims_its_node_though_pods_work_on_it_and_then_waits_for_them():
    assert blocks(policy=PATIENT, around=at_work("team/train")) == []
    (block,) = blocks(case=CLAIMED, policy=PATIENT, around=at_work("team/train"))
    assert (block.reason, block.until) == (Reason.WAITING_FOR_IDLE, at(61))
    assert block.message.startswith("1 Pod works on gpu-1 (team/train); ")


def test_of_many_pods_five_are_named():
    names = [f"team/train-{number}" for number in range(7)]
    (block,) = blocks(case=CLAIMED, policy=PATIENT, around=at_work(*names))
    assert block.message.startswith(f"7 Pods work on gpu-1 ({', '.join(names[:5])} and 2 more); ")


def test_before_anybody_has_looked_nothing_starts():
    (block,) = blocks(case=CLAIMED, policy=PATIENT)
    assert block.message.startswith("the Pods of gpu-1 are about to be listed; ")


@pytest.mark.parametrize(
    ("policy", "around"),
    [
        pytest.param(PATIENT, at_work(), id="the node is idle"),
        pytest.param(replace(PATIENT, idle_deadline=minutes(4)), at_work("team/train"), id="the deadline is over"),
        pytest.param(a_policy(), at_work("team/train"), id="a policy that does not wait"),
    ],
)
def test_what_waits_for_no_pod(policy, around):
    assert blocks(case=CLAIMED, policy=policy, around=around) == []


def test_the_deadline_of_a_wait_moves_on_by_the_time_in_which_nobody_could_act():
    around = replace(at_work("team/train"), absences=Absences().including(at(2), at(4)))
    assert [block.until for block in blocks(case=CLAIMED, policy=PATIENT, around=around)] == [at(63)]


def test_while_a_user_stops_a_case_nobody_knows_until_when_it_waits_for_pods():
    """Else its status would be written anew each minute."""
    stopped = replace(CLAIMED, hold=True, blocks=(Block(Reason.HELD_BY_USER, ""),))
    found = blocks(case=stopped, policy=PATIENT, around=at_work("team/train"))
    assert [(block.reason, block.until) for block in found] == [
        (Reason.HELD_BY_USER, None),
        (Reason.WAITING_FOR_IDLE, None),
    ]


def test_without_a_deadline_nobody_knows_until_when():
    policy = replace(PATIENT, idle_deadline=None)
    assert [block.until for block in blocks(case=CLAIMED, policy=policy, around=at_work("a/b"))] == [None]
