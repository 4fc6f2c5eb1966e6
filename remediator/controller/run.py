"""The passes of the controller: workers of the leader run one for each key that a change has added to the queue."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from remediator import metrics
from remediator.clock import Clock
from remediator.controller import measure
from remediator.controller.admission import Admissions
from remediator.controller.blast_looks import BlastLooks
from remediator.controller.bundle_store import BundleStore
from remediator.controller.cache import ClusterCache
from remediator.controller.changes import Changes
from remediator.controller.confirmations import Confirmations
from remediator.controller.definitions import Definitions
from remediator.controller.deleted_starts import DeletedStarts
from remediator.controller.handlers.base import Dependencies
from remediator.controller.idle_tests import IdleTests
from remediator.controller.keys import ADMISSION, EXPIRED, ORPHANS, Key, everything, gives_way
from remediator.controller.kubelet_leases import KubeletLeases
from remediator.controller.node_conditions.alerts import AlertConditions
from remediator.controller.node_conditions.boots import RebootLoops
from remediator.controller.node_conditions.device_taints import DeviceTaints
from remediator.controller.node_conditions.drifts import NodeDrifts
from remediator.controller.node_conditions.events import EventConditions
from remediator.controller.node_conditions.inventories import Inventories
from remediator.controller.node_conditions.reporters import ReporterConditions
from remediator.controller.node_conditions.stuck_pods import StuckPods
from remediator.controller.node_leases import NodeLeases
from remediator.controller.orphans import Orphans
from remediator.controller.outside_requests import OutsideRequests
from remediator.controller.perform import Performer
from remediator.controller.presence import LOOK, Presence
from remediator.controller.reconcile import Reconciler
from remediator.controller.reconcile.case import CaseReconciler
from remediator.controller.reconcile.node import NodeReconciler
from remediator.controller.reconcile.operation import OperationReconciler
from remediator.controller.reconcile.policy import PolicyReconciler
from remediator.controller.rejections import RejectionCounts, RejectionReconciler, WorkCounts
from remediator.controller.retention import Retention
from remediator.controller.selected_nodes import AGAIN
from remediator.core.names import CONTROL_PLANE_NAMESPACE
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import Leader, LeaderQueue, Sweep, every
from remediator.kube.wire.client import Client
from remediator.prometheus.alerts import Alertmanagers
from remediator.prometheus.source import Source
from remediator.settings import Settings

RESYNC, RETENTION = timedelta(minutes=10), timedelta(hours=1)
_pass_seconds = cache(metrics.PASS_SECONDS.labels)  # looked up once for all passes


class Controller:
    """The passes over nodes, cases, operations and policies; `leader` runs them where it leads."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        informers: Informers,
        leader: Leader,
        clock: Clock,
        source: Source | None = None,
        alertmanagers: Alertmanagers | None = None,
        bundle_store: BundleStore | None = None,
    ) -> None:
        """`source`: who is asked what policies want confirmed; None where nobody can be. `alertmanagers`: the same of
        alerts that policies ask about. `bundle_store`: where bundles of evidence go; None where they stay on nodes.
        """
        self._clock, self._leader = clock, leader
        self.cache = ClusterCache(informers, settings.api_nodes, spare=True)
        self.cache.bundle_store = bundle_store
        performer = Performer(client, self.cache, lambda: leader.is_leader)
        confirmations = Confirmations(source, clock.monotonic, self._admit)
        leases = KubeletLeases(client, clock.monotonic)
        looks = BlastLooks(self.cache, client, clock, self._admit)
        node_leases = self._node_leases(settings.node_leases, performer)
        deciding = (settings.breaker, clock.monotonic, confirmations, leases, looks, node_leases, settings.quiet)
        self._admissions = Admissions(self.cache, performer, *deciding)
        acting = (self._admit, settings.drains, self._admissions.records, confirmations)
        dependencies = Dependencies(
            self.cache,
            performer,
            *acting,
            leases=leases,
            alerts=bool(alertmanagers),
            node_leases=node_leases,
            quiet=settings.quiet,
        )
        self._nodes = NodeReconciler(dependencies)
        self._rejections = _rejections(informers, self.cache, performer)
        self._reconcilers = self._by_kind(dependencies)
        self._retention, self._orphans = Retention(self.cache, performer), Orphans(self.cache, performer)
        self._presence = Presence(self.cache, leader)
        self._deleted_starts = DeletedStarts(self.cache, leader, settings.breaker)
        self._queue = self._leader_queue(settings.workers)
        beside = self._queues_beside(informers, settings, performer, alertmanagers)
        taken = [node_leases.queue] if node_leases else []
        own: tuple[LeaderQueue[Any], ...] = (self._queue, confirmations.queue, looks.queue, *taken)
        for queue in (*own, *beside):
            leader.add(queue)
        self._changes = Changes(self.cache, self._queue, self._presence, self._deleted_starts, clock)
        self._changes.subscribe(informers.rejected_pods)

    def _node_leases(self, namespace: str, performer: Performer) -> NodeLeases | None:
        """What takes the Leases of nodes; None where nobody uses such Leases."""
        return NodeLeases(namespace, self.cache, performer, self._clock, self._admit) if namespace else None

    def _by_kind(self, dependencies: Dependencies) -> Mapping[str, Reconciler]:
        """What makes the passes over one object, by the kind of its key."""
        return {
            "node": self._nodes,
            "case": CaseReconciler(dependencies),
            "operation": OperationReconciler(dependencies),
            "policy": PolicyReconciler(dependencies),
            "rejections": self._rejections,
        }

    def _queues_beside(
        self, informers: Informers, settings: Settings, performer: Performer, alertmanagers: Alertmanagers | None
    ) -> Iterator[LeaderQueue[Any]]:
        """The queues of what has its own passes: Conditions that we write, and requests of other controllers."""
        of_all = informers, self.cache, performer, self._clock
        yield Inventories(*of_all).queue
        yield RebootLoops(*of_all).queue
        yield StuckPods(*of_all).queue
        yield NodeDrifts(self.cache, performer, self._clock, settings.group_labels).queue
        yield ReporterConditions(*of_all).queue
        yield EventConditions(*of_all).queue
        yield IdleTests(*of_all).queue
        yield Definitions(settings.namespace, performer, self._clock).queue
        if settings.device_taints:
            yield DeviceTaints(*of_all).queue
        if settings.requests_from:
            yield OutsideRequests(*of_all, settings.requests_from).queue
        if alertmanagers is not None:
            yield AlertConditions(alertmanagers, self.cache, performer, self._clock).queue

    def _leader_queue(self, workers: int) -> LeaderQueue[Key]:
        return LeaderQueue(
            "controller",
            self._pass,
            self._everything,
            workers=workers,
            informers=lambda: self.cache.informers,
            sweeps=self._sweeps(),
            began=self._began,
            ended=self._ended,
            gives_way=self._gives_way,
        )

    def _admit(self) -> None:
        self._queue.add(ADMISSION)

    async def measure(self) -> None:
        """Bring the gauges up to date; asked for by each scrape."""
        metrics.QUEUE.set(self._queue.depth)
        await measure.gauges(self.cache, self._admissions.breaker, self._clock.now())
        unclear = Counter(doubt.condition for doubts in self._nodes.doubts.values() for doubt in doubts)
        measure.show(metrics.UNKNOWN, unclear)

    def ready(self) -> bool:
        """Whether every watch has its list and shows signs of life; says nothing of leading."""
        return all(informer.fresh() for informer in self.cache.informers)

    # --- leading -----------------------------------------------------------------------------------------------------

    def _sweeps(self) -> tuple[Sweep, ...]:
        return (
            Sweep("all objects, in case a change was ever lost", every(RESYNC), lambda: self._queue.add_all()),
            Sweep("how many nodes policies select", every(AGAIN), self._count_nodes),
            Sweep("whether we can act", every(LOOK), lambda: self._presence.look(self._clock.now())),
            Sweep("the end of old cases", every(RETENTION), lambda: self._queue.add(EXPIRED)),
        )

    def _count_nodes(self) -> None:
        self._queue.add(*(Key("policy", policy.name) for policy in self.cache.policies))

    def _everything(self) -> Iterator[Key | None]:
        yield from everything(self.cache)
        yield from (Key("rejections", node) for node in dict.fromkeys(self._rejections.concerned()))

    async def _pass(self, key: Key) -> float | None:
        """One pass, with the one reading of the clock that it gets."""
        began = self._clock.monotonic()
        try:
            return await self._dispatch(key, self._clock.now())
        finally:
            _pass_seconds(key.kind).observe(self._clock.monotonic() - began)

    def _gives_way(self, key: Key) -> int:
        """1 where a pass may wait for claims, and for what stops or ends something; 2 for records of them, too."""
        if not gives_way(self.cache, key):
            return 0
        return 2 if key.kind == "case" and key.name in self._admissions.records.events else 1

    def _began(self) -> None:
        renewed, _ = self._leader.before
        self._admissions.records.events.resume(self.cache.unfinished, renewed)

    def _ended(self) -> None:
        self._nodes.doubts.clear()
        self._admissions.clear()
        self._presence.end(self._clock.now())
        self._deleted_starts.end()

    async def _dispatch(self, key: Key, now: datetime) -> float | None:
        self._presence.look(now)
        self._deleted_starts.begin(now)
        if key.kind in self._reconcilers:
            return await self._reconcilers[key.kind].reconcile(key.name, now)
        if key == ORPHANS:
            return await self._orphans.run(now)
        if key == EXPIRED:
            return await self._retention.run(now)
        await self.cache.nodes_by.refresh()
        self._deleted_starts.look(now)
        try:
            return await self._admissions.run(now)
        finally:
            self._queue.add(*(Key("case", name) for name in self._admissions.records.due))


def _rejections(informers: Informers, cache: ClusterCache, performer: Performer) -> RejectionReconciler:
    """What counts the Pods that a kubelet rejects, beside the work of each node: our own Pods are none."""
    apart = (CONTROL_PLANE_NAMESPACE, informers.namespaces.system, informers.namespaces.operations)
    counts = RejectionCounts(informers.rejected_pods), WorkCounts(informers.gpu_pods, apart)
    return RejectionReconciler(cache, *counts, performer)
