"""I2: Pods, intents and reboots: a history that keeps it is counted as checked, one that breaks it is reported."""

from tests.remediator_sim.invariants.histories import BOOT, History, breaks, histories, holds
from tests.remediator_sim.invariants.recording import Recording, tried


def one_pod(recording: Recording) -> None:
    recording.node("n1")
    recording.case("a", "n1", "Draining", attempts=tried("reboot-1", outcome=""))
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


def a_pod_of_an_operation_that_a_user_made(recording: Recording) -> None:
    one_pod(recording)
    recording.operation("by-hand", "a", 99)
    recording.operation("by-hand", "a", 99, intent=BOOT)
    recording.pod("pod-2", "by-hand")


def a_drain_of_an_attempt_that_is_over(recording: Recording) -> None:
    one_pod(recording)
    recording.case("a", attempts=tried("reboot-1"))
    recording.pod("drain-1", "reboot-1", "drain")


def an_intent_that_names_no_boot(recording: Recording) -> None:
    recording.node("n1")
    recording.operation("reboot-1", "a")
    recording.operation("reboot-1", "a", intent={"at": BOOT["at"]})


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


def an_attempt_asks_again_in_a_boot_after_one_that_was_in_vain(recording: Recording) -> None:
    one_reboot(recording)
    recording.operation("reboot-1", "a", intent=BOOT, phase="Failed", finishedAt="2026-01-01T12:00:00Z")
    recording.operation("reboot-2", "a", 2, intent=BOOT)
    recording.reboot("n1", "reboot-2")


HOLDS = [
    (one_pod, 2),
    (drains_are_made_once_a_round, 2),
    (one_reboot, 3),
    (an_attempt_asks_again_in_a_boot_after_one_that_was_in_vain, 6),
]
BROKEN = [
    (a_second_pod, "pod-2 of operation reboot-1 was made at 12:00:00 though pod-1 had been made before"),
    (the_same_pod_made_again_after_it_went, "though pod-1 had been made before"),
    (a_pod_without_intent, "before the intent was written"),
    (
        a_pod_of_an_operation_that_a_user_made,
        "pod-2 of operation by-hand was made at 12:00:00, which is not what",
    ),
    (
        a_drain_of_an_attempt_that_is_over,
        "drain-1 of operation reboot-1 was made at 12:00:00, which is not",
    ),
    (an_intent_that_names_no_boot, "the intent of reboot-1 names no boot at 12:00:00, and n1 shows boot-1"),
    (a_pod_for_another_boot, "for another boot than the intent names"),
    (a_pod_of_no_operation, "for an operation that does not exist"),
    (two_operations_of_one_attempt, "as attempt 1 of case uid-a, and so was reboot-1 before"),
    (an_intent_that_is_written_anew, "the intent of operation reboot-1 was changed"),
    (two_reboots_of_one_attempt, "by attempt reboot-1 at 12:00:00, which had asked before"),
    (a_reboot_in_another_boot, "in boot boot-2, and the intent names boot-1"),
    (two_attempts_that_reboot_one_boot, "in a boot in which another attempt had asked"),
]


@histories("checks", HOLDS)
def test_a_kept_invariant_is_counted_as_checked_and_not_as_broken(history: History, checks: int) -> None:
    holds("I2", history, checks)


@histories("text", BROKEN)
def test_a_broken_invariant_is_reported_with_what_broke_it(history: History, text: str) -> None:
    breaks("I2", history, text)
