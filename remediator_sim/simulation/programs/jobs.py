"""What the model of the drain knows of jobs: which Pods go together, and what they say of a checkpoint."""

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from remediator_sim.plain import Object
from remediator_sim.simulation.clock import true_time
from remediator_sim.simulation.programs.api import part

GANG = "remediator.dev/gang"
LABELS = (
    GANG,
    "jobset.sigs.k8s.io/jobset-name",
    "leaderworkerset.sigs.k8s.io/group-key",
    "training.kubeflow.org/job-name",
    "volcano.sh/job-name",
    "ray.io/cluster",
    "scheduling.x-k8s.io/pod-group",
    "kueue.x-k8s.io/pod-group-name",
)
VOLCANO = "scheduling.k8s.io/group-name"
WANTED, REQUESTED, DONE = (f"remediator.dev/checkpoint{word}" for word in ("", "-requested", "-done"))
LONGEST, USUAL = 3600.0, 600.0  # seconds that are waited for at most, and where nobody can read how long


def gang_of(pod: Object) -> tuple[str, ...]:
    """What the Pod says of its gang, () for none."""
    labels, space = part(pod, "metadata", "labels"), pod["metadata"]["namespace"]
    if labels.get(GANG) == "false":
        return ()
    named = next(((label, labels[label]) for label in LABELS if labels.get(label)), None)
    volcano = part(pod, "metadata", "annotations").get(VOLCANO, "")
    if named is None and volcano and not volcano.startswith("podgroup-"):
        named = (VOLCANO, volcano)
    return (space, *named) if named else ()


def group_of(pod: Object) -> str:
    """The PodGroup of Kubernetes that may make a gang of it, "" where none can."""
    named = part(pod, "spec", "schedulingGroup").get("podGroupName", "")
    opted_out = part(pod, "metadata", "labels").get(GANG) == "false"
    return "" if opted_out else str(named)


class Checkpoint(NamedTuple):
    """What a Pod says of its checkpoint."""

    wanted: timedelta
    requested: datetime | None
    done: datetime | None

    def asked(self, since: datetime) -> bool:
        """Whether it was asked for since then."""
        return self.requested is not None and since <= self.requested <= true_time() + timedelta(minutes=1)

    def over(self) -> bool:
        """Whether one that was asked for need not be waited for any longer."""
        assert self.requested is not None
        return (self.done is not None and self.done >= self.requested) or true_time() >= self.requested + self.wanted

    def left(self) -> float:
        """Seconds until one that was asked for need not be waited for, whatever the Pod says."""
        assert self.requested is not None
        return (self.requested + self.wanted - true_time()).total_seconds()


def checkpoint_of(pod: Object) -> Checkpoint | None:
    """What a Pod says of its checkpoint, None where it wants none."""
    notes = part(pod, "metadata", "annotations")
    seconds = _seconds(notes[WANTED]) if WANTED in notes else 0.0
    if not seconds or part(pod, "status").get("phase") != "Running":
        return None
    return Checkpoint(timedelta(seconds=seconds), _time(notes.get(REQUESTED)), _time(notes.get(DONE)))


def _seconds(text: str) -> float:
    if text == "0":
        return 0.0
    if not re.fullmatch(r"(\d{1,9}[hms])+", text):
        return USUAL
    units = {"h": 3600, "m": 60, "s": 1}
    return min(LONGEST, float(sum(int(count) * units[unit] for count, unit in re.findall(r"(\d+)([hms])", text))))


def _time(text: str | None) -> datetime | None:
    try:
        read = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)
