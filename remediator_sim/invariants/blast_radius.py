"""I4: where a policy has `maxBlastRadius`, nothing starts that would end more, or nobody knows what, unapproved."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from remediator_sim.invariants import contract, disturbances, gates, spare
from remediator_sim.invariants.contract import CASES, PODS, Obj, clock, moment, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.jobs import DONE, JOBSET, WANTED
from remediator_sim.invariants.results import HELD
from remediator_sim.invariants.tracked import Tracked

LOOKED = timedelta(minutes=5)  # so long what a look at a node has shown is believed


class JobAtRisk(NamedTuple):
    """What would end of one job at least: its GPUs, and since when its work would be lost."""

    gpus: int
    since: datetime


def claimed(history: History, event: Event) -> Iterator[str]:
    """A node was written. Counts each claim under such a policy: not more would end than it allows."""
    for uid, what in disturbances.claims(event):
        tracked = history.tracked.get(uid)
        if tracked is not None and tracked.kind == CASES and _limit(history, tracked.last):
            yield _too_much(history, tracked.last, what) or HELD


def begins(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each new attempt under such a policy: the same, and somebody had looked."""
    for _, what in disturbances.starts(event) if _limit(history, event.obj) else ():
        yield _too_much(history, event.obj, what) or _unseen(history, event, what) or HELD


def _limit(history: History, case: Obj) -> Obj:
    """What a policy lets a start of this case end at most; nothing where a person has approved it, or edited that."""
    policy, tracked = history.policy(case), history.tracked[contract.uid(case)]
    approved = tracked.approved is not None and history.at - tracked.approved <= history.limits.grace
    if policy is None or approved or history.lately_edited(contract.name(policy)):
        return {}
    limit: Obj = {} if part(case, "spec").get("approved") is True else part(policy, "spec", "maxBlastRadius")
    return limit


def _too_much(history: History, case: Obj, what: str) -> str:
    """What is wrong with a start for the work that it ends, "" for nothing."""
    node, limit = case["spec"]["nodeName"], _limit(history, case)
    jobs, hours = _at_stake(history, node)
    sentence = f"{what} at {clock(history.at)}, and ends at least"
    if jobs > limit.get("jobs", jobs):
        return f"{sentence} {jobs} jobs on {node}, where {limit['jobs']} may end"
    if hours > limit.get("gpuHours", hours):
        return f"{sentence} {hours:.1f} GPU-hours of {node}, where {limit['gpuHours']} may end"
    return ""


def _unseen(history: History, event: Event, what: str) -> str:
    """What is wrong with the look that the first attempt of a case was begun on, "" for nothing."""
    seen = part(event.new, "status", "blastRadius")
    sentence = f"{what} at {clock(history.at)}"
    if not seen:
        return f"{sentence}, and nobody had looked at what it ends"
    if not contract.attempts(event.old) and seen.get("unknown"):
        return f"{sentence} though nobody could tell what it ends: {seen['unknown']}"
    return ""


def _at_stake(history: History, node: str) -> tuple[int, float]:
    """How many jobs with GPUs, and how many GPU-hours of theirs, a look at a node must have shown at least."""
    unsure = history.limits.grace + history.limits.clocks
    heard = history.at - LOOKED - unsure
    members: defaultdict[tuple[str, str], list[Tracked]] = defaultdict(list)
    for tracked in history.tracked.values():
        if tracked.kind == PODS and (tracked.gone is None or tracked.gone > heard):
            members[_job_of(tracked.last)].append(tracked)
    seen = {job: [pod.last for pod in pods if _seen(history, pod, heard, unsure)] for job, pods in members.items()}
    jobs = [_job([pod.last for pod in pods], seen[job], node) for job, pods in members.items()]
    known = [job for job in jobs if job is not None]
    hours = (job.gpus * max(timedelta(0), heard - job.since) / timedelta(hours=1) for job in known)
    return len(known), sum(hours)


def _seen(history: History, pod: Tracked, heard: datetime, unsure: timedelta) -> bool:
    """Whether each look since a time has shown that a Pod works."""
    started = part(pod.last, "status").get("startTime")
    works = gates.works(pod.last, part(pod.last, "spec").get("nodeName", ""), history.at, unsure)
    return works and pod.gone is None and bool(started) and max(moment(started), pod.made) <= heard


def _job_of(pod: Obj) -> tuple[str, str]:
    meta = part(pod, "metadata")
    gang = part(meta, "labels").get(JOBSET)
    return meta.get("namespace", ""), f"gang {gang}" if gang else str(meta["name"])


def _job(lately: list[Obj], seen: list[Obj], node: str) -> JobAtRisk | None:
    """A job by its Pods of lately, and by those that each look has `seen`; None where these hold no GPUs here."""
    gpus = sum(map(spare.gpus_of, seen))
    if not gpus or not any(part(pod, "spec").get("nodeName") == node for pod in seen):
        return None
    begun = min(moment(part(pod, "status")["startTime"]) for pod in seen)
    unsaved = any(_saves(pod) and not _saved([pod]) for pod in seen)
    return JobAtRisk(gpus, begun if unsaved else max([begun, *_saved(lately)[:1]]))


def _saves(pod: Obj) -> bool:
    return str(part(pod, "metadata", "annotations").get(WANTED, "0")) != "0"


def _saved(pods: Iterable[Obj]) -> list[datetime]:
    """When the Pods that want checkpoints have saved their work, the oldest first."""
    notes = (part(pod, "metadata", "annotations") for pod in pods if _saves(pod))
    return sorted(moment(note[DONE]) for note in notes if note.get(DONE))
