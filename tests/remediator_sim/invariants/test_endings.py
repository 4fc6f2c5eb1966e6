"""I5: how cases end: a history that keeps it is counted as checked, one that breaks it is reported."""

from datetime import timedelta

from tests.remediator_sim.invariants.histories import (
    History,
    breaks,
    everything_on_a_fault,
    histories,
    holds,
    three_nodes,
)
from tests.remediator_sim.invariants.recording import Recording, tried


def a_case_that_ends(recording: Recording) -> None:
    everything_on_a_fault(recording)
    recording.later(50)
    recording.case("a", phase="Recovered", endedAt=True, attempts=tried("reset-1", outcome="Succeeded"))
    recording.remove("pods", "pod-1")
    recording.remove("pods", "drain-1")
    recording.taint("n1", "")
    recording.claims()
    recording.let_go("a")
    recording.later(15)
    recording.end()


def leaves(*kept: str) -> History:
    """A case that ends, with `kept` left behind."""

    def write(recording: Recording) -> None:
        everything_on_a_fault(recording)
        recording.case("a", phase="Recovered", endedAt=True)
        recording.remove("pods", "drain-1")
        goes = {
            "taint": lambda: recording.taint("n1", ""),
            "entry": recording.claims,
            "Pod": lambda: recording.remove("pods", "pod-1"),
            "finalizer": lambda: recording.let_go("a"),
        }
        for what, go in goes.items():
            if what not in kept:
                go()
        recording.later(15)

    return write


def leaves_all_on_a_silent_node(*, back: bool) -> History:
    """A case that ends while its Pod stands on a node that does not report, and keeps all until that is back."""

    def write(recording: Recording) -> None:
        everything_on_a_fault(recording)
        recording.node("n1", ready="Unknown")
        recording.case("a", phase="Cancelled", endedAt=True, attempts=tried("reset-1"))
        recording.remove("pods", "drain-1")
        recording.later(15)
        recording.end()
        if back:
            recording.node("n1")
            recording.later(15)

    return write


def a_case_that_leaves_its_taint_is_told_of_at_the_end(recording: Recording) -> None:
    a_case_that_ends(recording)
    recording.taint("n1", "a")
    recording.end()


def a_case_that_goes_on_for_ever(recording: Recording) -> None:
    everything_on_a_fault(recording)
    recording.later(110)


def a_case_that_a_person_holds_for_ever(recording: Recording) -> None:
    everything_on_a_fault(recording)
    recording.write("noderemediations.remediator.dev", "a", spec={"hold": True})
    recording.later(300)
    recording.end()


def held(reported: bool) -> History:
    """A case that holds its node, and is held itself."""

    def write(recording: Recording) -> None:
        everything_on_a_fault(recording)
        block = {"reason": "SharedCause", "since": "2026-01-01T12:00:00Z", "reported": reported}
        recording.case("a", phase="Verifying", attempts=tried("reset-1"), blockedBy=[block])
        recording.later(300)
        recording.end()

    return write


def waited_for_its_window(ago: int) -> History:
    """A case that holds its node; its window opened so many seconds before the end."""

    def write(recording: Recording) -> None:
        everything_on_a_fault(recording)
        block = {"reason": "OutsideWindow", "until": (recording.now + timedelta(seconds=60)).isoformat()}
        recording.case("a", phase="Verifying", attempts=tried("reset-1"), blockedBy=[block])
        recording.later(60 + ago)
        recording.end()

    return write


def a_case_that_is_open_at_the_end(recording: Recording) -> None:
    everything_on_a_fault(recording)
    recording.end()


def a_case_that_was_handed_over(recording: Recording) -> None:
    everything_on_a_fault(recording)
    recording.case("a", phase="Escalated", attempts=tried("reset-1"))
    recording.later(300)
    recording.end()


def a_case_that_waits_for_its_turn(recording: Recording) -> None:
    three_nodes(recording)
    recording.later(300)
    recording.end()


def a_case_that_waits_though_the_fault_has_gone(recording: Recording) -> None:
    three_nodes(recording)
    recording.node("n1", "False")
    recording.later(300)


def a_case_that_takes_its_node_after_its_end(recording: Recording) -> None:
    three_nodes(recording)
    recording.case("a", phase="Cancelled", endedAt=True)
    recording.taint("n1", "a")


