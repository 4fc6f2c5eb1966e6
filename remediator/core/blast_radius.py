"""What the repair of a node would end: jobs, and the GPU-hours that they have worked since they began or saved it."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import NamedTuple

from remediator.core import gates
from remediator.core.case import Block, Case
from remediator.core.guard import block
from remediator.core.job import ALONE, BATCH, GROUP, Job
from remediator.core.jobs_at_stake import BlastRadius, JobAtStake
from remediator.core.policy import BlastLimit, Policy, Urgency
from remediator.core.reasons import Reason
from remediator.core.spare import MOST_OF_ONE_NODE
from remediator.core.user_pod import UserPod, at_work

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
IN_STATUS, IN_MESSAGE = 8, 3  # that a status, and the text of a hold, name; the largest
VALID, VALID_UNKNOWN = timedelta(minutes=5), timedelta(seconds=30)  # how long a look at a node may be used
UNCOUNTED = (
    "the GPUs of Pod {} cannot be counted (it has resource claims of DRA, or asks for a number that cannot be read); "
    "under a policy with a limit each case on such a node waits for an approval"
)
SERVING = ("ReplicaSet", "StatefulSet")  # controllers whose Pods go on for ever
SHOWN_FOR = timedelta(hours=1)  # the same jobs are shown with the GPU-hours of then for so long


@dataclass(frozen=True, slots=True)
class WorkingPod:
    """One Pod, and the job that would lose its work. `gpus` None: nobody can count what it asks for.

    `started` None: it has not begun, and has no work to lose. `saves`: it asks to be told before it is evicted;
    `saved`: when it was ready last.
    """

    pod: UserPod
    uid: str
    node: str
    job: Job
    gpus: int | None = 0
    started: datetime | None = None
    saves: bool = False
    saved: datetime | None = None


def blast_radius(
    node: str, pods: Iterable[WorkingPod], operations_namespace: str, now: datetime, doubt: str = ""
) -> BlastRadius:
    """What would end with the work on a node, as if no Pod of it could stay.

    Args:
        node: The node.
        pods: Those of the node, and all of the jobs that have one there; one may be given twice.
        operations_namespace: Where our own Pods run.
        now: Aware UTC.
        doubt: Why not all Pods are known; then nothing is.

    Returns:
        The jobs that hold GPUs, those with the most GPU-hours first, ties by name.
    """
    known = {pod.uid: pod for pod in pods if _counts(pod, operations_namespace, now)}
    here = {pod.job for pod in known.values() if pod.node == node}
    members: defaultdict[Job, list[WorkingPod]] = defaultdict(list)
    for pod in known.values():
        if pod.job in here:
            members[pod.job].append(pod)
    uncounted = [pod.pod for job in here for pod in members[job] if pod.gpus is None]
    if uncounted and not doubt:
        names = (f"{pod.namespace}/{pod.name}" for pod in uncounted)
        doubt = UNCOUNTED.format(min(names))
    if doubt:
        return BlastRadius(now, unknown=doubt)
    jobs = [_at_stake(job, node, each, now) for job, each in members.items() if any(pod.gpus for pod in each)]
    jobs.sort(key=lambda job: (-job.gpu_hours, -job.gpus, str(job)))
    exact = sum(_hours(job.gpus, job.since, now) for job in jobs)
    return BlastRadius(
        now,
        tuple(jobs[:IN_STATUS]),
        len(jobs),
        sum(pod.node == node and bool(pod.gpus) for pod in known.values()),
        sum(job.here for job in jobs),
        sum(job.gpus for job in jobs),
        ceil(exact),
    )


def _counts(pod: WorkingPod, operations_namespace: str, now: datetime) -> bool:
    return bool(pod.node) and pod.started is not None and at_work(pod.pod, operations_namespace, now)


def spread(pods: Iterable[WorkingPod], operations_namespace: str, now: datetime) -> set[Job]:
    """The jobs of the Pods of a node that may have Pods with GPUs elsewhere."""
    return {pod.job for pod in pods if _counts(pod, operations_namespace, now) and not _no_gpus_elsewhere(pod)}


def _no_gpus_elsewhere(pod: WorkingPod) -> bool:
    """All Pods of a batch Job are alike: where one holds no GPUs, none does."""
    return pod.job.kind == ALONE or (pod.job.kind == pod.pod.owner == BATCH and pod.gpus == 0)


def _held(pod: WorkingPod) -> int:
    """The GPUs that count: a Pod may ask for any number, and no node has more than these."""
    return min(pod.gpus or 0, MOST_OF_ONE_NODE)


def _at_stake(job: Job, node: str, pods: Sequence[WorkingPod], now: datetime) -> JobAtStake:
    gpus, since = sum(map(_held, pods)), _since(pods, now)
    here = sum(_held(pod) for pod in pods if pod.node == node)
    return JobAtStake(job.kind, job.namespace, job.name, here, gpus, since, ceil(_hours(gpus, since, now)))


def _since(pods: Sequence[WorkingPod], now: datetime) -> datetime | None:
    """From when on the work of a job would be lost: its begin, or the checkpoint that all who save have reached.

    A time that is still to come is none. What serves requests loses none of its work: another Pod takes its place.
    """
    pods = [pod for pod in pods if not _serves(pod)]
    begun = min((pod.started for pod in pods if pod.started is not None), default=None)
    saved = [pod.saved if pod.saved is not None and pod.saved <= now else None for pod in pods if pod.saves]
    safe = min((each for each in saved if each is not None), default=None) if None not in saved else None
    return max(begun, safe) if begun is not None and safe is not None else begun


def _serves(pod: WorkingPod) -> bool:
    """Whether a Pod is of a Deployment or a StatefulSet, and has no work of its own to lose.

    Pods of a gang and Pods that ask for checkpoints have some. A LeaderWorkerSet is one server on several nodes.
    """
    return pod.pod.owner in SERVING and pod.job.kind in (ALONE, GROUP) and not pod.saves


def _hours(gpus: int, since: datetime | None, now: datetime) -> float:
    return gpus * max(0.0, (now - since).total_seconds()) / 3600 if since is not None else 0.0


def usable(seen: BlastRadius | None, claimed: datetime | None, now: datetime) -> bool:
    """Whether something may begin on what a look at the node has shown; one from the future is no look.

    On a claimed node only on one since then: before, new Pods may have come. A claim from the future says nothing: the
    clock of who led before was ahead.
    """
    if seen is None or (claimed is not None and seen.at < claimed <= now):
        return False
    return timedelta(0) <= now - seen.at < (VALID_UNKNOWN if seen.unknown else VALID)


def exceeds(seen: BlastRadius, limit: BlastLimit) -> bool:
    """Whether more would end than a policy lets end, or nobody can tell."""
    jobs, hours = limit.jobs, limit.gpu_hours
    over = (jobs is not None and seen.count > jobs) or (hours is not None and seen.gpu_hours > hours)
    return bool(seen.unknown) or over


def shown(before: BlastRadius | None, seen: BlastRadius | None, limit: BlastLimit | None = None) -> BlastRadius | None:
    """What a status says: the older of two looks for an hour, unless the newer shows other jobs, or crosses a limit.

    Each minute adds GPU-hours; the statuses and issues of waiting cases are not written anew for that.
    """
    if before is None or seen is None:
        return seen or before
    crossed = limit is not None and exceeds(before, limit) != exceeds(seen, limit)
    same = _work(before) == _work(seen) and timedelta(0) <= seen.at - before.at < SHOWN_FOR
    return before if same and not crossed else seen


def _work(radius: BlastRadius) -> BlastRadius:
    """A radius without what changes as time goes."""
    return replace(radius, at=EPOCH, gpu_hours=0, jobs=tuple(replace(job, gpu_hours=0) for job in radius.jobs))


class RadiusVerdict(NamedTuple):
    """What a blast radius says of a start: what holds it, and whether somebody must look at the node (again).

    Nothing and a look: it is decided when somebody has looked. `shown` is what the case says meanwhile.
    """

    blocks: tuple[Block, ...]
    look: bool
    shown: BlastRadius | None


def concerns(blocks: Sequence[Block]) -> bool:
    """Whether a case that these hold is shown what would end: nothing else holds it than a person who decides."""
    return all(block.reason is Reason.APPROVAL_NEEDED for block in blocks)


def wanted(case: Case, policy: Policy | None, attempt: bool) -> bool:
    """Whether somebody looks what would end before this case starts: `attempt`, or the claim of its node.

    A claim disturbs nothing by itself: it waits for a look only where that may hold it, or a person decides about it.
    """
    if policy is None or policy.urgency is Urgency.NEVER:
        return False
    limited = policy.max_blast_radius is not None and not case.approved
    return attempt or limited or gates.unapproved(case, policy)


def verdict(case: Case, limit: BlastLimit | None, seen: BlastRadius | None, now: datetime) -> RadiusVerdict:
    """Whether a case may start. What held it goes on holding it until a newer look says something else."""
    radius = shown(case.blast, seen, limit)
    blocks: tuple[Block, ...] = ()
    if radius is not None and seen is not None and limit is not None and not case.approved and exceeds(seen, limit):
        blocks = _hold(radius, limit)
    return RadiusVerdict(blocks, not usable(seen, case.started, now), radius)


def _hold(radius: BlastRadius, limit: BlastLimit) -> tuple[Block, ...]:
    if radius.unknown:
        return (block(Reason.BLAST_RADIUS_UNKNOWN, f"nobody can tell what would end: {radius.unknown}"),)
    most = [_count(limit.jobs, "job")] if limit.jobs is not None else []
    most += [_count(limit.gpu_hours, "GPU-hour")] if limit.gpu_hours is not None else []
    message = f"{described(radius, IN_MESSAGE)}; the policy lets at most {' and '.join(most)} end"
    return (block(Reason.BLAST_RADIUS, message),)


def described(radius: BlastRadius, named: int = IN_STATUS) -> str:
    """What would end, in one sentence, the so many largest jobs by name."""
    if radius.unknown:
        return f"unknown: {radius.unknown}"
    if not radius.count:
        return "no job with GPUs"
    total = f"{_count(radius.count, 'job')} on {_count(radius.gpus, 'GPU')}, {_count(radius.gpu_hours, 'GPU-hour')}"
    jobs = [_job(job) for job in radius.jobs[:named]]
    more = [f"and {radius.count - len(jobs)} more"] if radius.count > len(jobs) else []
    return f"{total} ({'; '.join([*jobs, *more])})"


def _job(job: JobAtStake) -> str:
    since = f"since {job.since:%Y-%m-%d %H:%M} UTC" if job.since else "no work is lost"
    return f"{job}: {job.here} of its {_count(job.gpus, 'GPU')} here, {since}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def of_start(case: Case, seen: BlastRadius | None) -> BlastRadius | None:
    """What a case keeps when an attempt begins: what earlier ones have ended stays, also when nothing is left."""
    nothing = seen is None or not (seen.count or seen.unknown)
    return case.blast if seen is None or (case.attempts and case.blast is not None and nothing) else seen
