"""What every reason that holds a case has, wherever it is used."""

from remediator.core.case import Phase
from remediator.core.history import PHASES
from remediator.core.reasons import CHOSEN, PASSING, PAUSES, REMEDY, WARNINGS, Reason
from remediator_sim.invariants import contract

HOLDS = list(Reason)[: list(Reason).index(Reason.HELD_LONG)]  # those of the first section of the enum


def test_every_reason_that_holds_a_case_says_what_to_do() -> None:
    assert [reason.value for reason in HOLDS if reason not in REMEDY] == []


def test_the_judge_of_the_simulation_calls_the_same_holds_chosen() -> None:
    assert {reason.value for reason in CHOSEN} == contract.CHOSEN
    assert set(HOLDS) >= CHOSEN | PASSING | PAUSES


def test_the_event_of_a_case_that_a_person_gets_is_a_warning_unless_a_user_has_taken_the_node_out() -> None:
    handed_over = {reason for reason, phase in PHASES.items() if phase is Phase.ESCALATED} | {Reason.HEALTH_UNKNOWN}
    assert handed_over - {Reason.TAKEN_OUT} <= WARNINGS
    assert Reason.TAKEN_OUT not in WARNINGS
