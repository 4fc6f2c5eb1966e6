"""I5: how cases end: a clean history is counted and not broken, its twin is named."""

from tests.remediator_sim.invariants.stories import Story, breaks, everything_on_a_fault, holds, stories, three_nodes
from tests.remediator_sim.invariants.tape import Tape, tried


def a_case_that_ends(tape: Tape) -> None:
    everything_on_a_fault(tape)
    tape.later(50)
    tape.case("a", phase="Recovered", endedAt=True)
    tape.remove("pods", "pod-1")
    tape.remove("pods", "drain-1")
    tape.taint("n1", "")
    tape.claims()
    tape.let_go("a")
    tape.later(15)
    tape.end()


def leaves(*kept: str) -> Story:
    """A case that ends, with `kept` left behind."""

    def story(tape: Tape) -> None:
        everything_on_a_fault(tape)
        tape.case("a", phase="Recovered", endedAt=True)
        tape.remove("pods", "drain-1")
        goes = {
            "taint": lambda: tape.taint("n1", ""),
            "entry": tape.claims,
            "Pod": lambda: tape.remove("pods", "pod-1"),
            "finalizer": lambda: tape.let_go("a"),
        }
        for what, go in goes.items():
            if what not in kept:
                go()
        tape.later(15)

    return story


def a_case_that_leaves_its_taint_is_told_of_at_the_end(tape: Tape) -> None:
    a_case_that_ends(tape)
    tape.taint("n1", "a")
    tape.end()


def a_case_that_goes_on_for_ever(tape: Tape) -> None:
    everything_on_a_fault(tape)
    tape.later(110)


def a_case_that_a_person_holds_for_ever(tape: Tape) -> None:
    everything_on_a_fault(tape)
    tape.write("noderemediations.remediator.dev", "a", spec={"hold": True})
    tape.later(300)
    tape.end()


def a_case_that_is_open_at_the_end(tape: Tape) -> None:
    everything_on_a_fault(tape)
    tape.end()


def a_case_that_was_handed_over(tape: Tape) -> None:
    everything_on_a_fault(tape)
    tape.case("a", phase="Escalated", attempts=tried("reset-1"))
    tape.later(300)
    tape.end()


def a_case_that_waits_for_its_turn(tape: Tape) -> None:
    three_nodes(tape)
    tape.later(300)
    tape.end()


def a_case_that_waits_though_the_fault_has_gone(tape: Tape) -> None:
    three_nodes(tape)
    tape.node("n1", "False")
    tape.later(300)


def a_case_that_takes_its_node_after_its_end(tape: Tape) -> None:
    three_nodes(tape)
    tape.case("a", phase="Cancelled", endedAt=True)
    tape.taint("n1", "a")


HOLDS = [
    (a_case_that_ends, 4),
    (a_case_that_a_person_holds_for_ever, 2),
    (a_case_that_was_handed_over, 3),
    (a_case_that_waits_for_its_turn, 2),
]
BROKEN = [
    (leaves("taint", "entry", "Pod", "finalizer"), "left its taint, an entry in budget b, Pod pod-1, its final"),
    (leaves("taint"), "case a was over at 12:00:06 and has left its taint"),
    (leaves("entry"), "has left an entry in budget b"),
    (leaves("Pod"), "has left Pod pod-1"),
    (leaves("finalizer"), "has left its finalizer"),
    (a_case_that_leaves_its_taint_is_told_of_at_the_end, "has left its taint"),
    (a_case_that_goes_on_for_ever, "case a held n1 since 12:00:05: for longer than 0:01:40"),
    (a_case_that_is_open_at_the_end, "case a is still Draining at the end"),
    (a_case_that_waits_though_the_fault_has_gone, "case a waits though n1 is well since"),
    (a_case_that_takes_its_node_after_its_end, "n1 was taken at 12:00:05 by case a, which was over since"),
]


@stories("checks", HOLDS)
def test_what_holds_is_counted_and_not_broken(story: Story, checks: int) -> None:
    holds("I5", story, checks)


@stories("said", BROKEN)
def test_what_is_broken_is_named(story: Story, said: str) -> None:
    breaks("I5", story, said)
