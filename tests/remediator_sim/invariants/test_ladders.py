"""I10: attempts come to an end: a history that keeps it is counted as checked, one that breaks it is reported."""

from remediator_sim.invariants.contract import CASES
from tests.remediator_sim.invariants.histories import History, breaks, histories, holds
from tests.remediator_sim.invariants.recording import Recording, tried


def climb(recording: Recording, *operations: str) -> None:
    """One attempt after the other, a minute apart."""
    recording.node("n1")
    recording.taint("n1", "a")
    recording.case("a", "n1", "Draining", startedAt=True)
    for index in range(len(operations)):
        recording.case("a", phase="Draining", attempts=tried(*operations[: index + 1]))
        recording.later(61)


def a_ladder_climbed_to_its_end(recording: Recording) -> None:
    climb(recording, "reset-1", "reboot-1", "reboot-2")
    recording.case("a", phase="Escalated")


def a_rung_tried_too_often(recording: Recording) -> None:
    climb(recording, "reset-1", "reset-2")


def a_rung_below_the_last(recording: Recording) -> None:
    climb(recording, "reboot-1", "reset-1")


def a_rung_that_is_not_there(recording: Recording) -> None:
    recording.policy(ladder=[{"operation": "reset"}])
    climb(recording, "reset-1", "reboot-1")


def an_attempt_after_a_person_was_called(recording: Recording) -> None:
    a_ladder_climbed_to_its_end(recording)
    recording.case("a", phase="Draining", attempts=tried("reset-1", "reboot-1", "reboot-2", "reboot-3"))


def more_attempts_than_the_policy_allows(recording: Recording) -> None:
    recording.policy(most=2)
    climb(recording, "reset-1", "reboot-1", "reboot-2")


def flapping(most: int, between: int) -> History:
    """Two cases of one node with an attempt each, so many seconds apart."""

    def write(recording: Recording) -> None:
        recording.policy(most=most)
        climb(recording, "reset-1")
        recording.case("a", phase="Recovered", endedAt=True)
        recording.later(between)
        recording.case("c", "n1", "Draining", startedAt=True)
        recording.case("c", attempts=tried("reset-2"))

    return write


def handed_over_while_an_operation_runs(recording: Recording) -> None:
    climb(recording, "reset-1")
    recording.case("a", phase="Escalated", attempts=tried("reset-1", outcome=""))


def handed_over_and_given_back(recording: Recording) -> None:
    climb(recording, "reset-1")
    recording.taint("n1", "")
    recording.case("a", phase="Escalated", attempts=tried("reset-1"))


def handed_over_twice(recording: Recording) -> None:
    climb(recording, "reset-1")
    told = [{"reason": "LadderExhausted", "at": "12:00"}, {"reason": "LadderExhausted", "at": "12:01"}]
    recording.case("a", phase="Escalated", timeline=told[:1])
    recording.case("a", phase="Escalated", timeline=told)


def told_that_nothing_is_left(retry: int) -> History:
    """A case that waits for a person answers the first spec.retry, which a user has raised so often."""

    def write(recording: Recording) -> None:
        climb(recording, "reset-1")
        told = [{"reason": "LadderExhausted", "at": "12:00"}, {"reason": "AttemptsSpent", "at": "12:01"}]
        recording.case("a", phase="Escalated", timeline=told[:1])
        recording.write(CASES, "a", spec={"retry": retry})
        recording.case("a", phase="Escalated", retries=1, timeline=told)

    return write


def told_that_a_user_has_it_for_too_long(until: str) -> History:
    """A case whose user keeps the node until then says that this is over."""

    def write(recording: Recording) -> None:
        climb(recording, "reset-1")
        told = [{"reason": "TakenOut", "at": "12:00"}, {"reason": "TakeOutOverdue", "at": "12:01"}]
        recording.write(CASES, "a", spec={"keepOut": {"until": until}})
        recording.case("a", phase="Escalated", timeline=told[:1])
        recording.case("a", phase="Escalated", timeline=told)

    return write


def followed_up(outcome: str) -> History:
    """A try with this outcome, and what calls itself its follow-up."""

    def write(recording: Recording) -> None:
        climb(recording, "reset-1")
        follows = {"operation": "plugin-1", "rung": 1, "outcome": "", "follows": "reset-1"}
        recording.case("a", attempts=[*tried("reset-1", outcome=outcome), follows])

    return write


def cancelled_and_tried_again(pods: int) -> History:
    """A try that was cancelled when it had so many Pods, then another."""

    def write(recording: Recording) -> None:
        climb(recording, "reset-1")
        recording.operation("reset-1", "a")
        for number in range(pods):
            recording.pod(f"pod-{number}", "reset-1", "reset-gpu")
        again = tried("reset-1", outcome="Cancelled") + tried("reset-2", outcome="")
        recording.case("a", phase="Draining", attempts=again)

    return write


HOLDS = [
    (cancelled_and_tried_again(0), 2),
    (followed_up("Succeeded"), 2),
    (a_ladder_climbed_to_its_end, 6),
    (told_that_nothing_is_left(1), 2),
    (told_that_a_user_has_it_for_too_long("2026-01-01T12:01:00Z"), 2),
    (flapping(2, 10), 2),
    (flapping(1, 3600), 2),
]
BROKEN = [
    (cancelled_and_tried_again(1), "though rung 1 of policy p was used up"),
    (followed_up("Failed"), "began plugin-1 at 12:01:01 to follow reset-1, which had not worked"),
    (a_rung_tried_too_often, "though rung 1 of policy p was used up"),
    (a_rung_that_is_not_there, "though rung 2 of policy p was used up"),
    (a_rung_below_the_last, "on rung 1, below one that it had tried"),
    (an_attempt_after_a_person_was_called, "case a began reboot-3 on n1 at 12:03:03 after it was Escalated"),
    (more_attempts_than_the_policy_allows, "as number 3 of its node, where 2 are allowed"),
    (flapping(1, 10), "case c began reset-2 on n1 at 12:01:14 as number 2 of its node, where 1"),
    (handed_over_while_an_operation_runs, "was handed to a person at 12:01:01 while reset-1 ran"),
    (handed_over_twice, "case a, which waits for a person, goes on with LadderExhausted at 12:01:01"),
    (told_that_nothing_is_left(0), "case a, which waits for a person, goes on with AttemptsSpent at 12:01:01"),
    (told_that_a_user_has_it_for_too_long("2026-01-01T13:00:00Z"), "goes on with TakeOutOverdue at 12:01:01"),
    (handed_over_and_given_back, "without holding its node"),
]


@histories("checks", HOLDS)
def test_a_kept_invariant_is_counted_as_checked_and_not_as_broken(history: History, checks: int) -> None:
    holds("I10", history, checks)


@histories("text", BROKEN)
def test_a_broken_invariant_is_reported_with_what_broke_it(history: History, text: str) -> None:
    breaks("I10", history, text)
