"""I8: issues: a clean history is counted and not broken, its twin is named."""

from tests.remediator_sim.invariants.recording import Recording
from tests.remediator_sim.invariants.stories import Story, breaks, holds, stories


def one_issue_for_each(recording: Recording) -> None:
    recording.policy(urgency={})
    recording.node("n1")
    recording.case("a", "n1", "Escalated", startedAt=True)
    recording.ticket("t", "n1", 2)
    recording.issues((1, False, "n1"), (2, True, "n1"), (3, True, "n2"))
    recording.later(15)
    recording.end()


def two_open_issues_about_one_node(recording: Recording) -> None:
    recording.issues((1, True, "n1"), (2, True, "n1"))


def two_tickets_about_one_node(recording: Recording) -> None:
    recording.ticket("t", "n1")
    recording.ticket("t2", "n1")


def nobody_is_told_of_a_case_that_was_handed_over(recording: Recording) -> None:
    recording.node("n1")
    recording.case("a", "n1", "Escalated", startedAt=True)
    recording.ticket("t", "n1", 2)
    recording.issues((2, False, "n1"))
    recording.later(15)
    recording.end()


def nobody_is_told_of_a_case_that_only_waits(recording: Recording) -> None:
    recording.policy(ticket={"when": "Always"})
    recording.node("n1")
    recording.case("a", "n1", "Held")
    recording.later(15)
    recording.end()


def an_issue_that_a_person_closed(recording: Recording) -> None:
    recording.node("n1")
    recording.case("a", "n1", "Escalated", startedAt=True)
    recording.ticket("t", "n1", 2)
    recording.write("tickets.remediator.dev", "t", status={"phase": "Closed", "closedBy": "Person"})
    recording.issues((2, False, "n1"))
    recording.later(15)
    recording.end()


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
