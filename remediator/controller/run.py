"""When passes run: watches wake keys, one queue serves them, and only the leader has a queue."""

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from remediator import metrics
from remediator.clock import Clock
from remediator.controller.admission import Admissions
from remediator.controller.cache import ClusterCache, Store, availability
from remediator.controller.handlers.base import Dependencies
from remediator.controller.perform import Performer
from remediator.controller.reconcile import Reconciler
from remediator.controller.reconcile.case import CaseReconciler
from remediator.controller.reconcile.node import NodeReconciler
from remediator.controller.reconcile.operation import OperationReconciler
from remediator.controller.reconcile.policy import PolicyReconciler
from remediator.controller.retention import Retention
from remediator.core import names
from remediator.core.case import Case, Operation
from remediator.core.node import Node
from remediator.core.pod import Pod
from remediator.kube import api
from remediator.kube.api import decode as codec
from remediator.kube.api.builtin import NAMESPACE, NODE, POD
from remediator.kube.runtime.elector import Elector
from remediator.kube.runtime.queue import WorkQueue
from remediator.kube.runtime.reflector import Reflector
from remediator.kube.wire.client import Client, Kind
from remediator.settings import Settings

log = structlog.get_logger()
LEASE = "remediator"
RESYNC_MINUTES = 10


class Key(NamedTuple):
    """What a pass is over."""

    kind: str
    name: str = ""


ADMISSION = Key("admission")


