"""I6 and I3 of jobs: who wants a checkpoint is asked and waited for, gangs go together, and Slurm has answered."""

import pytest

from remediator_sim.invariants import checker, jobs, table
from tests.remediator_sim.invariants.histories import History, breaks, histories, holds
from tests.remediator_sim.invariants.recording import Recording

NOON, REQUESTED, DONE = "2026-01-01T12:00:00Z", "remediator.dev/checkpoint-requested", "remediator.dev/checkpoint-done"
GONE = {"deletionTimestamp": "2026-01-01T13:00:00Z"}
JOBSET = {"jobset.sigs.k8s.io/jobset-name": "job-7"}


def drained(recording: Recording) -> None:
    """A drain of ours runs on n1 for an operation that was made at noon."""
    recording.node("n1")
    recording.case("a", "n1", "Draining", startedAt=True)
    made = {"name": "op", "uid": "uid-op", "creationTimestamp": NOON}
    spec = {"caseUID": "uid-a", "templateName": "reboot", "nodeName": "n1"}
    recording.write("nodeoperations.remediator.dev", "op", metadata=made, spec=spec, status={"drainStartedAt": NOON})
    recording.pod("drain-1", "op", "drain")
    env = [{"name": "NODE_NAME", "value": "n1"}]
    meta = {"creationTimestamp": NOON}
    spec = {"containers": [{"env": env}], "activeDeadlineSeconds": 1860}
    recording.write("pods", "drain-1", metadata=meta, spec=spec, status={"phase": "Running"})


def work(recording: Recording, name: str, **notes: str) -> None:
    notes = {"remediator.dev/evict": "true", **notes}  # nothing makes it again, and its owner lets it go
    recording.write(
        "pods",
        name,
        "default",
        metadata={"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": JOBSET, "annotations": notes},
        spec={"nodeName": "n1"},
        status={"phase": "Running"},
    )


def evicted(after: int = 0, wanted: str = "10m", **notes: str) -> History:
    """A Pod that wants a checkpoint and has these other annotations is evicted so many seconds later."""

    def write(recording: Recording) -> None:
        drained(recording)
        work(recording, "t", **({"remediator.dev/checkpoint": wanted} if wanted else {}), **notes)
        recording.later(after)
        recording.write("pods", "t", metadata=GONE)

    return write


def gang(seconds: int, *, by: str = "drain-1") -> History:
    """Two Pods of a gang are evicted, the second one so many seconds later, when the drain Pod has this name."""

    def write(recording: Recording) -> None:
        drained(recording)
        for name in ("t", "u"):
            work(recording, name)
        recording.write("pods", "t", metadata=GONE)
        if by != "drain-1":
            recording.remove("pods", "drain-1")
            recording.pod(by, "op", "drain")
            env = [{"name": "NODE_NAME", "value": "n1"}]
            recording.write("pods", by, spec={"containers": [{"env": env}]}, status={"phase": "Running"})
        recording.later(seconds)
        recording.write("pods", "u", metadata=GONE)

    return write


def handed_over(status: str, since: str, heartbeat: str = NOON) -> History:
    """The intent is written after a drain that was asked for at noon, and this is what the Condition says."""

    def write(recording: Recording) -> None:
        recording.node("n1")
        drain = {"strategy": "External", "condition": "SlurmDrained"}
        recording.write("nodeoperationtemplates.remediator.dev", "reboot", spec={"drain": drain})
        times = {"lastTransitionTime": since, "lastHeartbeatTime": heartbeat}
        recording.write("nodes", "n1", status={"conditions": [{"type": "SlurmDrained", "status": status} | times]})
        recording.later(5)
        recording.operation("op", "a", drainStartedAt="2026-01-01T12:00:01Z")
        recording.operation("op", "a", intent={"bootID": "boot-1", "at": NOON})

    return write


ASKED = {REQUESTED: NOON}
HOLDS = [
    (evicted(wanted=""), 0),
    (evicted(5, **ASKED, **{DONE: "2026-01-01T12:00:03Z"}), 1),
    (evicted(31, "30s", **ASKED), 1),
    (gang(25), 1),
    (gang(40, by="drain-2"), 0),
]
BREAKS = [
    (evicted(), "Pod default/t was evicted at 12:00:00, and wants a checkpoint: op had not asked it"),
    (evicted(5, **{REQUESTED: "2026-01-01T11:00:00Z"}), "op had not asked it"),
    (evicted(20, "30s", **ASKED), "it was asked at 12:00:00 and has not answered"),
    (evicted(5, **ASKED, **{DONE: "2026-01-01T11:59:59Z"}), "has not answered"),
    (evicted(500, "soon", **ASKED), "has not answered"),
    (gang(40), "Pod default/u of job-7 was evicted at 12:00:41, the first one at 12:00:00"),
]


@histories("checks", HOLDS)
def test_the_wishes_of_jobs_are_kept(history: History, checks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = [row for row in table.CHECKS if row.check in (jobs.asked_before, jobs.together)]
    monkeypatch.setattr(checker, "CHECKS", mine)
    holds("I6", history, checks)


@pytest.mark.timeout(60)
@histories("text", BREAKS)
def test_a_job_that_is_broken_is_reported(history: History, text: str) -> None:
    breaks("I6", history, text)


def test_an_intent_without_an_answer_of_the_other_system_is_reported() -> None:
    breaks("I3", handed_over("True", NOON), "the intent of op was written, and no SlurmDrained answers 12:00:01")
    breaks("I3", handed_over("False", "2026-01-01T12:00:03Z"), "no SlurmDrained answers")


@pytest.mark.parametrize("seen", [("2026-01-01T12:00:03Z", NOON), (NOON, "2026-01-01T12:00:03Z")])
def test_an_answer_is_a_transition_or_a_heartbeat_since_the_request(seen: tuple[str, str]) -> None:
    recording = Recording()
    handed_over("True", *seen)(recording)
    assert not any("SlurmDrained" in sentence for sentence in recording.found("I3").broken)
