"""I5: a new node works once it is proven: a history that keeps it is counted, one that breaks it is reported."""

from remediator_sim.invariants.contract import CASES, NODES, machine
from tests.remediator_sim.invariants.histories import BOOT, History, breaks, histories, holds
from tests.remediator_sim.invariants.recording import Recording, tried

KEY = "remediator.dev/unproven"
GATE = {"key": KEY, "effect": "NoSchedule"}
FIRST, SECOND = ({"nodeInfo": {"machineID": name}} for name in ("first", "second"))
PROBED = {"template": "gpu-check", "probe": True}
SUCCEEDED, FAILED = (tried("gpu-check-1", outcome=outcome)[0] | PROBED for outcome in ("Succeeded", "Failed"))


def waits_at_the_gate(recording: Recording, **case: object) -> None:
    """A new node, and a case that is about it."""
    recording.policy(admit={"probe": "gpu-check", "taint": KEY})
    recording.node("n1", fault="False")
    recording.write(NODES, "n1", status=FIRST)
    recording.taint("n1", "", GATE)
    recording.case("a", "n1", "Verifying", **case)
    recording.write(CASES, "a", spec={"nodeUID": "uid-n1", "newNode": {"taint": KEY, "machine": "first"}})


def works_after(*attempts: dict[str, object], released: bool = False) -> History:
    """Its taint goes after these attempts of its case."""

    def write(recording: Recording) -> None:
        waits_at_the_gate(recording, attempts=list(attempts))
        recording.write(CASES, "a", spec={"release": True} if released else {})
        recording.taint("n1", "")

    return write


def is_another(seconds: int, *, closed: bool = False, mode: str = "Enforce") -> History:
    """Another machine works under the name of one that was proven, for so long."""

    def write(recording: Recording) -> None:
        works_after(SUCCEEDED)(recording)
        proven = machine({"status": FIRST})
        recording.write(NODES, "n1", metadata={"annotations": {"remediator.dev/admitted": f"{KEY}={proven}"}})
        recording.policy(mode, admit={"probe": "gpu-check", "taint": KEY})
        recording.write(CASES, "a", status={"phase": "Recovered", "endedAt": recording.now.isoformat()})
        recording.let_go("a")
        recording.later(600)  # until what was edited counts
        recording.write(NODES, "n1", status=SECOND)
        if closed:
            recording.taint("n1", "", GATE)
        recording.later(seconds)

    return write


def needs_no_approval(recording: Recording) -> None:
    """Its probe begins after somebody has edited the policy so that repairs need an approval."""
    waits_at_the_gate(recording, startedAt=True)
    recording.case("a", attempts=[SUCCEEDED | {"outcome": ""}])
    recording.policy(approval="Required", admit={"probe": "gpu-check", "taint": KEY})
    recording.later(300)
    recording.operation("gpu-check-1", "a")
    recording.operation("gpu-check-1", "a", intent=BOOT)
    recording.pod("pod-1", "gpu-check-1", "gpu-check")


HOLDS = [
    (waits_at_the_gate, 0),
    (works_after(SUCCEEDED), 1),
    (works_after(FAILED, released=True), 1),
    (is_another(599), 3),
    (is_another(610, closed=True), 3),
    (is_another(610, mode="DryRun"), 3),
]
BROKEN = [
    (works_after(), "n1 works since 12:00:0"),
    (works_after(FAILED), "no probe has succeeded on it behind remediator.dev/unproven"),
    (is_another(610), "and only the machine before it was proven"),
]


@histories("checks", HOLDS)
def test_a_node_that_works_once_it_is_proven_keeps_the_promise(history: History, checks: int) -> None:
    holds("I5", history, checks)


@histories("text", BROKEN)
def test_a_node_that_works_without_a_proof_breaks_the_promise(history: History, text: str) -> None:
    breaks("I5", history, text)


def test_a_probe_of_a_new_node_begins_though_repairs_need_an_approval() -> None:
    holds("I12", needs_no_approval, 2)
