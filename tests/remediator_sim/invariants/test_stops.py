"""I4: stops: a clean history is counted and not broken, its twin is named."""

from tests.remediator_sim.invariants.stories import Story, breaks, holds, stories
from tests.remediator_sim.invariants.tape import Tape, tried


def start(tape: Tape, name: str) -> None:
    tape.node(f"n-{name}")
    tape.case(name, f"n-{name}", "Draining", startedAt=True)
    tape.case(name, attempts=tried(f"reset-{name}", outcome=""))


def as_many_starts_as_the_breaker_lets_through(tape: Tape) -> None:
    start(tape, "a")
    start(tape, "c")
    tape.later(60)
    start(tape, "d")


def one_start_too_many(tape: Tape) -> None:
    start(tape, "a")
    start(tape, "c")
    tape.later(50)
    start(tape, "d")


def a_start_while_paused(tape: Tape) -> None:
    tape.paused(True)
    tape.later(5)
    start(tape, "a")


def a_start_a_moment_after_the_pause(tape: Tape) -> None:
    tape.paused(True)
    start(tape, "a")


def a_start_after_the_pause_was_lifted(tape: Tape) -> None:
    tape.paused(True)
    tape.later(5)
    tape.paused(False)
    start(tape, "a")


def a_start_of_a_policy_that_only_watches(tape: Tape) -> None:
    tape.policy("DryRun")
    tape.later(5)
    start(tape, "a")


def a_start_of_a_policy_that_only_calls_a_person(tape: Tape) -> None:
    tape.policy(urgency={"mode": "Never"})
    tape.later(5)
    start(tape, "a")


def a_start_of_a_case_that_a_person_holds(tape: Tape) -> None:
    tape.node("n1")
    tape.case("a", "n1", "Draining", startedAt=True)
    tape.write("noderemediations.remediator.dev", "a", spec={"hold": True})
    tape.later(5)
    tape.case("a", attempts=tried("reset-1"))


def a_start_on_a_node_that_a_person_took_out(tape: Tape) -> None:
    tape.write("nodes", "n-a", metadata={"name": "n-a", "uid": "uid-n-a", "labels": {"remediator.dev/exclude": "true"}})
    tape.later(5)
    start(tape, "a")


def a_pod_while_paused(tape: Tape) -> None:
    tape.paused(True)
    tape.later(5)
    tape.pod("look-1", "", "collect-diagnostics")


def a_case_ends_while_paused(tape: Tape) -> None:
    tape.node("n1")
    tape.case("a", "n1", "Verifying", startedAt=True, attempts=tried("reset-1"))
    tape.node("n1", "False")
    tape.paused(True)
    tape.later(15)
    tape.case("a", phase="Recovered", endedAt=True)
    tape.later(20)


def a_case_that_waits_for_the_end_of_the_pause(tape: Tape) -> None:
    tape.node("n1")
    tape.case("a", "n1", "Verifying", startedAt=True, attempts=tried("reset-1"))
    tape.node("n1", "False")
    tape.paused(True)
    tape.later(30)


HOLDS = [
    (as_many_starts_as_the_breaker_lets_through, 9),
    (a_start_a_moment_after_the_pause, 3),
    (a_start_after_the_pause_was_lifted, 3),
    (a_case_ends_while_paused, 4),
]
BROKEN = [
    (one_start_too_many, "reset-d was start number 3 within 0:01:00 at 12:00:51; the breaker allows 2"),
    (a_start_while_paused, "though the namespace remediator-system is paused since 12:00:00"),
    (a_start_of_a_policy_that_only_watches, "though policy p lets nothing start since"),
    (a_start_of_a_policy_that_only_calls_a_person, "though policy p lets nothing start since"),
    (a_start_of_a_case_that_a_person_holds, "reset-1 was begun at 12:00:05 though a person holds case a since"),
    (a_start_on_a_node_that_a_person_took_out, "though a person excluded n-a"),
    (a_pod_while_paused, "look-1 was made at 12:00:05 though the namespace"),
    (a_case_that_waits_for_the_end_of_the_pause, "case a does not end though n1 is well since 12:00:00"),
]


@stories("checks", HOLDS)
def test_what_holds_is_counted_and_not_broken(story: Story, checks: int) -> None:
    holds("I4", story, checks)


@stories("said", BROKEN)
def test_what_is_broken_is_named(story: Story, said: str) -> None:
    breaks("I4", story, said)
