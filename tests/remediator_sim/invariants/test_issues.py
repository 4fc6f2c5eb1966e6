"""I8: issues: a history that keeps it is counted as checked, one that breaks it is reported."""

from remediator_sim.invariants.contract import CASES
from tests.remediator_sim.invariants.histories import History, breaks, histories, holds
from tests.remediator_sim.invariants.recording import Recording


def one_issue_for_each(recording: Recording) -> None:
    recording.policy(urgency={})
    recording.node("n1")
    recording.case("a", "n1", "Escalated", startedAt=True)
    recording.ticket("t", "n1", 2)
    recording.case("b", "n2", "Held")
    recording.ticket("t2", "n2", 3)
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
    recording.write("tickets.remediator.dev", "t", status={"phase": "Closed", "closedBy": "User"})
    recording.issues((2, False, "n1"))
    recording.later(15)
    recording.end()


def an_issue_that_a_user_opened_again_beside_ours(recording: Recording) -> None:
    recording.issues((1, True, "n1"), (2, True, "n1"), by_user=(1,))


def an_issue_that_a_user_closed_and_no_ticket_knows_yet(recording: Recording) -> None:
    recording.node("n1")
    recording.case("a", "n1", "Escalated", startedAt=True)
    recording.ticket("t", "n1", 2)
    recording.issues((2, False, "n1"), by_user=(2,))
    recording.later(15)
    recording.end()


def nobody_is_told_of_a_node_that_a_user_has_for_too_long(recording: Recording) -> None:
    recording.node("n1")
    recording.write(CASES, "a", spec={"nodeName": "n1", "keepOut": {"until": "2026-01-01T12:00:01Z"}})
    recording.case("a", "n1", "Escalated", reason="TakeOutOverdue")
    recording.later(15)
    recording.end()


def an_issue_of_a_case_that_is_over(recording: Recording) -> None:
    recording.node("n1")
    recording.case("a", "n1", "Recovered", startedAt=True, endedAt=True)
    recording.ticket("t", "n1", 2)
    recording.issues((2, True, "n1"))
    recording.later(15)
    recording.end()


def an_issue_that_no_ticket_knows(recording: Recording) -> None:
    recording.issues((2, True, "n1"))
    recording.end()


HOLDS = [
    (an_issue_that_a_person_closed, 2),
    (one_issue_for_each, 7),
    (an_issue_that_a_user_opened_again_beside_ours, 1),
    (an_issue_that_a_user_closed_and_no_ticket_knows_yet, 2),
]
BROKEN = [
    (an_issue_of_a_case_that_is_over, "o/r#2 of n1 is still open, and what it is about is over since 12:00:00"),
    (an_issue_that_no_ticket_knows, "o/r#2 of n1 is open, and no Ticket knows of it"),
    (nobody_is_told_of_a_node_that_a_user_has_for_too_long, "case a of n1 wants a person, and no open issue"),
    (nobody_is_told_of_a_case_that_only_waits, "case a of n1 wants a person, and no open issue"),
    (two_open_issues_about_one_node, "#1, #2 are open in o/r for n1"),
    (two_tickets_about_one_node, "ticket t2 was made at 12:00:00 about what ticket t is about"),
    (nobody_is_told_of_a_case_that_was_handed_over, "case a of n1 wants a person, and no open issue"),
]


@histories("checks", HOLDS)
def test_a_kept_invariant_is_counted_as_checked_and_not_as_broken(history: History, checks: int) -> None:
    holds("I8", history, checks)


@histories("text", BROKEN)
def test_a_broken_invariant_is_reported_with_what_broke_it(history: History, text: str) -> None:
    breaks("I8", history, text)
