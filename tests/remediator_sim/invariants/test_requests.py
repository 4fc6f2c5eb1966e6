"""I2, I5: what another controller asks for is done once, and it is told how that ended."""

from hashlib import sha256
from typing import Any

from remediator_sim.invariants.contract import CASES, NODE_REPAIRS, NVSENTINEL_REQUESTS, OPERATIONS
from tests.remediator_sim.invariants.histories import History, breaks, histories, holds
from tests.remediator_sim.invariants.recording import Recording, tried

HELD = ["remediator.dev/outcome"]
RELEASED = {"type": "NVSentinelOwnershipReleased", "status": "True"}
DONE = tried("reboot-1", outcome="Succeeded")


def operation(source: str, request: str = "r") -> str:
    """The name of the operation of a request."""
    return f"{source}-request-{sha256(f'uid-{request}'.encode()).hexdigest()[:10]}"


REPAIR, EXTERNAL = operation("node-repairs"), operation("nvsentinel")


def asks(recording: Recording, kind: str = NODE_REPAIRS, held: bool = True, **metadata: Any) -> None:
    recording.node("n1")
    recording.write(kind, "r", metadata={"name": "r", "uid": "uid-r", "finalizers": HELD if held else []} | metadata)


def made(recording: Recording, name: str = REPAIR) -> None:
    recording.write(OPERATIONS, name, spec={"nodeName": "n1", "templateName": "reboot"}, status={"phase": "Pending"})


def carried_out(recording: Recording, phase: str, **status: Any) -> None:
    """Its case, that far."""
    recording.case("a", "n1", phase, startedAt=True, **status)
    recording.write(CASES, "a", spec={"manual": {"operation": REPAIR}})


def says(recording: Recording, status: str, reason: str = "RemediatorSucceeded") -> None:
    recording.write(
        NODE_REPAIRS, "r", status={"conditions": [{"type": "Succeeded", "status": status, "reason": reason}]}
    )


def told(status: str, phase: str, reason: str = "RemediatorSucceeded", **of_case: Any) -> History:
    """It is told this while its case says that."""

    def write(recording: Recording) -> None:
        asks(recording)
        made(recording)
        carried_out(recording, phase, **of_case)
        says(recording, status, reason)

    return write


def once(recording: Recording) -> None:
    asks(recording)
    made(recording)


def twice(recording: Recording) -> None:
    once(recording)
    recording.remove(OPERATIONS, REPAIR)
    recording.write(OPERATIONS, REPAIR, metadata={"name": REPAIR, "uid": "another"}, spec={"nodeName": "n1"})


def after_its_end(recording: Recording) -> None:
    told("True", "Recovered", endedAt=True, attempts=DONE)(recording)
    recording.remove(OPERATIONS, REPAIR)
    recording.write(OPERATIONS, REPAIR, metadata={"name": REPAIR, "uid": "another"}, spec={"nodeName": "n1"})


def without_waiting(recording: Recording) -> None:
    asks(recording, held=False)
    made(recording)


def withdrawn(seconds: int) -> History:
    def write(recording: Recording) -> None:
        asks(recording, annotations={"remediation.medik8s.io/nhc-timed-out": "2026-01-01T12:00:00Z"})
        recording.later(seconds)
        made(recording)

    return write


def of_nvsentinel(*, released: bool) -> History:
    def write(recording: Recording) -> None:
        asks(recording, NVSENTINEL_REQUESTS)
        recording.write(NVSENTINEL_REQUESTS, "r", status={"conditions": [RELEASED] if released else []})
        made(recording, EXTERNAL)

    return write


def taken_back(*, by_a_user: bool) -> History:
    """It is told that its operation was taken back."""

    def write(recording: Recording) -> None:
        once(recording)
        if by_a_user:
            recording.remove(OPERATIONS, REPAIR)
        says(recording, "False", "RemediatorTakenBack")

    return write


