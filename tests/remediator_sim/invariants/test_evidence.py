"""I3: nothing starts without clear evidence: a history that keeps it is counted, one that breaks it is reported."""

from tests.remediator_sim.invariants.histories import BOOT, History, breaks, everything_on_a_fault, histories, holds
from tests.remediator_sim.invariants.recording import Recording


def on_an_unknown_condition(recording: Recording) -> None:
    everything_on_a_fault(recording, fault="Unknown")


def on_an_absent_condition(recording: Recording) -> None:
    everything_on_a_fault(recording, fault="")


def on_a_condition_that_is_false(recording: Recording) -> None:
    everything_on_a_fault(recording, fault="False")


def on_an_old_heartbeat(recording: Recording) -> None:
    everything_on_a_fault(recording, age=3600)


def while_the_detectors_have_stopped(recording: Recording) -> None:
    everything_on_a_fault(recording, stale="True")


def while_the_kubelet_is_silent(recording: Recording) -> None:
    everything_on_a_fault(recording, ready="Unknown")


def on_a_fault_that_went_a_moment_ago(recording: Recording) -> None:
    recording.node("n1")
    recording.case("a", "n1", "Draining")
    recording.operation("reboot-1", "a")
    recording.node("n1", "Unknown")
    recording.operation("reboot-1", "a", intent=BOOT)


HOLDS = [
    (everything_on_a_fault, 5),
    (on_a_fault_that_went_a_moment_ago, 1),
]
BROKEN = [
    (
        on_an_unknown_condition,
        "n1 was taken at 12:00:05, and n1 showed GpuLost=Unknown, Ready=True, DetectorStale=absent",
    ),
    (on_an_absent_condition, "and n1 showed GpuLost=absent, Ready=True"),
    (on_a_condition_that_is_false, "Pod remediator-operations/pod-1 was made"),
    (on_an_old_heartbeat, "reset-1 was begun"),
    (while_the_detectors_have_stopped, "the intent of reset-1 was written"),
    (while_the_kubelet_is_silent, "Pod remediator-operations/drain-1 was made"),
]


@histories("checks", HOLDS)
def test_a_kept_invariant_is_counted_as_checked_and_not_as_broken(history: History, checks: int) -> None:
    holds("I3", history, checks)


@histories("text", BROKEN)
def test_a_broken_invariant_is_reported_with_what_broke_it(history: History, text: str) -> None:
    breaks("I3", history, text)
