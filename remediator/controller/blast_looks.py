"""Looks at what runs on nodes before a start ends it, by live lists, a few at once, beside all passes.

Nothing waits here for a look. Whoever needs one sees what is known, and is woken when there is more.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.core.admission import Admission
from remediator.core.blast_radius import RadiusVerdict, WorkingPod, blast_radius, spread, verdict, wanted
from remediator.core.case import Case
from remediator.core.case_table import CaseStep
from remediator.core.job import Job
from remediator.core.jobs_at_stake import BlastRadius
from remediator.core.policy import Policy
from remediator.kube.api.builtin import USER_PODS, on_node
from remediator.kube.api.gpu_pods import RUNNING
from remediator.kube.api.working_pods import POD, working_pod
from remediator.kube.runtime.leader import LeaderQueue
from remediator.kube.wire.client import Client
from remediator.kube.wire.errors import ApiError

log = structlog.get_logger()
AT_ONCE = 4  # looks
UNSEEN = 10.0  # seconds without a look after which nobody waits for it any more
MOST_JOBS, MOST_PODS = 64, 5000  # jobs of one node, and Pods in all lists of a look: with more nobody can tell
AGAIN = "the node is looked at again each minute"
TOO_LATE = (
    f"its Pods were not listed within {UNSEEN:.0f} s; look at the load of the API server: the list counts when it comes"
)
REFUSED = f"look at the API server, and whether the controller may list Pods: {AGAIN}"
MANY_JOBS = f"wait for some to end: {AGAIN}"
MANY_PODS = (
    "wait for some of these jobs to end, or give their Pods a label that names the job where only an annotation or "
    f"a PodGroup does: {AGAIN}"
)
NOBODY_LOOKS = "nobody here looks at nodes"
KEPT = timedelta(hours=1)
TELL = 0.25  # seconds between two times that looks are told of while more of them come


class Looks(Protocol):
    """What an admission pass asks of who looks at nodes."""

    def radius(self, node: str, now: datetime) -> BlastRadius | None:
        """What the last look at a node has shown; None where it is still to come."""

    def forget(self, node: str) -> None:
        """The node was claimed: Pods that came shortly before were perhaps not seen."""

    def want(self, nodes: Iterable[str]) -> None:
        """The admission pass waits for looks at these nodes, and at no others."""

    def give_up_late(self) -> None:
        """Of nodes that have waited too long nobody can tell for now."""


class NobodyLooks:
    """For who asks without a loop that looks: of no node can anybody tell what a start would end."""

    def radius(self, node: str, now: datetime) -> BlastRadius:
        """That nobody can tell."""
        return BlastRadius(now, unknown=NOBODY_LOOKS)

    def forget(self, node: str) -> None:
        """Nothing is known of it."""

    def want(self, nodes: Iterable[str]) -> None:
        """Nobody hears it."""

    def give_up_late(self) -> None:
        """None waits."""


class BlastLooks:
    """Keeps `blast` of the cache up to date for the nodes that an admission pass asks about. Only who leads looks."""

    def __init__(self, cache: ClusterCache, client: Client, clock: Clock, changed: Callable[[], None]) -> None:
        """`changed` is called when there are new looks."""
        self._cache, self._client, self._clock, self._changed = cache, client, clock, changed
        self._wanted: dict[str, float] = {}  # since when, by node
        self._looking: set[str] = set()  # nodes that a look is under way at, unless they were forgotten since
        self._told = 0.0
        self.queue: LeaderQueue[str] = LeaderQueue(
            "blast radius",
            self._look,
            lambda: tuple(self._wanted),
            workers=AT_ONCE,
            essential=False,
            ended=self.clear,
        )

    def clear(self) -> None:
        """Forget everything: another leader looks for itself."""
        self._wanted = {}
        self._looking.clear()
        self._cache.blast.clear()

    def radius(self, node: str, now: datetime) -> BlastRadius | None:
        """What the last look at a node has shown; None where it is still to come."""
        return self._cache.blast.get(node)

    def forget(self, node: str) -> None:
        """The node was claimed: Pods that came shortly before were perhaps not seen."""
        self._wanted.pop(node, None)
        self._looking.discard(node)
        self._cache.blast.pop(node, None)

    def want(self, nodes: Iterable[str]) -> None:
        """The admission pass waits for looks at these nodes, and at no others."""
        since = self._clock.monotonic()
        self._wanted = {node: self._wanted.get(node, since) for node in nodes}
        self.queue.add(*self._wanted)

    def give_up_late(self) -> None:
        """Of nodes that have waited too long nobody can tell for now; what is old is forgotten."""
        now, wall = self._clock.monotonic(), self._clock.now()
        for node, radius in list(self._cache.blast.items()):
            if not timedelta(0) <= wall - radius.at < KEPT:
                del self._cache.blast[node]
        late = [node for node, since in self._wanted.items() if now - since >= UNSEEN]
        for node in late:
            del self._wanted[node]
            self._cache.blast[node] = BlastRadius(wall, unknown=TOO_LATE)

    async def _look(self, node: str) -> None:
        """Look, unless nobody wants to know any more. What comes late counts: the next look would take as long."""
        if node not in self._wanted:
            return
        self._looking.add(node)
        radius = await look(self._client, node, self._cache.namespaces.operations, self._clock.now())
        if node not in self._looking:
            return  # its node was claimed meanwhile
        self._looking.discard(node)
        self._wanted.pop(node, None)
        self._cache.blast[node] = radius
        now = self._clock.monotonic()
        if self.queue.depth == 0 or now - self._told >= TELL:
            self._told = now
            self._changed()


def seen(looks: Looks, case: Case, policy: Policy | None, step: CaseStep, now: datetime) -> RadiusVerdict | None:
    """What is known of the work that a start of this case would end; None where nobody need know."""
    if policy is None or not wanted(case, policy, attempt=step is CaseStep.START):
        return None
    return verdict(case, policy.max_blast_radius, looks.radius(case.node, now), now)


def shown(admission: Admission) -> dict[str, BlastRadius]:
    """What the cases that are held say of it, by their uids."""
    held = ((request.case.uid, request.blast) for request, _ in admission.held)
    return {uid: known.shown for uid, known in held if known is not None and known.shown is not None}


async def look(client: Client, node: str, operations_namespace: str, now: datetime) -> BlastRadius:
    """What the repair of a node would end now. Where a list fails, nobody can tell."""
    lists = _Lists(client)
    try:
        pods = await lists.read(fields=on_node(node))
        pods += await _others(lists, spread(pods, operations_namespace, now))
    except _TooMany as many:
        return blast_radius(node, (), operations_namespace, now, str(many))
    except ApiError as error:
        log.warning("what a start would end is unknown: Pods not listed", node=node, answer=str(error))
        doubt = f"Pods could not be listed: {str(error)[:400]}; {REFUSED}"
        return blast_radius(node, (), operations_namespace, now, doubt)
    return blast_radius(node, pods, operations_namespace, now)


class _TooMany(Exception):
    """More than can be read for one node."""


class _Lists:
    """The lists of one look, and how many Pods they had together."""

    def __init__(self, client: Client) -> None:
        self._client, self._read = client, 0

    async def read(self, namespace: str = "", labels: str = "", fields: str = "") -> list[WorkingPod]:
        """Raises ApiError, or _TooMany."""
        pods: list[WorkingPod] = []
        async for page in self._client.pages(POD, namespace, labels, fields, USER_PODS):
            pods += map(working_pod, page)
            self._read += len(page)
            if self._read > MOST_PODS:
                raise _TooMany(f"more than {MOST_PODS} Pods would have to be read; {MANY_PODS}")
        return pods


async def _others(lists: _Lists, jobs: Collection[Job]) -> list[WorkingPod]:
    """The Pods of these jobs on all nodes."""
    if len(jobs) > MOST_JOBS:
        raise _TooMany(f"{len(jobs)} jobs have Pods on the node, and at most {MOST_JOBS} are looked at; {MANY_JOBS}")
    others: list[WorkingPod] = []
    for namespace, selector in _selectors(jobs):
        others += [pod for pod in await lists.read(namespace, selector, RUNNING) if pod.job in jobs]
    return others


def _selectors(jobs: Iterable[Job]) -> list[tuple[str, str]]:
    """Namespaces and selectors: one for all jobs that one label names, "" where one of a namespace has no label."""
    names: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for job in jobs:
        names[job.namespace, job.label].add(job.name)
    whole = {namespace for namespace, label in names if not label}
    named = {
        (namespace, f"{label} in ({','.join(sorted(values))})")
        for (namespace, label), values in names.items()
        if namespace not in whole
    }
    return sorted(named | {(namespace, "") for namespace in whole})