def waits_on_a_silent_node(minutes: int, **status: object) -> History:
    """An operation that is there, on a node that says nothing more."""

    def write(recording: Recording) -> None:
        three_nodes(recording)
        recording.case("a", phase="Draining", startedAt=True, attempts=tried("reset-1", outcome=""))
        recording.operation("reset-1", "a", **status)
        since = {"type": "Ready", "status": "Unknown", "lastTransitionTime": recording.now.isoformat()}
        recording.write("nodes", "n1", status={"conditions": [since]})
        recording.case("a", phase="Escalated")
        recording.later(60 * minutes)

    return write


def ends_after(newest: str, *followed: str) -> History:
    """A case whose reset worked, whose newest attempt has this outcome, and which recovers; and what followed it."""

    def write(recording: Recording) -> None:
        three_nodes(recording)
        recording.write("nodeoperationtemplates.remediator.dev", "reset", spec={"after": ["restart-plugin"]})
        done = [attempt | {"template": "reset"} for attempt in tried("reset-1", outcome=newest)]
        follows = {"follows": "reset-1", "outcome": "Succeeded"}
        after = [{"operation": name, "template": name} | follows for name in followed]
        recording.case("a", phase="Verifying", attempts=[*done, *after])
        recording.case("a", phase="Recovered", endedAt=True)

    return write


def a_case_that_ends_twice(recording: Recording) -> None:
    three_nodes(recording)
    recording.case("a", phase="Recovered", endedAt="2026-01-01T12:00:05Z")
    recording.case("a", phase="Recovered", endedAt="2026-01-01T12:00:06Z")


HOLDS = [
    (ends_after("Failed"), 0),
    (ends_after("Succeeded", "restart-plugin"), 0),
    (waits_on_a_silent_node(59), 1),
    (waits_on_a_silent_node(61, drainStartedAt="2026-01-01T12:00:00Z"), 1),
    (a_case_that_ends, 4),
    (leaves_all_on_a_silent_node(back=False), 3),
    (a_case_that_a_person_holds_for_ever, 2),
    (a_case_that_was_handed_over, 3),
    (a_case_that_waits_for_its_turn, 2),
    (held(reported=True), 2),
    (waited_for_its_window(5), 2),
]
BROKEN = [
    (ends_after(""), "case a ended at 12:00:06 while reset-1 ran"),
    (ends_after("Succeeded"), "case a ended at 12:00:06 without restart-plugin"),
    (a_case_that_ends_twice, "case a ended at 12:00:05, and had ended before"),
    (leaves("taint", "entry", "Pod", "finalizer"), "left its taint, an entry in budget b, Pod pod-1, its final"),
    (leaves_all_on_a_silent_node(back=True), "left its taint, an entry in budget b, Pod pod-1, its final"),
    (leaves("taint"), "case a was over at 12:00:06 and has left its taint"),
    (leaves("entry"), "has left an entry in budget b"),
    (leaves("Pod"), "has left Pod pod-1"),
    (leaves("finalizer"), "has left its finalizer"),
    (a_case_that_leaves_its_taint_is_told_of_at_the_end, "has left its taint"),
    (a_case_that_goes_on_for_ever, "case a held n1 since 12:00:05: for longer than 0:01:40"),
    (held(reported=False), "case a held n1 since 12:00:05: for longer than 0:01:40"),
    (waits_on_a_silent_node(61), "operation reset-1 waits for n1, silent since 12:00:0"),
    (waited_for_its_window(15), "case a is still Verifying at the end"),
    (a_case_that_is_open_at_the_end, "case a is still Draining at the end"),
    (a_case_that_waits_though_the_fault_has_gone, "case a waits though n1 is well since"),
    (a_case_that_takes_its_node_after_its_end, "n1 was taken at 12:00:05 by case a, which was over since"),
]


@histories("checks", HOLDS)
def test_a_kept_invariant_is_counted_as_checked_and_not_as_broken(history: History, checks: int) -> None:
    holds("I5", history, checks)


@histories("text", BROKEN)
def test_a_broken_invariant_is_reported_with_what_broke_it(history: History, text: str) -> None:
    breaks("I5", history, text)
