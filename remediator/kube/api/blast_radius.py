"""What the repair of a node would end, and how much a policy lets it end."""

from typing import Annotated

from msgspec import Meta

from remediator.kube.api.common import Base, Count, Message, Rule, Time, doc, rules


class MaxBlastRadius(Base, frozen=True, kw_only=True):
    """What one start may end at most; a case that would end more waits for an approval."""

    jobs: Annotated[
        Count | None,
        doc("Most jobs that a start may end: those that hold GPUs and have a Pod on the node. Default: any number."),
    ] = None
    gpu_hours: Annotated[
        Count | None,
        doc(
            "Most GPU-hours that may be lost: the GPUs of each of these jobs on all nodes, times the hours since its "
            "start, or since its last checkpoint where its Pods say so. Default: any number."
        ),
    ] = None


LIMIT = rules(Rule("has(self.jobs) || has(self.gpuHours)", "give jobs, gpuHours or both"))


MOST = 10**12  # far above any real number; a status with more than an int64 holds would be refused as a whole
Number = Annotated[int, Meta(ge=0, le=MOST)]


class JobAtStake(Base, frozen=True, kw_only=True):
    """One job with Pods on the node."""

    kind: Annotated[str, Meta(max_length=63), doc("What it is: JobSet, Job, RayCluster; Pod for one that is alone.")]
    namespace: Annotated[str, Meta(max_length=63), doc("Its namespace.")]
    name: Annotated[str, Meta(max_length=253), doc("Its name.")]
    gpus_on_node: Annotated[Number, doc("GPUs that it holds on the node.")] = 0
    gpus: Annotated[Number, doc("GPUs that it holds on all nodes.")] = 0
    since: Annotated[
        Time | None, doc("Work since this time would be lost: its start or last checkpoint. Absent: no work is lost.")
    ] = None
    gpu_hours: Annotated[Number, doc("GPU-hours since then, rounded up.")] = 0


class BlastRadius(Base, frozen=True, kw_only=True):
    """What a look at the node has shown before the last start that ended something."""

    at: Annotated[Time, doc("When somebody looked.")]
    unknown: Annotated[Message, doc("Why nobody can tell; then the numbers are absent.")] = ""
    pods: Annotated[Number, doc("Pods with GPUs on the node.")] = 0
    gpus_on_node: Annotated[Number, doc("GPUs that they hold.")] = 0
    jobs: Annotated[Number, doc("Jobs that these Pods belong to.")] = 0
    gpus: Annotated[Number, doc("GPUs that these jobs hold on all nodes.")] = 0
    gpu_hours: Annotated[Number, doc("GPU-hours that would be lost, rounded up.")] = 0
    largest: Annotated[
        tuple[JobAtStake, ...],
        Meta(max_length=8),
        doc("The jobs with the most GPU-hours.", x_kubernetes_list_type="atomic"),
    ] = ()
