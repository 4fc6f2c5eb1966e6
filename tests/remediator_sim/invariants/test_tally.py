"""What is counted, and how often a thing is said."""

from tests.remediator_sim.invariants.stories import everything_on_a_fault
from tests.remediator_sim.invariants.tape import Tape


def test_a_promise_that_nothing_tested_has_no_checks() -> None:
    tape = Tape()
    tape.node("n1")
    tape.later(10)
    tape.end()
    assert {found.name: found.checks for found in tape.judge.report().values() if found.checks} == {}


def test_what_stays_broken_is_said_once() -> None:
    tape = Tape()
    everything_on_a_fault(tape)
    tape.later(150)
    assert len(tape.found("I5").broken) == 1
