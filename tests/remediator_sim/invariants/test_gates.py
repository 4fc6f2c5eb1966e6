"""I4 and I12: windows, approvals, idle nodes: a history that keeps them is counted, one that breaks them reported."""

from datetime import UTC, datetime, timedelta

import pytest

from remediator_sim.invariants.gates import is_open, next_opening
from tests.remediator_sim.invariants.histories import breaks, histories, holds
from tests.remediator_sim.invariants.recording import Recording, tried

IDLE = {"mode": "WhenIdle", "deadline": "1m"}


def window(recording: Recording, *, opens: timedelta) -> dict[str, str]:
    """A window of half an hour that opens so much later than now."""
    at = recording.now + opens
    return {"cron": f"{at.minute} {at.hour} * * *", "duration": "30m"}


def start(recording: Recording, **case: object) -> None:
    recording.node("n1")
    recording.case("a", "n1", "Held", **case)
    recording.taint("n1", "a")
    recording.case("a", phase="Draining", startedAt=True)
    recording.later(5)
    recording.case("a", attempts=tried("reset-a", outcome=""))


def inside_its_window(recording: Recording) -> None:
    recording.policy(windows=[window(recording, opens=-timedelta(minutes=5))])
    start(recording)


def outside_of_its_window(recording: Recording) -> None:
    recording.policy(windows=[window(recording, opens=timedelta(minutes=5))])
    start(recording)


def after_its_window(recording: Recording) -> None:
    recording.policy(windows=[window(recording, opens=-timedelta(minutes=31))])
    start(recording)


def in_the_second_of_two_windows(recording: Recording) -> None:
    late, early = (window(recording, opens=timedelta(minutes=minutes)) for minutes in (5, -5))
    recording.policy(windows=[late, early])
    start(recording)


def beside_a_pod_that_works(recording: Recording) -> None:
    recording.policy(urgency=IDLE)
    pod(recording, "Running")
    start(recording)


def beside_a_pod_that_works_after_the_deadline(recording: Recording) -> None:
    recording.policy(urgency={"mode": "WhenIdle", "deadline": "2s"})
    pod(recording, "Running")
    start(recording)


def beside_a_pod_that_has_ended(recording: Recording) -> None:
    recording.policy(urgency=IDLE)
    pod(recording, "Succeeded")
    start(recording)


def beside_a_pod_of_a_daemon_set(recording: Recording) -> None:
    recording.policy(urgency=IDLE)
    pod(recording, "Running", ownerReferences=[{"kind": "DaemonSet", "name": "agent"}])
    start(recording)


def beside_a_pod_that_should_have_ended(recording: Recording) -> None:
    recording.policy(urgency=IDLE)
    pod(recording, "Running", deletionTimestamp="2020-01-01T01:00:00Z")
    start(recording)


def pod(recording: Recording, phase: str, **metadata: object) -> None:
    head = {"namespace": "default", "creationTimestamp": "2020-01-01T00:00:00Z"} | metadata
    recording.write("pods", "train", metadata=head, spec={"nodeName": "n1"}, status={"phase": phase})


def that_nobody_has_approved(recording: Recording) -> None:
    recording.policy(approval="Required")
    recording.node("n1")
    recording.case("a", "n1", "Held")
    recording.later(5)
    recording.case("a", phase="Draining", startedAt=True)


@histories(
    "text",
    [
        (outside_of_its_window, "n1 was taken at"),
        (after_its_window, "outside of every window of p"),
        (beside_a_pod_that_works, "while train worked on n1"),
        (that_nobody_has_approved, "nobody has approved case a"),
    ],
)
def test_a_start_is_reported(history, text):
    breaks("I4", history, text)


@pytest.mark.parametrize(
    "history",
    [
        inside_its_window,
        in_the_second_of_two_windows,
        beside_a_pod_that_works_after_the_deadline,
        beside_a_pod_that_has_ended,
        beside_a_pod_of_a_daemon_set,
        beside_a_pod_that_should_have_ended,
    ],
)
def test_a_start_is_counted(history):
    recording = Recording()
    history(recording)
    assert recording.found("I4").broken == ()
    assert recording.found("I4").checks > 0


def waiting(recording: Recording, seconds: int) -> None:
    """A case that says that it waits for a window which opens after a minute."""
    recording.node("n1")
    until = (recording.now + timedelta(minutes=1)).isoformat()
    recording.case("a", "n1", "Held", blockedBy=[{"reason": "OutsideWindow", "until": until}])
    recording.later(seconds)


def waits_a_while_longer(recording: Recording) -> None:
    waiting(recording, 600)


def waits_for_what_was_long_ago(recording: Recording) -> None:
    waiting(recording, 1000)


def test_a_wait_that_should_be_over_is_reported():
    holds("I12", waits_a_while_longer, 0)
    breaks("I12", waits_for_what_was_long_ago, "case a says that it waits until")


@pytest.mark.parametrize(
    ("cron", "minutes", "zone", "at", "opened"),
    [
        ("0 2 * * *", 60, "Asia/Tokyo", "2026-11-20T17:59", True),
        ("0 2 * * *", 60, "Asia/Tokyo", "2026-11-20T18:00", False),
        ("*/20 1-3 * * fri,sat", 5, "UTC", "2026-11-20T03:44", True),
        ("*/20 1-3 * * fri,sat", 5, "UTC", "2026-11-19T03:44", False),
        ("0 2 * * 7", 60, "UTC", "2026-11-22T02:30", True),
        ("15 0 1,20 * *", 1, "America/New_York", "2026-11-20T05:15", True),
    ],
)
def test_a_window_is_open_by_an_arithmetic_of_its_own(cron, minutes, zone, at, opened):
    known = {"cron": cron, "duration": f"{minutes}m", "timeZone": zone}
    assert is_open(known, datetime.fromisoformat(at).replace(tzinfo=UTC)) is opened


def says_when_it_opens(recording: Recording, *, opens: int, said: int) -> None:
    """A window opens after so many minutes, and a case says after how many."""
    recording.policy(windows=[window(recording, opens=timedelta(minutes=opens))])
    recording.node("n1")
    until = (recording.now + timedelta(minutes=said)).replace(second=0, microsecond=0)
    recording.case("a", "n1", "Held", blockedBy=[{"reason": "OutsideWindow", "until": until.isoformat()}])


def test_the_time_at_which_the_next_window_opens_is_counted_and_another_one_is_reported():
    holds("I12", lambda recording: says_when_it_opens(recording, opens=10, said=10), 1)
    breaks(
        "I12", lambda recording: says_when_it_opens(recording, opens=10, said=40), "and the next one opens 2026-01-01"
    )


@pytest.mark.parametrize(
    ("cron", "zone", "after", "opens"),
    [
        ("0 2 * * *", "Asia/Tokyo", "2026-11-20T16:59", "2026-11-20T17:00"),
        ("0 2 * * *", "Asia/Tokyo", "2026-11-20T17:00", "2026-11-21T17:00"),
        ("*/20 1-3 * * fri,sat", "UTC", "2026-11-20T03:40", "2026-11-21T01:00"),
        ("30 9 * * 7", "America/New_York", "2026-11-20T00:00", "2026-11-22T14:30"),
        ("0 0 29 2 *", "UTC", "2026-03-01T00:00", "2028-02-29T00:00"),
    ],
)
def test_the_next_opening_is_known_by_an_arithmetic_of_its_own(cron, zone, after, opens):
    after, opens = (datetime.fromisoformat(at).replace(tzinfo=UTC) for at in (after, opens))
    known = {"cron": cron, "duration": "10m", "timeZone": zone}
    assert next_opening(known, after) == opens
