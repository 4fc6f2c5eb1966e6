"""I1: a history of tests of idle nodes within their share is counted, one with more is reported."""

from remediator_sim.invariants.contract import PODS
from tests.remediator_sim.invariants.histories import History, breaks, histories, holds
from tests.remediator_sim.invariants.recording import Recording


def of_share(count: int, share: int | str, *, over: int = 0, mode: str = "Enforce", nodes: int = 5) -> History:
    """So many tests of so many nodes, of which the first have ended."""

    def write(recording: Recording) -> None:
        recording.policy(mode, idleTest={"probe": "gpu-check", "share": share})
        for number in range(nodes):
            recording.node(f"n{number}", fault="False")
        for number in range(count):
            made(recording, number)
            if number < over:
                recording.write(PODS, f"test-{number}", status={"phase": "Succeeded"})

    return write


def made(recording: Recording, number: int) -> None:
    """One test."""
    key = "remediator.dev/idle-test"
    meta = {"uid": f"uid-test-{number}", "namespace": "remediator-operations", "labels": {key: "true"}}
    named = {"name": f"test-{number}", "annotations": {key: f"p/n{number}"}}
    recording.write(
        PODS, f"test-{number}", metadata=meta | named, spec={"containers": [{}]}, status={"phase": "Pending"}
    )


HOLDS = [(of_share(2, 2), 2), (of_share(2, "40%"), 2), (of_share(1, "5%"), 1), (of_share(4, 1, over=3), 4)]
BROKEN = [
    (of_share(3, 2), "number 3 of policy p where 2 may be"),
    (of_share(3, "59%"), "number 3 of policy p where 2 may be"),  # 2.95 nodes
    (of_share(1, 2, mode="DryRun"), "for policy p, which asks for none"),
]


@histories("checks", HOLDS)
def test_tests_within_the_share_keep_the_promise(history: History, checks: int) -> None:
    holds("I1", history, checks)


@histories("text", BROKEN)
def test_one_test_more_than_the_share_breaks_the_promise(history: History, text: str) -> None:
    breaks("I1", history, text)
