"""I7: what a kill must not lose: a history that keeps it is counted as checked, one that breaks it is reported."""

from datetime import timedelta

from remediator_sim.invariants.contract import TICKETS
from remediator_sim.invariants.event import ALERTS
from tests.remediator_sim.invariants.histories import BOOT, History, breaks, histories, holds
from tests.remediator_sim.invariants.recording import Recording, tried


def a_kill(recording: Recording) -> None:
    recording.node("n1")
    line = {"at": "12:00", "reason": "Claimed", "message": "ours"}
    attempts = tried("reset-1", "reboot-1", outcome="")
    recording.case("a", "n1", "Operating", startedAt=True, attempts=attempts, timeline=[line], evidence={"bootID": "1"})
    recording.operation("reboot-1", "a", 2, intent=BOOT)
    recording.ticket("t", "n1", 7)
    recording.killed()


def work_goes_on_after_a_kill(recording: Recording) -> None:
    a_kill(recording)
    recording.operation("reboot-1", "a", 2, finishedAt="2026-01-01T13:00:00Z")
    recording.case("a", phase="Recovered", endedAt=True, attempts=tried("reset-1", "reboot-1", outcome="Succeeded"))
    recording.let_go("a")
    recording.remove("noderemediations.remediator.dev", "a")
    recording.later(110)
    recording.end()


def set_back(**status: object) -> History:
    """A case of which a new controller forgets something."""

    def write(recording: Recording) -> None:
        a_kill(recording)
        recording.case("a", **({"phase": "Operating"} | status))

    return write


def a_case_that_disappears(recording: Recording) -> None:
    a_kill(recording)
    recording.remove("noderemediations.remediator.dev", "a")


def an_operation_that_loses_its_intent(recording: Recording) -> None:
    a_kill(recording)
    recording.operation("reboot-1", "a", 2, intent=None, phase="Operating")


def a_ticket_that_forgets_its_issue(recording: Recording) -> None:
    a_kill(recording)
    recording.write("tickets.remediator.dev", "t", status={"issue": None})


def a_ticket_that_goes(recording: Recording) -> None:
    a_kill(recording)
    recording.remove("tickets.remediator.dev", "t")


def another_issue_after_the_first_was_closed(recording: Recording) -> None:
    a_kill(recording)
    recording.write("tickets.remediator.dev", "t", status={"phase": "Closed"})
    recording.write("tickets.remediator.dev", "t", status={"phase": "Pending", "issue": None})
    recording.remove("tickets.remediator.dev", "t")


def work_that_lies_still_after_a_kill(recording: Recording) -> None:
    a_kill(recording)
    recording.later(110)


def a_case_that_waits_for_a_window_after_a_kill(seconds: int) -> History:
    """Its case between two attempts; so many seconds after the kill the window opens."""

    def write(recording: Recording) -> None:
        recording.node("n1")
        opens = (recording.now + timedelta(seconds=seconds)).isoformat()
        waits = [{"reason": "OutsideWindow", "until": opens}]
        recording.case("a", "n1", "Verifying", startedAt=True, attempts=tried("reset-1"), blockedBy=waits)
        recording.killed()
        recording.later(110)

    return write


def an_alert_that_was_taken(number: int, is_open: bool) -> History:
    """It fires at the end; its Ticket has the issue of this number, 0 for none."""

    def write(recording: Recording) -> None:
        subject = {"kind": "Node", "nodeName": "n1"}
        status = {"phase": "Open", "issue": {"repository": "o/r", "number": number}} if number else {}
        alerts = [{"fingerprint": "f1", "name": "NodeDown", "startsAt": "2026-11-20T12:00:00Z"}]
        recording.write(TICKETS, "t", spec={"subject": subject, "alerts": alerts}, status=status)
        recording.issues((1, is_open, "n1"))
        recording.hear(ALERTS, {"firing": ["f1"]})

    return write


def an_alert_that_no_ticket_holds(recording: Recording) -> None:
    recording.hear(ALERTS, {"firing": ["f1"]})


HOLDS = [
    (a_case_that_waits_for_a_window_after_a_kill(120), 1),
    (an_alert_that_was_taken(1, is_open=True), 1),
    (another_issue_after_the_first_was_closed, 3),
    (work_goes_on_after_a_kill, 6),
]
BROKEN = [
    (an_alert_that_was_taken(1, is_open=False), "alert f1 fires, and no open issue tells of it"),
    (an_alert_that_was_taken(0, is_open=True), "alert f1 fires, and no open issue tells of it"),
    (an_alert_that_no_ticket_holds, "alert f1 fires and was taken, and no Ticket holds it"),
    (a_ticket_that_goes, "ticket t, there at the kill at 12:00:00, disappeared"),
    (set_back(attempts=[]), "case a, there at the kill at 12:00:00, lost attempts at 12:00:00"),
    (set_back(attempts=tried("reset-9", "reboot-1")), "lost attempts"),
    (set_back(timeline=[]), "lost its timeline"),
    (set_back(phase=""), "lost its phase"),
    (set_back(phase="Held"), "lost its phase"),
    (set_back(startedAt="9"), "lost the time of its claim"),
    (set_back(evidence={}), "lost its evidence"),
    (a_case_that_disappears, "case a, there at the kill at 12:00:00, disappeared at 12:00:00 before"),
    (an_operation_that_loses_its_intent, "operation reboot-1, there at the kill at 12:00:00, lost its intent"),
    (a_ticket_that_forgets_its_issue, "ticket t, there at the kill at 12:00:00, lost its issue"),
    (a_case_that_waits_for_a_window_after_a_kill(90), "case a has not moved since the kill at 12:00:00"),
    (work_that_lies_still_after_a_kill, "case a has not moved since the kill at 12:00:00"),
    (work_that_lies_still_after_a_kill, "operation reboot-1 has not moved since the kill"),
]


@histories("checks", HOLDS)
def test_a_kept_invariant_is_counted_as_checked_and_not_as_broken(history: History, checks: int) -> None:
    holds("I7", history, checks)


@histories("text", BROKEN)
def test_a_broken_invariant_is_reported_with_what_broke_it(history: History, text: str) -> None:
    breaks("I7", history, text)
