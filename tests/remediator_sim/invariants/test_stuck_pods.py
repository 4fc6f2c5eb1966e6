"""I3: that Pods of a node do not end is said where it is so; anything else is reported."""

from datetime import timedelta

from remediator_sim.invariants.contract import NODES, PODS
from tests.remediator_sim.invariants.histories import History, breaks, histories, holds
from tests.remediator_sim.invariants.recording import Recording


def stuck(
    *minutes: float, phase: str = "Running", gone: float | None = None, ready: str = "True", stands: str = "",
    node: str = "n1", ended: float | None = None,
) -> History:  # fmt: skip
    """Pods whose grace is over for so many minutes.

    `gone`, `ended`: the first is, for so many seconds when the node says that they stay.
    """

    def write(recording: Recording) -> None:
        recording.node("n1", ready=ready)
        if stands:
            said(recording, stands, ready)
        for number, late in enumerate(minutes):
            meta = {"deletionTimestamp": (recording.now - timedelta(minutes=late)).isoformat()}
            recording.write(PODS, f"t/{number}", metadata=meta, spec={"nodeName": node}, status={"phase": phase})
        if ended is not None:
            recording.write(PODS, "t/0", status={"phase": "Succeeded"})
            recording.later(ended)
        if gone is not None:
            recording.remove(PODS, "t/0")
            recording.later(gone)
        said(recording, "True", ready)

    return write


def said(recording: Recording, status: str, ready: str) -> None:
    conditions = [{"type": "Ready", "status": ready}, {"type": "PodsStuckTerminating", "status": status}]
    recording.write(NODES, "n1", status={"conditions": conditions})


@histories(
    "checks",
    [
        (stuck(30), 1),
        (stuck(10, 11, 12), 1),
        (stuck(10, stands="Unknown"), 1),
        (stuck(30, gone=100), 1),
        (stuck(30, ended=100), 1),
        (stuck(30, ended=90, gone=80), 1),
    ],
)
def test_what_is_said_of_pods_that_stay_keeps_the_promise(history: History, checks: int) -> None:
    holds("I3", history, checks)


@histories(
    "text",
    [
        (stuck(), "and 0 of its Pods should have ended"),
        (stuck(29), "and 1 of its Pods should have ended for 0:10:00 or longer"),
        (stuck(9, 9, 9), "and 0 of its Pods"),
        (stuck(10, stands="False"), "and 1 of its Pods"),
        (stuck(60, phase="Failed"), "and 0 of its Pods"),
        (stuck(60, node="n2"), "and 0 of its Pods"),
        (stuck(60, gone=200), "and 0 of its Pods"),
        (stuck(60, ended=200), "and 0 of its Pods"),
        (stuck(60, ended=190, gone=10), "and 0 of its Pods"),
        (stuck(60, ready="Unknown"), "and its kubelet is not Ready"),
    ],
)
def test_what_is_said_without_such_pods_breaks_the_promise(history: History, text: str) -> None:
    breaks("I3", history, text)
