"""When passes run: a change adds keys to the leader's work queue, and workers run a pass for each key."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from remediator import metrics
from remediator.clock import Clock
from remediator.controller import measure
from remediator.controller.admission import Admissions
from remediator.controller.cache import ClusterCache
from remediator.controller.deleted_starts import DeletedStarts
from remediator.controller.handlers.base import Dependencies
from remediator.controller.marks import marked
from remediator.controller.node_index import availability
from remediator.controller.orphans import Orphans
from remediator.controller.perform import Performer
from remediator.controller.presence import LOOK, Presence
from remediator.controller.reconcile import Reconciler
from remediator.controller.reconcile.case import CaseReconciler
from remediator.controller.reconcile.node import NodeReconciler
from remediator.controller.reconcile.operation import OperationReconciler
from remediator.controller.reconcile.policy import PolicyReconciler
from remediator.controller.retention import Retention
from remediator.core import failures
from remediator.core.case import Case, Operation, OperationPhase, Phase
from remediator.core.node import Node
from remediator.core.pod import Pod
from remediator.core.policy import Policy
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import Leader, LeaderQueue, Sweep, every
from remediator.kube.wire.client import Client
from remediator.settings import Settings

RESYNC, RETENTION = timedelta(minutes=10), timedelta(hours=1)


class Key(NamedTuple):
    """What a pass is over."""

    kind: str
    name: str = ""


ADMISSION, EXPIRED, ORPHANS = Key("admission"), Key("retention"), Key("orphans")


def _never(cache: ClusterCache, name: str) -> bool:
    return False


def _always(cache: ClusterCache, name: str) -> bool:
    return True


def _has_case(cache: ClusterCache, node: str) -> bool:
    return any(case.open for case in cache.cases.by("node", node))


def _case_begins(cache: ClusterCache, name: str) -> bool:
    case = cache.cases.get(name)
    return case is not None and case.phase in BEGINNING and not (case.release or case.deleting)


def _operation_begins(cache: ClusterCache, name: str) -> bool:
    operation = cache.operations.get(name)
    return operation is not None and operation.phase in BEGINNING and not operation.deleting


# Records, diagnosis and drains of new cases give way, and Events of records to all of these; no release, time-out or
# end of what goes on, and no stop of it.
BEGINNING = (Phase.NEW, Phase.HELD, Phase.DRAINING, OperationPhase.PENDING, OperationPhase.DRAINING)
GIVES_WAY: Mapping[str, Callable[[ClusterCache, str], bool]] = {
    ADMISSION.kind: _never,  # it claims
    "node": _has_case,  # another may want one
    "case": _case_begins,
    "operation": _operation_begins,
}


class Controller:
    """The passes over nodes, cases, operations and policies; `leader` runs them where it leads."""

    def __init__(self, client: Client, settings: Settings, informers: Informers, leader: Leader, clock: Clock) -> None:
        self._clock, self._leader = clock, leader
        self.cache = ClusterCache(informers)
        performer = Performer(client, self.cache, lambda: leader.is_leader)
        self._admissions = Admissions(self.cache, performer, settings.breaker, clock.monotonic)
        dependencies = Dependencies(
            self.cache, performer, lambda: self._queue.add(ADMISSION), settings.drains, self._admissions.records
        )
        self._nodes = NodeReconciler(dependencies)
        self._reconcilers: Mapping[str, Reconciler] = {
            "node": self._nodes,
            "case": CaseReconciler(dependencies),
            "operation": OperationReconciler(dependencies),
            "policy": PolicyReconciler(dependencies),
        }
        self._retention = Retention(self.cache, performer)
        self._orphans = Orphans(self.cache, performer)
        self._presence = Presence(self.cache, leader)
        self._deleted_starts = DeletedStarts(self.cache, leader, settings.breaker)
        self._queue: LeaderQueue[Key] = LeaderQueue(
            "controller",
            self._pass,
            self._everything,
            workers=settings.workers,
            informers=self.cache.informers,
            sweeps=self._sweeps(),
            began=self._began,
            ended=self._ended,
            gives_way=self._gives_way,
        )
        leader.add(self._queue)
        self._subscribe()

    async def measure(self) -> None:
        """Bring the gauges up to date; asked for by each scrape."""
        await measure.gauges(self.cache, self._admissions.breaker, self._clock.now())
        unclear = Counter(doubt.condition for doubts in self._nodes.doubts.values() for doubt in doubts)
        measure.show(metrics.UNKNOWN, unclear)

    def ready(self) -> bool:
        """Whether every watch has its list and shows signs of life; says nothing of leading."""
        return all(informer.fresh() for informer in self.cache.informers)

    # --- changes -----------------------------------------------------------------------------------------------------

    def _subscribe(self) -> None:
        cache = self.cache
        cache.nodes.on_change(lambda _, old, new: self._on_node(old, new))
        cache.nodes.on_beat(self._on_heartbeat)
        cache.policies.on_change(lambda _, old, new: self._on_policy(old, new))
        cache.templates.on_change(lambda *_: self._on_template())
        cache.cases.on_change(lambda _, old, new: self._on_case(old, new))
        cache.cases.on_view(self._on_case_view)
        cache.operations.on_change(lambda _, old, new: self._on_operation(old, new))
        cache.pods.on_change(lambda _, old, new: self._on_pod(old, new))
        cache.pause.on_change(lambda *_: self._on_pause())
        cache.budgets.on_change(lambda *_: self._queue.add(ADMISSION))
        for informer in (cache.replicas, cache.control_plane):
            informer.on_change(lambda _, old, new: self._on_hosted(old, new))

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        node = new or old
        if node is None or not self._queue.leading:
            return
        self._queue.add(Key("node", node.name))
        for case in self.cache.cases.by("node", node.name):
            if case.open or case.finalizer or marked(node, case):
                self._on_case(None, case)
        if availability(old) != availability(new):
            self._queue.add(ADMISSION)

    def _on_heartbeat(self, name: str) -> None:
        """A node that has to prove its health does so by its heartbeats."""
        if self._queue.leading:
            cases = self.cache.cases.by("node", name)
            self._queue.add(*(Key("case", case.name) for case in cases if case.phase is Phase.VERIFYING))

    def _on_case(self, old: Case | None, new: Case | None) -> None:
        case = new or old
        if case is None or not self._queue.leading:
            return
        self._queue.add(Key("case", case.name))
        self._queue.add(*(Key("operation", operation.name) for operation in self._operations(case)))
        if new is None or new.ended is not None:
            self._queue.add(Key("node", case.node), ADMISSION)
        if new is None and (node := self.cache.nodes.get(case.node)) and case.uid in node.marks:
            self._queue.add(ORPHANS)
        if old is not None and list(failures.records([old])) != list(failures.records([new] if new else [])):
            self._queue.add(*(Key("policy", policy.name) for policy in self.cache.policies))

    def _on_case_view(self, old: Case | None, new: Case | None) -> None:
        if old is not None and (new is None or new.uid != old.uid):
            self._deleted_starts.gone(old, self._clock.now())

    def _on_operation(self, old: Operation | None, new: Operation | None) -> None:
        operation = new or old
        if operation is None or not self._queue.leading:
            return
        self._queue.add(Key("operation", operation.name))
        case = self.cache.case(operation.case_uid)
        if case is not None:
            self._queue.add(Key("case", case.name))

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        case = self.cache.case(pod.case_uid) if pod else None
        if case is not None:
            self._on_case(None, case)

    def _on_hosted(self, old: Pod | None, new: Pod | None) -> None:
        """What a node runs may stop the case that holds it; which replica is the last one, others say, too."""
        self._queue.add(ADMISSION)
        if self._queue.leading:
            nodes = dict.fromkeys(pod.node for pod in (old, new, *self.cache.replicas) if pod is not None)
            self._wake(case for node in nodes for case in self.cache.cases.by("node", node))

    def _on_policy(self, old: Policy | None, new: Policy | None) -> None:
        """Nodes are looked at again where what decides about them has changed, which no write of a status does."""
        if not self._queue.leading:
            return
        policies = [policy for policy in (old, new) if policy is not None]
        self._queue.add(*dict.fromkeys(Key("policy", policy.name) for policy in policies))
        if _differs(old, new, lambda policy: policy.spec):
            self._queue.add(ADMISSION)
            self._wake(case for case in self.cache.unfinished if case.policy == policies[0].name)
        if _differs(old, new, lambda policy: policy.watches):
            self._queue.feed(
                Key("node", node.name) if any(policy.selects(node) for policy in policies) else None
                for node in self.cache.nodes
            )

    def _on_pause(self) -> None:
        self._queue.add(ADMISSION)
        if self._queue.leading:
            self._presence.look(self._clock.now())
            self._wake(self.cache.unfinished)

    def _wake(self, cases: Iterable[Case]) -> None:
        """What a stop, or its end, changes for cases that hold their node."""
        for case in [case for case in cases if case.open and case.claimed]:
            self._on_case(None, case)

    def _on_template(self) -> None:
        if self._queue.leading:
            self._queue.add(ADMISSION, *(Key("policy", policy.name) for policy in self.cache.policies))

    # --- leading -----------------------------------------------------------------------------------------------------

    def _sweeps(self) -> tuple[Sweep, ...]:
        return (
            Sweep("all objects, in case a change was ever lost", every(RESYNC), lambda: self._queue.add_all()),
            Sweep("whether we can act", every(LOOK), lambda: self._presence.look(self._clock.now())),
            Sweep("the end of old cases", every(RETENTION), lambda: self._queue.add(EXPIRED)),
        )

    def _everything(self) -> Iterator[Key | None]:
        """All that a pass may do something about; of what has ended, only what still holds something."""
        cache = self.cache
        yield ADMISSION
        yield ORPHANS
        yield from (Key("policy", policy.name) for policy in cache.policies)
        yield from (Key("node", node.name) for node in cache.nodes)
        yield from (Key("case", case.name) for case in cache.unfinished)
        yield from (Key("case", case.name) for case in self._on_their_nodes())
        yield from (Key("operation", operation.name) for operation in cache.unfinished_operations)
        uids = {pod.case_uid: None for pod in cache.pods}
        yield from (Key("operation", operation.name) for uid in uids for operation in self._with_pods(uid))

    def _on_their_nodes(self) -> Iterator[Case]:
        """Cases that are over, and whose marks a node still has."""
        for node in self.cache.marked:
            for case in (self.cache.case(uid) for uid in node.marks):
                over = case is not None and not (case.open or case.finalizer)
                if case is not None and over and case.node == node.name and marked(node, case):
                    yield case

    def _with_pods(self, case_uid: str) -> Iterator[Operation]:
        """Operations of a case that are over, and whose Pods are not."""
        with_pods = {pod.operation_uid for pod in self.cache.pods.by("case_uid", case_uid)}
        return (each for each in self.cache.operations.by("case_uid", case_uid) if each.uid in with_pods)

    def _operations(self, case: Case) -> list[Operation]:
        return self.cache.operations.by("case_uid", case.uid)

    async def _pass(self, key: Key) -> float | None:
        """One pass, with the one reading of the clock that it gets."""
        metrics.QUEUE.set(self._queue.depth)
        with metrics.PASS_SECONDS.labels(key.kind).time():
            return await self._dispatch(key, self._clock.now())

    def _gives_way(self, key: Key) -> int:
        """1 where a pass may wait for claims, and for what stops or ends something; 2 for records of them, too."""
        if not GIVES_WAY.get(key.kind, _always)(self.cache, key.name):
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


def _differs(old: Policy | None, new: Policy | None, part: Callable[[Policy], object]) -> bool:
    return old is None or new is None or part(old) != part(new)
