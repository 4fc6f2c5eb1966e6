"""I2: Pods, intents and reboots: a clean history is counted and not broken, its twin is named."""

from tests.remediator_sim.invariants.recording import Recording
from tests.remediator_sim.invariants.stories import BOOT, Story, breaks, holds, stories


def one_pod(recording: Recording) -> None:
    recording.node("n1")
    recording.case("a", "n1", "Draining")
    recording.operation("reboot-1", "a")
    recording.operation("reboot-1", "a", intent=BOOT)
    recording.pod("pod-1", "reboot-1")


def drains_are_made_once_a_round(recording: Recording) -> None:
    one_pod(recording)
    recording.pod("drain-1", "reboot-1", "drain")
    recording.pod("drain-2", "reboot-1", "drain")


def a_second_pod(recording: Recording) -> None:
    one_pod(recording)
    recording.pod("pod-2", "reboot-1")


def the_same_pod_made_again_after_it_went(recording: Recording) -> None:
    one_pod(recording)
    recording.remove("pods", "pod-1")
    recording.pod("pod-1", "reboot-1")


def a_pod_without_intent(recording: Recording) -> None:
    recording.node("n1")
    recording.case("a", "n1", "Draining")
    recording.operation("reboot-1", "a")
    recording.pod("pod-1", "reboot-1")


def a_pod_for_another_boot(recording: Recording) -> None:
    recording.operation("reboot-1", "a", intent=BOOT)
    recording.pod("pod-1", "reboot-1", boot="boot-2")


def a_pod_of_no_operation(recording: Recording) -> None:
    recording.pod("pod-1", "reboot-1")


def two_operations_of_one_attempt(recording: Recording) -> None:
    recording.operation("reboot-1", "a", 1)
    recording.operation("reboot-2", "a", 1)


def an_intent_that_is_written_anew(recording: Recording) -> None:
    one_pod(recording)
    recording.operation("reboot-1", "a", intent=BOOT | {"bootID": "boot-2"})


def one_reboot(recording: Recording) -> None:
    one_pod(recording)
    recording.reboot("n1", "reboot-1")


def two_reboots_of_one_attempt(recording: Recording) -> None:
    one_reboot(recording)
    recording.reboot("n1", "reboot-1", "boot-2")


def a_reboot_in_another_boot(recording: Recording) -> None:
    one_pod(recording)
    recording.reboot("n1", "reboot-1", "boot-2")


def two_attempts_that_reboot_one_boot(recording: Recording) -> None:
    one_reboot(recording)
    recording.operation("reboot-2", "a", 2, intent=BOOT)
    recording.reboot("n1", "reboot-2")


HOLDS = [
    (one_pod, 2),
    (drains_are_made_once_a_round, 2),
    (one_reboot, 3),
]
BROKEN = [
    (a_second_pod, "pod-2 of operation reboot-1 was made at 12:00:00 though pod-1 had been made before"),
    (the_same_pod_made_again_after_it_went, "though pod-1 had been made before"),
    (a_pod_without_intent, "before the intent was written"),
    (a_pod_for_another_boot, "for another boot than the intent names"),
    (a_pod_of_no_operation, "for an operation that does not exist"),
    (two_operations_of_one_attempt, "as attempt 1 of case uid-a, and so was reboot-1 before"),
    (an_intent_that_is_written_anew, "the intent of operation reboot-1 was changed"),
    (two_reboots_of_one_attempt, "by attempt reboot-1 at 12:00:00, which had asked before"),
    (a_reboot_in_another_boot, "in boot boot-2, and the intent names boot-1"),
    (two_attempts_that_reboot_one_boot, "in a boot in which another attempt had asked"),
]


@stories("checks", HOLDS)
def test_what_holds_is_counted_and_not_broken(story: Story, checks: int) -> None:
    holds("I2", story, checks)


@stories("said", BROKEN)
def test_what_is_broken_is_named(story: Story, said: str) -> None:
    breaks("I2", story, said)