def waited_for_by_nobody(seconds: int) -> History:
    """And its operation stays."""

    def write(recording: Recording) -> None:
        once(recording)
        recording.write(NODE_REPAIRS, "r", metadata={"annotations": {"remediation.medik8s.io/nhc-timed-out": "now"}})
        recording.later(seconds)

    return write


def changes_its_end(recording: Recording) -> None:
    told("True", "Recovered", endedAt=True, attempts=DONE)(recording)
    says(recording, "False")


def let_go(phase: str, **of_case: Any) -> History:
    """Our finalizer goes."""

    def write(recording: Recording) -> None:
        asks(recording)
        made(recording)
        carried_out(recording, phase, **of_case)
        recording.write(NODE_REPAIRS, "r", metadata={"finalizers": []})

    return write


def let_go_under_a_pod(ready: str) -> History:
    """The case has ended, and its Pod has not; nobody can end one on a node that does not report."""

    def write(recording: Recording) -> None:
        asks(recording)
        made(recording)
        carried_out(recording, "Cancelled", endedAt=True)
        recording.pod("pod-1", "reboot-1")
        recording.node("n1", ready=ready)
        recording.write(NODE_REPAIRS, "r", metadata={"finalizers": []})

    return write


def untold(seconds: int) -> History:
    def write(recording: Recording) -> None:
        once(recording)
        finished = recording.now.isoformat()
        recording.write(OPERATIONS, REPAIR, status={"phase": "Succeeded", "finishedAt": finished})
        recording.later(seconds)

    return write


def kept(seconds: int) -> History:
    """Deleted, and nothing was ever done for it."""

    def write(recording: Recording) -> None:
        asks(recording, deletionTimestamp=recording.now.isoformat())
        recording.later(seconds)

    return write


@histories("checks", [(once, 1), (withdrawn(2), 1), (of_nvsentinel(released=True), 1)])
def test_what_is_asked_for_once_and_wanted_is_counted(history: History, checks: int) -> None:
    holds("I2", history, checks)


@histories(
    "text",
    [
        (twice, "and so it was at"),
        (after_its_end, "made at"),
        (without_waiting, "which does not wait for it"),
        (withdrawn(6), "which nobody waits for since"),
        (of_nvsentinel(released=False), "NVSentinel still works on the node"),
    ],
)
def test_what_is_done_twice_or_for_nobody_is_told_of(history: History, text: str) -> None:
    breaks("I2", history, text)


@histories(
    "checks",
    [
        (told("True", "Recovered", endedAt=True, attempts=DONE), 2),
        (told("True", "Cancelled", endedAt=True, attempts=DONE), 2),
        (told("False", "Escalated"), 2),
        (
            told(
                "False", "Recovered", "RemediatorRefused", endedAt=True, attempts=tried("reboot-1", outcome="Refused")
            ),
            2,
        ),
        (taken_back(by_a_user=True), 1),
        (waited_for_by_nobody(8), 0),
        (let_go("Recovered", endedAt=True), 2),
        (let_go_under_a_pod("Unknown"), 2),
        (untold(8), 0),
        (kept(8), 0),
    ],
)
def test_an_end_that_is_true_and_a_request_that_waits_as_long_as_we_work_are_counted(
    history: History, checks: int
) -> None:
    holds("I5", history, checks)


@histories(
    "text",
    [
        (told("True", "Escalated", attempts=DONE), "was not carried out"),
        (told("False", "Recovered", endedAt=True, attempts=DONE), "was carried out"),
        (told("False", "Draining"), "while case a goes on"),
        (taken_back(by_a_user=False), "and its operation is there"),
        (waited_for_by_nobody(12), "and its operation waits on"),
        (changes_its_end, "the end of r was True, and is False"),
        (let_go("Draining"), "while case a works for it"),
        (let_go_under_a_pod("True"), "while Pod pod-1 works for it"),
        (untold(12), "r was told no end"),
        (kept(12), "and is not let go"),
    ],
)
def test_an_end_that_is_wrong_or_missing_and_one_that_is_let_go_too_soon_are_told_of(
    history: History, text: str
) -> None:
    breaks("I5", history, text)
