"""I8: issues: a clean history is counted and not broken, its twin is named."""

from tests.remediator_sim.invariants.stories import Story, breaks, holds, stories
from tests.remediator_sim.invariants.tape import Tape


def one_issue_for_each(tape: Tape) -> None:
    tape.policy(urgency={})
    tape.node("n1")
    tape.case("a", "n1", "Escalated", startedAt=True)
    tape.ticket("t", "n1", 2)
    tape.issues((1, False, "n1"), (2, True, "n1"), (3, True, "n2"))
    tape.later(15)
    tape.end()


def two_open_issues_about_one_node(tape: Tape) -> None:
    tape.issues((1, True, "n1"), (2, True, "n1"))


def two_tickets_about_one_node(tape: Tape) -> None:
    tape.ticket("t", "n1")
    tape.ticket("t2", "n1")


def nobody_is_told_of_a_case_that_was_handed_over(tape: Tape) -> None:
    tape.node("n1")
    tape.case("a", "n1", "Escalated", startedAt=True)
    tape.ticket("t", "n1", 2)
    tape.issues((2, False, "n1"))
    tape.later(15)
    tape.end()


def nobody_is_told_of_a_case_that_only_waits(tape: Tape) -> None:
    tape.policy(ticket={"when": "Always"})
    tape.node("n1")
    tape.case("a", "n1", "Held")
    tape.later(15)
    tape.end()


def an_issue_that_a_person_closed(tape: Tape) -> None:
    tape.node("n1")
    tape.case("a", "n1", "Escalated", startedAt=True)
    tape.ticket("t", "n1", 2)
    tape.write("tickets.remediator.dev", "t", status={"phase": "Closed", "closedBy": "Person"})
    tape.issues((2, False, "n1"))
    tape.later(15)
    tape.end()


HOLDS = [
    (an_issue_that_a_person_closed, 2),
    (one_issue_for_each, 4),
]
BROKEN = [
    (nobody_is_told_of_a_case_that_only_waits, "case a of n1 wants a person, and no open issue"),
    (two_open_issues_about_one_node, "#1, #2 are open in o/r for n1"),
    (two_tickets_about_one_node, "ticket t2 was made at 12:00:00 about what ticket t is about"),
    (nobody_is_told_of_a_case_that_was_handed_over, "case a of n1 wants a person, and no open issue"),
]


@stories("checks", HOLDS)
def test_what_holds_is_counted_and_not_broken(story: Story, checks: int) -> None:
    holds("I8", story, checks)


@stories("said", BROKEN)
def test_what_is_broken_is_named(story: Story, said: str) -> None:
    breaks("I8", story, said)
