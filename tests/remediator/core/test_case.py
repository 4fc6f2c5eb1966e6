"""Cases: what a person's hand means, and what is remembered."""

from dataclasses import replace

import pytest

from remediator.core.case import TIMELINE, AttemptOutcome, Phase, advance, reason_to_end, with_attempt
from remediator.core.operation import OperationPhase
from remediator.core.reasons import Reason
from tests.builders import a_case, a_node, an_attempt, at, held_by

CLAIMED = a_case(phase=Phase.DRAINING, started=at(0))
MINE = [held_by(CLAIMED)]
ESCALATED = replace(CLAIMED, phase=Phase.ESCALATED)


@pytest.mark.parametrize(
    ("case", "node", "expected"),
    [
        pytest.param(a_case(), a_node(), None, id="before the claim nothing is missed"),
        pytest.param(CLAIMED, a_node(taints=MINE), None, id="our taint is there"),
        pytest.param(CLAIMED, None, Reason.NODE_GONE, id="the node is gone"),
        pytest.param(CLAIMED, a_node(uid="other"), Reason.NODE_GONE, id="a namesake is another node"),
        pytest.param(
            replace(CLAIMED, deleting=True), a_node(taints=MINE), Reason.CASE_DELETED, id="a person deletes the case"
        ),
        pytest.param(replace(a_case(), deleting=True), a_node(), Reason.CASE_DELETED, id="even before the claim"),
        pytest.param(CLAIMED, a_node(), Reason.TAINT_REMOVED_BY_USER, id="a person removes our taint"),
        pytest.param(
            CLAIMED,
            a_node(taints=[held_by(a_case("other"))]),
            Reason.TAINT_REMOVED_BY_USER,
            id="or puts another case's there",
        ),
        pytest.param(
            CLAIMED, a_node(taints=MINE, cordoned_by=CLAIMED.uid), None, id="a person undoes our cordon: that holds it"
        ),
        pytest.param(
            CLAIMED, a_node(taints=MINE, cordoned_by=CLAIMED.uid, unschedulable=True), None, id="our cordon stands"
        ),
        pytest.param(
            CLAIMED, a_node(taints=MINE, unschedulable=True), None, id="a person's cordon on top is no cancelling"
        ),
        pytest.param(ESCALATED, a_node(taints=MINE), None, id="an escalated case stays"),
        pytest.param(
            replace(ESCALATED, release=True), a_node(taints=MINE), Reason.RELEASED_BY_USER, id="until it is released"
        ),
        pytest.param(
            replace(CLAIMED, release=True), a_node(taints=MINE), None, id="release is for escalated cases only"
        ),
    ],
)
def test_why_a_case_must_end(case, node, expected):
    assert reason_to_end(case, node) is expected


def test_the_timeline_keeps_the_newest_fifty():
    case = a_case()
    for minute in range(TIMELINE + 2):
        case = advance(case, Reason.DRAINING, f"line {minute}", at(minute))
    assert (len(case.timeline), case.timeline[0].message, case.message) == (50, "line 2", "line 51")
    assert case.phase is Phase.NEW, "a phase is changed only where one is given"


def test_an_attempt_is_replaced_by_its_operation_or_added():
    case = with_attempt(a_case(), an_attempt(0, AttemptOutcome.OPEN, operation="op-a"))
    case = with_attempt(case, an_attempt(0, AttemptOutcome.FAILED, operation="op-a"))
    case = with_attempt(case, an_attempt(1, AttemptOutcome.OPEN, operation="op-b"))
    assert [(attempt.operation, attempt.outcome) for attempt in case.attempts] == [
        ("op-a", AttemptOutcome.FAILED),
        ("op-b", AttemptOutcome.OPEN),
    ]
    assert case.rung == 1


@pytest.mark.parametrize(
    ("phase", "outcome"),
    [
        ("Pending", AttemptOutcome.OPEN),
        ("Draining", AttemptOutcome.OPEN),
        ("Operating", AttemptOutcome.OPEN),
        ("Succeeded", AttemptOutcome.SUCCEEDED),
        ("Failed", AttemptOutcome.FAILED),
        ("Refused", AttemptOutcome.REFUSED),
        ("Cancelled", AttemptOutcome.CANCELLED),
    ],
)
def test_how_an_operation_ended_is_what_the_case_records(phase, outcome):
    assert OperationPhase(phase).outcome is outcome
