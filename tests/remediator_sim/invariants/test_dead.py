"""A silent kubelet and Pods that never started: histories that keep the promises are counted, others are reported."""

import pytest

from remediator_sim.invariants.contract import CASES, NODES, PODS
from remediator_sim.invariants.event import RENEWED
from tests.remediator_sim.invariants.histories import BOOT, History, breaks, histories, holds
from tests.remediator_sim.invariants.recording import Recording, tried


def _begun(recording: Recording, where: str) -> None:
    """A case about a silent kubelet makes its first Pod on this node."""
    recording.policy(when=[{"condition": "Ready", "status": "Unknown", "for": "0s"}])
    recording.node("n1", "", ready="Unknown")
    recording.case("a", "n1", "Draining", attempts=tried("reset-1", outcome=""))
    recording.operation("reset-1", "a", intent=BOOT)
    recording.pod("pod-1", "reset-1", "power-cycle")
    pod = recording.stored.pop((PODS, "pod-1"))
    recording.write(
        PODS, "pod-2", metadata=pod["metadata"] | {"name": "pod-2", "uid": "2"}, spec=pod["spec"] | {"nodeName": where}
    )


def on_another_node(recording: Recording) -> None:
    _begun(recording, "n2")


def on_the_node_itself(recording: Recording) -> None:
    _begun(recording, "n1")


def while_the_lease_is_renewed(recording: Recording) -> None:
    recording.policy(when=[{"condition": "Ready", "status": "Unknown", "for": "0s"}])
    recording.node("n1", "", ready="Unknown")
    recording.hear(RENEWED, {"node": "n1"})
    recording.later(39)
    recording.case("a", "n1", "Draining", attempts=tried("reset-1", outcome=""))


def once_the_lease_has_expired(recording: Recording) -> None:
    recording.policy(when=[{"condition": "Ready", "status": "Unknown", "for": "0s"}])
    recording.node("n1", "", ready="Unknown")
    recording.hear(RENEWED, {"node": "n1"})
    recording.later(41)
    recording.case("a", "n1", "Draining", attempts=tried("reset-1", outcome=""))


@histories(
    "text", [(on_the_node_itself, "on n1, whose kubelet does not report"), (while_the_lease_is_renewed, "renewed")]
)
def test_what_starts_on_a_silent_kubelet_too_early_or_there_is_reported(history: History, text: str) -> None:
    breaks("I3", history, text)


def test_what_runs_elsewhere_once_the_lease_has_expired_is_counted() -> None:
    holds("I3", once_the_lease_has_expired, 2)  # of its zone, too


def _out_of_service(recording: Recording, boot: str) -> None:
    recording.node("n1")
    recording.write(NODES, "n1", metadata={"annotations": {"remediator.dev/out-of-service-boot": boot}})
    recording.later(20)
    recording.end()


def test_a_node_that_runs_again_and_is_still_out_of_service_is_reported() -> None:
    breaks("I5", lambda recording: _out_of_service(recording, "boot-0"), "n1 runs again and is still declared")


FINISHED = {"outcome": "Cancelled", "reason": "ImageNotPulled", "finishedAt": "2026-01-01T12:00:00Z", "rung": 1}


@pytest.mark.parametrize(
    ("second", "text"),
    [
        ({"rung": 2, "startedAt": "2026-01-01T12:10:00Z"}, "after ImageNotPulled, on another rung"),
        ({"rung": 1, "startedAt": "2026-01-01T12:09:00Z"}, "after ImageNotPulled, and only 540 s later"),
    ],
)
def test_a_case_that_climbs_or_does_not_wait_after_a_pod_that_never_started_is_reported(second, text) -> None:
    def climbs(recording: Recording) -> None:
        recording.node("n1")
        recording.case("a", "n1", "Draining", attempts=[{"operation": "reset-1"} | FINISHED])
        attempts = [*recording.stored[CASES, "a"]["status"]["attempts"], {"operation": "reset-2"} | second]
        recording.case("a", phase="Draining", attempts=attempts)

    breaks("I10", climbs, text)