class Controller:
    """Everything one replica runs. Watches are served by all; passes by the leader only."""

    def __init__(self, client: Client, settings: Settings, clock: Clock) -> None:
        self.client, self.settings, self._clock = client, settings, clock
        self.cache = ClusterCache(clock.monotonic, settings.namespaces)
        self.elector = Elector(
            client,
            LEASE,
            settings.namespace,
            settings.identity,
            clock,
            duration=settings.lease_duration,
            renew=settings.lease_renew,
            retry=settings.lease_retry,
        )
        performer = Performer(client, self.cache, lambda: self.elector.is_leader)
        self._queue: WorkQueue[Key] | None = None
        dependencies = Dependencies(self.cache, performer, lambda: self._wake(ADMISSION), settings.drains)
        self._nodes = NodeReconciler(dependencies)
        self._reconcilers: Mapping[str, Reconciler] = {
            "node": self._nodes,
            "case": CaseReconciler(dependencies),
            "operation": OperationReconciler(dependencies),
            "policy": PolicyReconciler(dependencies),
        }
        self._admissions = Admissions(self.cache, performer, settings.breaker)
        self._retention = Retention(self.cache, performer)
        self._reflectors = self._watches()

    async def run(self) -> None:
        """Watch, and lead whenever the lease is ours, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors.values():
                group.create_task(reflector.run())
            await asyncio.gather(*(reflector.synced.wait() for reflector in self._reflectors.values()))
            gc.collect()
            gc.freeze()  # the caches live as long as we do; walking them again and again is what pauses a loop
            log.info("synced", nodes=len(self.cache.nodes), cases=len(self.cache.cases))
            await self.elector.run(self._lead)

    def measure(self) -> None:
        """Bring the gauges up to date; asked for by each scrape."""
        for kind, reflector in self._reflectors.items():
            metrics.AGE.labels(kind).set(min(reflector.age(), 1e9))
        phases = Counter(case.phase.value or "New" for case in self.cache.cases if case.open)
        holds = Counter(block.reason.value for case in self.cache.cases if case.open for block in case.blocks)
        unclear = Counter(doubt.condition for doubts in self._nodes.doubts.values() for doubt in doubts)
        for gauge, counts in ((metrics.CASES, phases), (metrics.HELD, holds), (metrics.UNKNOWN, unclear)):
            gauge.clear()
            for word, count in counts.items():
                gauge.labels(word).set(count)

    def ready(self) -> bool:
        """Whether every watch has its list and shows signs of life; says nothing of leading."""
        return all(reflector.fresh() for reflector in self._reflectors.values())

    # --- watches -----------------------------------------------------------------------------------------------------

    def _watches(self) -> dict[str, Reflector[Any, Any]]:
        cache, ours = self.cache, self.settings.operations_namespace
        replicas = {"namespace": self.settings.namespace, "labels": names.CONTROLLER_LABELS}
        return {
            "nodes": self._watch(NODE, codec.node, cache.nodes, self._on_node),
            "policies": self._watch(api.POLICY, codec.remediation_policy, cache.policies, self._on_policy),
            "templates": self._watch(api.TEMPLATE, codec.template, cache.templates, self._on_template),
            "budgets": self._watch(api.BUDGET, codec.disruption_budget, cache.budgets, self._on_budget),
            "cases": self._watch(api.CASE, codec.remediation_case, cache.cases, self._on_case),
            "operations": self._watch(api.OPERATION, codec.operation, cache.operations, self._on_operation),
            "pods": self._watch(POD, codec.operation_pod, cache.pods, self._on_pod, namespace=ours),
            "replicas": self._watch(POD, codec.operation_pod, cache.replicas, self._on_replica, **replicas),
            "pause": self._watch_pause(),
        }

    def _watch(
        self, kind: Kind[Any], read: Callable[[Any], Any], store: Store[Any], wake: Callable[..., None], **where: str
    ) -> Reflector[Any, Any]:
        def changed(key: str, old: Any, new: Any) -> None:
            store.changed(key, old, new)
            if self._queue is not None:
                wake(old, new)

        reflector: Reflector[Any, Any] = Reflector(self.client, kind, read, changed, **where)  # type: ignore[arg-type]
        store.attach(reflector.store)
        return reflector

    def _watch_pause(self) -> Reflector[Any, Any]:
        """Whether everything new is stopped, for admissions; before each Pod it is read live."""

        def changed(key: str, old: bool | None, new: bool | None) -> None:
            self.cache.paused = bool(new)
            self._wake(ADMISSION)

        fields = f"metadata.name={self.settings.namespace}"
        return Reflector(self.client, NAMESPACE, codec.paused, changed, fields=fields)

    def _wake(self, key: Key) -> None:
        if self._queue is not None:
            self._queue.add(key)

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        node = new or old
        if node is None:
            return
        self._wake(Key("node", node.name))
        for case in self.cache.cases.by("node", node.name):
            if case.open or case.finalizer:
                self._on_case(None, case)
        if availability(old) != availability(new):
            self._wake(ADMISSION)

    def _on_case(self, old: Case | None, new: Case | None) -> None:
        case = new or old
        if case is None:
            return
        self._wake(Key("case", case.name))
        for operation in self.cache.operations.by("case_uid", case.uid):
            self._wake(Key("operation", operation.name))
        if new is None or new.ended is not None:
            self._wake(Key("node", case.node))
            self._wake(ADMISSION)

    def _on_operation(self, old: Operation | None, new: Operation | None) -> None:
        operation = new or old
        if operation is None:
            return
        self._wake(Key("operation", operation.name))
        case = self.cache.case(operation.case_uid)
        if case is not None:
            self._wake(Key("case", case.name))

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None:
            return
        case = self.cache.case(pod.case_uid)
        if case is not None:
            self._on_case(None, case)

    def _on_replica(self, old: Pod | None, new: Pod | None) -> None:
        self._wake(ADMISSION)

    def _on_policy(self, old: Any, new: Any) -> None:
        policy = new or old
        self._wake(Key("policy", policy.name))
        for node in self.cache.nodes:
            if policy.selects(node) or (old is not None and old.selects(node)):
                self._wake(Key("node", node.name))
        self._wake(ADMISSION)

    def _on_template(self, old: Any, new: Any) -> None:
        for policy in self.cache.policies:
            self._wake(Key("policy", policy.name))
        self._wake(ADMISSION)

    def _on_budget(self, old: Any, new: Any) -> None:
        self._wake(ADMISSION)

    # --- leading -----------------------------------------------------------------------------------------------------

    async def _lead(self) -> None:
        """Serve the queue; start with a pass over everything, since nothing is remembered."""
        self._queue = WorkQueue()
        metrics.LEADER.set(1)
        self._all()
        scheduler = self._sweeps()
        try:
            await self._queue.run(self._pass, self.settings.workers)
        finally:
            scheduler.shutdown(wait=False)
            self._queue.close()
            self._queue = None
            self._nodes.doubts.clear()
            metrics.LEADER.set(0)

    def _sweeps(self) -> AsyncIOScheduler:
        """Periodic work: a pass over everything, in case a wake-up was ever lost, and the end of old cases."""
        scheduler = AsyncIOScheduler(timezone=UTC, job_defaults={"coalesce": True, "misfire_grace_time": 60})
        scheduler.add_job(self._sweep, "interval", minutes=RESYNC_MINUTES)
        scheduler.add_job(self._retain, "interval", hours=1)
        scheduler.start()
        return scheduler

    async def _sweep(self) -> None:
        """A coroutine, though it waits for nothing: APScheduler runs plain functions in threads, beside the loop."""
        self._all()

    async def _retain(self) -> None:
        self._wake(Key("retention"))

    def _all(self) -> None:
        self._wake(ADMISSION)
        for kind, store in self._stores().items():
            for fact in store:
                self._wake(Key(kind, fact.name))

    def _stores(self) -> dict[str, Store[Any]]:
        cache = self.cache
        return {"policy": cache.policies, "node": cache.nodes, "case": cache.cases, "operation": cache.operations}

    async def _pass(self, key: Key) -> float | None:
        """One pass, with the one reading of the clock that it gets."""
        if self._queue is not None:
            metrics.QUEUE.set(self._queue.depth)
        with metrics.PASS_SECONDS.labels(key.kind).time():
            return await self._dispatch(key, self._clock.now())

    async def _dispatch(self, key: Key, now: datetime) -> float | None:
        if key.kind in self._reconcilers:
            return await self._reconcilers[key.kind].reconcile(key.name, now)
        if key.kind == "retention":
            return await self._retention.run(now)
        return await self._admissions.run(now)
