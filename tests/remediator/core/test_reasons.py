"""What every reason that holds a case has, wherever it is used."""

from remediator.core.reasons import CHOSEN, PASSING, PAUSES, REMEDY, Reason
from remediator_sim.invariants import contract

HOLDS = list(Reason)[: list(Reason).index(Reason.HELD_LONG)]  # those of the first section of the enum


def test_every_reason_that_holds_a_case_says_what_to_do() -> None:
    assert [reason.value for reason in HOLDS if reason not in REMEDY] == []


def test_the_judge_of_the_simulation_calls_the_same_holds_chosen() -> None:
    assert {reason.value for reason in CHOSEN} == contract.CHOSEN
    assert set(HOLDS) >= CHOSEN | PASSING | PAUSES
