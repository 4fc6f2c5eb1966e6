"""Which Pods work on a node, and for how long a case waits for them."""

from dataclasses import replace

import pytest

from remediator.core import idle
from remediator.core.absence import Absences
from remediator.core.case import AttemptOutcome, CaseEvent, Phase
from remediator.core.policy import Urgency
from remediator.core.reasons import PAUSES, Reason
from remediator.core.user_pod import UserPod
from tests.builders import a_case, a_policy, an_attempt, at, minutes

OURS = "remediator-operations"
CLAIMED = a_case(phase=Phase.DRAINING, started=at(10))
PATIENT = a_policy(urgency=Urgency.WHEN_IDLE, idle_deadline=minutes(60))


def theirs(name, namespace="team", **more):
    return UserPod(name, namespace, owner=more.pop("owner", "Job"), **more)


def test_what_goes_on_by_itself_works():
    pods = [
        theirs("train"),
        theirs("bare", owner=""),
        theirs("ending", deletion=at(10)),
        theirs("overdue", deletion=at(9, 59)),
        theirs("done", ended=True),
        theirs("agent", owner="DaemonSet"),
        theirs("static", mirror=True),
        theirs("coredns", "kube-system"),
        theirs("ours", OURS),
    ]
    assert idle.working(pods, OURS, at(10)) == ("team/bare", "team/ending", "team/train")


STOPPED = an_attempt(outcome=AttemptOutcome.CANCELLED, reason=Reason.HELD_BY_USER)


@pytest.mark.parametrize(
    ("case", "policy", "now", "waits"),
    [
        pytest.param(CLAIMED, PATIENT, 69, True, id="before the deadline, counted from the claim"),
        pytest.param(CLAIMED, PATIENT, 70, False, id="at the deadline"),
        pytest.param(CLAIMED, replace(PATIENT, idle_deadline=None), 99_999, True, id="without a deadline"),
        pytest.param(CLAIMED, a_policy(), 11, False, id="a policy that does not wait"),
        pytest.param(a_case(), PATIENT, 11, False, id="not claimed: budgets come first"),
        pytest.param(replace(CLAIMED, attempts=(an_attempt(),)), PATIENT, 11, False, id="it has tried already"),
        pytest.param(replace(CLAIMED, attempts=(STOPPED,)), PATIENT, 11, True, id="a user stopped its try in time"),
        pytest.param(replace(CLAIMED, attempts=(an_attempt(counts=False),)), PATIENT, 11, True, id="nothing ran"),
    ],
)
def test_until_when_the_first_try_of_a_case_waits_for_pods(case, policy, now, waits):
    assert idle.waits(case, policy, at(now)) is waits


def told(*lines):
    """The case with these lines in its timeline: minute, reason."""
    return replace(CLAIMED, timeline=tuple(CaseEvent(at(minute), reason, "") for minute, reason in lines))


WAITS = (11, Reason.WAITING_FOR_IDLE)


@pytest.mark.parametrize(
    ("case", "away", "now", "until"),
    [
        pytest.param(told(WAITS), (), 12, 70, id="an hour after its claim"),
        pytest.param(told(WAITS), (20, 50), 60, 100, id="nobody could act for half an hour"),
        *(
            pytest.param(told(WAITS, (20, reason), (50, Reason.WAITING_FOR_IDLE)), (), 60, 100, id=reason.value)
            for reason in sorted(PAUSES)
        ),
        pytest.param(
            told(WAITS, (20, Reason.POLICY_PAUSED), (40, Reason.HELD_BY_USER), (50, Reason.WAITING_FOR_IDLE)),
            (),
            60,
            100,
            id="stopped in two ways, one after the other",
        ),
        pytest.param(told(WAITS, (20, Reason.POLICY_PAUSED)), (), 2000, 2050, id="and it still is"),
        pytest.param(told(WAITS, (20, Reason.POLICY_PAUSED), (50, WAITS[1])), (15, 30), 60, 105, id="both at once"),
        pytest.param(told(WAITS, (20, Reason.OUTSIDE_WINDOW), (50, WAITS[1])), (), 60, 70, id="a window stops nobody"),
    ],
)
def test_time_in_which_nobody_could_act_or_a_user_had_stopped_the_case_counts_against_no_deadline(
    case, away, now, until
):
    absences = Absences().including(*map(at, away)) if away else Absences()
    assert idle.deadline(case, PATIENT, at(now), absences) == at(until)
    assert idle.waits(case, PATIENT, at(until, -1), absences) or now == 2000
