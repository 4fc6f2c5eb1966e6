"""I13: what ends by the clock had its time, our absence left out: a history that keeps it, one that breaks it."""

from remediator_sim.invariants.contract import PODS
from remediator_sim.invariants.event import ABSENT
from tests.remediator_sim.invariants.histories import History, breaks, everything_on_a_fault, histories, holds
from tests.remediator_sim.invariants.recording import LIMITS, Recording

TIMEOUT, SLACK, SILENCE = 900, 11, int(LIMITS.silence.total_seconds())  # seconds: of a template that names none


def ends_by_the_clock(seconds: int, *, paused: int = 0, reason: str = "TimedOut", state: str = "") -> History:
    """An operation that could go on for so long, and was paused for so long.

    `state`: in which its container was when its kubelet ended its Pod, because its time was over.
    """

    def write(recording: Recording) -> None:
        everything_on_a_fault(recording)
        recording.operation("reset-2", "a", intent={"bootID": "boot-1", "at": recording.now.isoformat()})
        if paused:
            recording.paused(True)
            recording.hear(ABSENT, {"absent": True})
            recording.later(paused)
            recording.paused(False)
            recording.hear(ABSENT, {"absent": False})
        recording.later(seconds)
        ended = recording.now.isoformat()
        if state:
            expired = {
                "phase": "Failed",
                "reason": "DeadlineExceeded",
                "containerStatuses": [{"state": {state: {"": 0}}}],
            }
            recording.pod("pod-2", "reset-2")
            recording.write(PODS, "pod-2", status=expired)
            recording.operation("reset-2", "a", pod="pod-2")
        recording.operation("reset-2", "a", phase="Failed", reason=reason, finishedAt=ended)

    return write


HOLDS = [
    (ends_by_the_clock(TIMEOUT), 1),
    (ends_by_the_clock(TIMEOUT, paused=60), 1),
    (ends_by_the_clock(TIMEOUT - SLACK - SILENCE, paused=60), 1),
    (ends_by_the_clock(TIMEOUT - SLACK - SILENCE - 1, paused=60, state="terminated"), 1),
]
BROKEN = [
    (ends_by_the_clock(TIMEOUT - SLACK - SILENCE), "operation reset-2 ended by the clock at 12:14:5"),
    (ends_by_the_clock(TIMEOUT - SLACK - SILENCE, reason="PodNotStarted"), "ended by the clock at 12:14:5"),
    (ends_by_the_clock(TIMEOUT - SLACK - SILENCE - 1, paused=60), "in which nobody of us could act for 0:01:00"),
    (ends_by_the_clock(TIMEOUT - SLACK - SILENCE - 1, paused=60, state="waiting"), "could act for 0:01:00"),
]


@histories("checks", HOLDS)
def test_an_operation_that_had_its_time_keeps_the_promise(history: History, checks: int) -> None:
    holds("I13", history, checks)


@histories("text", BROKEN)
def test_an_operation_that_had_less_than_its_time_breaks_the_promise(history: History, text: str) -> None:
    breaks("I13", history, text)
