"""I4: a start that ends no more than its policy lets end is counted, and the contrary reported."""

from typing import Any

import pytest

from tests.remediator_sim.invariants.histories import breaks, holds
from tests.remediator_sim.invariants.recording import Recording, tried

BEGUN, SEEN = "2026-01-01T08:00:00Z", "2026-01-01T11:59:00Z"
WHILE = 310  # seconds: by then every look that counts has shown what stands from the begin


def _pod(recording: Recording, name: str, node: str, gang: str = "", notes: dict[str, str] | None = None) -> None:
    """One Pod with two GPUs, which has run for four hours."""
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    labels = {"jobset.sigs.k8s.io/jobset-name": gang} if gang else {}
    head = {"name": name, "uid": f"uid-{name}", "namespace": "default", "labels": labels, "annotations": notes or {}}
    spec = {"nodeName": node, "containers": [container]}
    status = {"phase": "Running", "startTime": BEGUN}
    recording.write("pods", name, metadata=head | {"creationTimestamp": BEGUN}, spec=spec, status=status)


def _fleet(recording: Recording, **limit: Any) -> None:
    """Two Pods of one gang and one alone on n1, one of the gang on n2; a case of n1, and a look long enough ago."""
    recording.policy(maxBlastRadius=limit or None)
    recording.node("n1")
    recording.node("n2")
    for name, node, gang in (("a-1", "n1", "a"), ("a-2", "n1", "a"), ("a-3", "n2", "a"), ("alone", "n1", "")):
        _pod(recording, name, node, gang)
    recording.case("c", "n1", "Held")


def _taken(recording: Recording, **limit: Any) -> None:
    _fleet(recording, **limit)
    recording.later(WHILE)
    recording.taint("n1", "c")


def _approve(recording: Recording, approved: bool | None) -> None:
    recording.write("noderemediations.remediator.dev", "c", spec={"approved": approved})


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        ({"jobs": 1}, "ends at least 2 jobs on n1, where 1 may end"),
        ({"jobs": 0, "gpuHours": 99}, "ends at least 2 jobs on n1, where 0 may end"),
        ({"gpuHours": 31}, "ends at least 32.0 GPU-hours of n1, where 31 may end"),
    ],
)
def test_a_claim_that_ends_more_is_reported(limit, text):
    breaks("I4", lambda recording: _taken(recording, **limit), text)


@pytest.mark.parametrize("limit", [{"jobs": 2}, {"gpuHours": 33}, {"jobs": 2, "gpuHours": 40}])
def test_a_claim_that_ends_as_much_as_may_end_is_counted(limit):
    holds("I4", lambda recording: _taken(recording, **limit), 1)


def test_without_a_limit_and_after_an_approval_nothing_is_counted():
    def approved(recording: Recording) -> None:
        _fleet(recording, jobs=0)
        _approve(recording, True)
        recording.later(WHILE)
        recording.taint("n1", "c")

    holds("I4", _taken, 0)
    holds("I4", approved, 0)


def test_an_approval_that_was_taken_back_counts_no_more_once_everybody_has_heard_of_that():
    def taken_back(recording: Recording) -> None:
        _fleet(recording, jobs=0)
        _approve(recording, True)
        _approve(recording, None)
        recording.later(WHILE)
        recording.taint("n1", "c")

    breaks("I4", taken_back, "where 0 may end")


def test_what_has_come_since_the_look_may_not_be_known():
    def new_pod(recording: Recording) -> None:
        _fleet(recording, jobs=2)
        recording.later(WHILE)
        _pod(recording, "new", "n1")
        recording.later(200)
        recording.taint("n1", "c")

    holds("I4", new_pod, 1)


def test_only_the_work_since_a_checkpoint_of_all_is_lost():
    def saved(recording: Recording, done: str) -> None:
        _fleet(recording, gpuHours=20)
        wants = {"remediator.dev/checkpoint": "10m"}
        for name, node in (("a-1", "n1"), ("a-2", "n1"), ("a-3", "n2")):
            notes = wants | ({"remediator.dev/checkpoint-done": done} if name != "a-3" or done > BEGUN else {})
            _pod(recording, name, node, "a", notes)
        recording.later(WHILE)
        recording.taint("n1", "c")

    holds("I4", lambda recording: saved(recording, "2026-01-01T11:00:00Z"), 1)
    breaks("I4", lambda recording: saved(recording, BEGUN), "ends at least 32.0 GPU-hours")


def _begun(recording: Recording, **status: Any) -> None:
    _fleet(recording, jobs=2)
    recording.case("c", "n1", "Held", startedAt=True)
    recording.later(WHILE)
    recording.case("c", "n1", "Draining", attempts=tried("reset-1", outcome=""), **status)


def test_an_attempt_that_nobody_has_looked_for_and_one_of_which_nobody_can_tell_are_reported():
    unknown = {"at": SEEN, "unknown": "Pods could not be listed"}
    breaks("I4", _begun, "nobody had looked at what it ends")
    breaks("I4", lambda recording: _begun(recording, blastRadius=unknown), "nobody could tell what it ends: Pods could")


def test_an_attempt_after_a_look_is_counted():
    without, after = Recording(), Recording()
    _begun(without)
    _begun(after, blastRadius={"at": SEEN, "jobs": 2})
    assert len(without.found("I4").broken) == len(after.found("I4").broken) + 1 == 1


def test_a_case_that_is_held_for_what_it_would_end_may_wait():
    recording = Recording()
    _fleet(recording, jobs=0)
    block = {"reason": "BlastRadius", "message": "2 jobs"}
    recording.case("c", "n1", "Draining", startedAt=True, blockedBy=[block])
    recording.later(20)
    recording.end()
    assert recording.found("I5").broken == ()
