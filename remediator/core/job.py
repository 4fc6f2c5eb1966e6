"""Which job a Pod belongs to: what is lost as a whole when one of its Pods ends. A Pod without one is a job of its own.

The labels are those by which a drain lets gangs go together (nodelib/k8s/gangs.py), and the Jobs of Kubernetes: whether
the Pods of a Job need each other no field tells, so that all of it counts as lost.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

OWN = "remediator.dev/gang"  # any name; "false": the Pod is a job of its own, whatever other labels say
GROUP = "LeaderWorkerSet"
GANGS = (
    (OWN, "gang"),
    ("jobset.sigs.k8s.io/jobset-name", "JobSet"),
    ("leaderworkerset.sigs.k8s.io/group-key", GROUP),
    ("training.kubeflow.org/job-name", "training job"),
    ("volcano.sh/job-name", "Volcano job"),
    ("ray.io/cluster", "RayCluster"),
    ("scheduling.x-k8s.io/pod-group", "PodGroup"),
    ("kueue.x-k8s.io/pod-group-name", "Kueue group"),
)
VOLCANO, VOLCANO_OWN = "scheduling.k8s.io/group-name", "podgroup-"  # the annotation, and groups that say nothing
BATCH = "Job"  # the kind of a Job of Kubernetes
JOBS = (("batch.kubernetes.io/job-name", BATCH), ("job-name", BATCH))
_NAME = re.compile(r"[-A-Za-z0-9_.]{1,253}", re.ASCII)  # labels and names are like that; an annotation may be anything
ALONE = "Pod"  # the kind of what is no part of anything


class Job(NamedTuple):
    """One job. `label`: the label whose value is `name` on all of its Pods; "" where none is."""

    kind: str
    namespace: str
    name: str
    label: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def is_gang(job: Job) -> bool:
    """Whether its Pods need each other: of a Job of Kubernetes no field tells, and a Pod of no job has nobody."""
    return job.kind not in (ALONE, BATCH)


def job_of(
    namespace: str, name: str, labels: Mapping[str, str], annotations: Mapping[str, str], group: str = ""
) -> Job:
    """The job of the Pod of this name; of two that it names, the larger one. `group`: the PodGroup of its spec."""
    if labels.get(OWN) == "false":
        return Job(ALONE, namespace, name)
    named = [Job(kind, namespace, labels[label], label) for label, kind in GANGS if labels.get(label)]
    volcano = annotations.get(VOLCANO, "")
    if _NAME.fullmatch(volcano) and not volcano.startswith(VOLCANO_OWN):
        named.append(Job("Volcano group", namespace, volcano))
    if group:
        named.append(Job("PodGroup", namespace, group))
    named += [Job(kind, namespace, labels[label], label) for label, kind in JOBS if labels.get(label)]
    return named[0] if named else Job(ALONE, namespace, name)
