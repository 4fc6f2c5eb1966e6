"""What is counted, and how often a thing is said."""

from tests.remediator_sim.invariants.histories import everything_on_a_fault
from tests.remediator_sim.invariants.recording import Recording


def test_an_invariant_that_nothing_checked_has_no_checks() -> None:
    recording = Recording()
    recording.node("n1")
    recording.later(10)
    recording.end()
    assert {found.name: found.checks for found in recording.checker.report().values() if found.checks} == {}


def test_what_stays_broken_is_said_once() -> None:
    recording = Recording()
    everything_on_a_fault(recording)
    recording.later(150)
    assert len(recording.found("I5").broken) == 1
