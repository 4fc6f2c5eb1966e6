"""I3: what is said of a node by its tests is what one of them has proven; anything else is reported."""

from typing import Any

from remediator_sim.invariants.contract import PODS
from tests.remediator_sim.invariants.histories import History, breaks, histories, holds
from tests.remediator_sim.invariants.idle import BOOT, an_idle_node, kept, made, said
from tests.remediator_sim.invariants.recording import Recording

PREEMPTED = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]


def a_result(
    code: int = 1, *, passed: bool = False, meta: dict[str, Any] | None = None, policy: str = "p", **status: Any
) -> History:
    """A test of n0 that ends with a code, and what the inventory says of it."""

    def write(recording: Recording) -> None:
        recording.policy(idleTest={"probe": "gpu-check", "share": 1})
        an_idle_node(recording, "n0")
        made(recording, 0)
        if meta:
            recording.write(PODS, "test-0", metadata=meta)
        said(recording, 0, code, **status)
        kept(recording, passed=passed, policy=policy)

    return write


def booted(before: bool, told: str) -> History:
    """The node boots before its test ends or after it, and the result says of this boot."""

    def write(recording: Recording) -> None:
        recording.policy(idleTest={"probe": "gpu-check", "share": 1})
        an_idle_node(recording, "n0")
        made(recording, 0)
        if not before:
            said(recording, 0, 0)
        recording.write("nodes", "n0", status={"nodeInfo": {"bootID": "boot-2"}})
        recording.later(5)
        if before:
            said(recording, 0, 0)
        kept(recording, passed=True, boot=told)

    return write


def beside_a_repair(recording: Recording) -> None:
    """A case has had the node for five seconds when the test ends."""
    recording.policy(idleTest={"probe": "gpu-check", "share": 1})
    an_idle_node(recording, "n0")
    made(recording, 0)
    recording.write("nodes", "n0", spec={"taints": [{"key": "remediator.dev/case", "value": "uid-a"}]})
    recording.later(5)
    said(recording, 0, 1)
    kept(recording, passed=False)


UNPROVEN = "and no test has proven that"


@histories("checks", [(a_result(), 1), (a_result(0, passed=True), 1)])
def test_a_result_that_a_test_has_said_keeps_the_promise(history: History, checks: int) -> None:
    holds("I3", history, checks)


@histories(
    "text",
    [
        (a_result(0), UNPROVEN),
        (a_result(passed=True), UNPROVEN),
        (a_result(2), UNPROVEN),
        (a_result(143), UNPROVEN),
        (a_result(policy="q"), UNPROVEN),
        (a_result(conditions=PREEMPTED), UNPROVEN),
        (a_result(reason="DeadlineExceeded"), UNPROVEN),
        (a_result(meta={"deletionTimestamp": "2026-01-01T12:00:00Z"}), UNPROVEN),
        (booted(True, BOOT), UNPROVEN),
        (booted(True, "boot-2"), UNPROVEN),
        (booted(False, "boot-2"), UNPROVEN),
        (booted(False, BOOT), "and its boot is ['boot-2']"),
        (beside_a_repair, UNPROVEN),
    ],
)
def test_a_result_that_no_test_has_said_in_this_boot_breaks_the_promise(history: History, text: str) -> None:
    breaks("I3", history, text)


def told(passed: bool) -> History:
    """The node says that a test has failed, after its newest one."""

    def write(recording: Recording) -> None:
        a_result(int(not passed), passed=passed)(recording)
        conditions = [{"type": "Ready", "status": "True"}, {"type": "IdleTestFailed", "status": "True"}]
        recording.write("nodes", "n0", status={"conditions": conditions})

    return write


def test_a_node_that_says_what_its_test_has_found_keeps_the_promise() -> None:
    holds("I3", told(False), 2)


def test_a_node_that_says_what_no_test_has_found_breaks_the_promise() -> None:
    breaks("I3", told(True), "n0 says IdleTestFailed since")
