"""When passes run: a change adds keys to the leader's work queue, and workers run a pass for each key."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cache

from remediator import metrics
from remediator.clock import Clock
from remediator.controller import measure
from remediator.controller.admission import Admissions
from remediator.controller.blast_looks import BlastLooks
from remediator.controller.cache import ClusterCache
from remediator.controller.confirmations import Confirmations
from remediator.controller.deleted_starts import DeletedStarts
from remediator.controller.handlers.base import Dependencies
from remediator.controller.keys import ADMISSION, EXPIRED, ORPHANS, Key, everything, gives_way
from remediator.controller.kubelet_leases import KubeletLeases
from remediator.controller.marks import marked
from remediator.controller.node_conditions.device_taints import DeviceTaints
from remediator.controller.node_index import availability
from remediator.controller.orphans import Orphans
from remediator.controller.perform import Performer
from remediator.controller.presence import LOOK, Presence
from remediator.controller.reconcile import Reconciler
from remediator.controller.reconcile.case import CaseReconciler
from remediator.controller.reconcile.node import NodeReconciler
from remediator.controller.reconcile.operation import OperationReconciler
from remediator.controller.reconcile.policy import PolicyReconciler
from remediator.controller.rejections import RejectionCounts, RejectionReconciler
from remediator.controller.retention import Retention
from remediator.core import failures, manual
from remediator.core.case import Case, Phase
from remediator.core.node import Node
from remediator.core.operation import Operation
from remediator.core.pod import Pod
from remediator.core.policy import Policy
from remediator.core.rejections import Rejection
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import Leader, LeaderQueue, Sweep, every
from remediator.kube.wire.client import Client
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
    ) -> None:
        """`source`: who is asked what policies want confirmed; None where nobody can be."""
        self._clock, self._leader, self._informers = clock, leader, informers
        self.cache = ClusterCache(informers, settings.api_nodes, spare=True)
        performer = Performer(client, self.cache, lambda: leader.is_leader)
        confirmations = Confirmations(source, clock.monotonic, lambda: self._queue.add(ADMISSION))
        leases = KubeletLeases(client, clock.monotonic)
        looks = BlastLooks(self.cache, client, clock, lambda: self._queue.add(ADMISSION))
        self._admissions = Admissions(
            self.cache, performer, settings.breaker, clock.monotonic, confirmations, leases, looks
        )
        dependencies = Dependencies(
            self.cache,
            performer,
            lambda: self._queue.add(ADMISSION),
            settings.drains,
            self._admissions.records,
            confirmations,
            leases=leases,
        )
        self._nodes = NodeReconciler(dependencies)
        self._rejections = RejectionReconciler(self.cache, RejectionCounts(informers.rejected_pods), performer)
        self._reconcilers: Mapping[str, Reconciler] = {
            "node": self._nodes,
            "case": CaseReconciler(dependencies),
            "operation": OperationReconciler(dependencies),
            "policy": PolicyReconciler(dependencies),
            "rejections": self._rejections,
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
        leader.add(confirmations.queue)
        leader.add(looks.queue)
        if settings.device_taints:
            leader.add(DeviceTaints(informers, self.cache, performer, clock).queue)
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
        self._informers.rejected_pods.on_change(lambda _, old, new: self._on_rejection(old, new))
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
        if availability(old) != availability(new) or self.cache.places.differs(old, new):
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
        if case.manual:
            self._queue.add(Key("operation", case.manual.operation))
        if old is None:
            self._queue.add(Key("rejections", case.node))
        if new is None or new.ended is not None:
            self._queue.add(Key("node", case.node), ADMISSION)
        elif old is not None and [block.reason for block in old.blocks] != [block.reason for block in new.blocks]:
            self._on_hold(new)
        if new is None and (node := self.cache.nodes.get(case.node)) and case.uid in node.marks:
            self._queue.add(ORPHANS)
        if old is not None and list(failures.records([old])) != list(failures.records([new] if new else [])):
            self._queue.add(*(Key("policy", policy.name) for policy in self.cache.policies))

    def _on_hold(self, case: Case) -> None:
        """Who waits may give way: to a case that is not open yet, or that waits for the node of another."""
        holding = (other.name for other in self.cache.cases.by("node", case.node) if other.open and other.claimed)
        self._queue.add(Key("node", case.node), *(Key("case", name) for name in holding if name != case.name))

    def _on_case_view(self, old: Case | None, new: Case | None) -> None:
        if old is not None and (new is None or new.uid != old.uid):
            self._deleted_starts.gone(old, self._clock.now())

    def _on_operation(self, old: Operation | None, new: Operation | None) -> None:
        operation = new or old
        if operation is None or not self._queue.leading:
            return
        self._queue.add(Key("operation", operation.name))
        if not operation.case_uid:
            self._queue.add(Key("case", manual.case_name(operation)))
            return
        case = self.cache.case(operation.case_uid)
        if case is None:
            return
        self._queue.add(Key("case", case.name))
        if case.manual:
            self._queue.add(Key("operation", case.manual.operation))

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        case = self.cache.case(pod.case_uid) if pod else None
        if case is not None:
            self._on_case(None, case)

    def _on_rejection(self, old: Rejection | None, new: Rejection | None) -> None:
        """What goes says nothing: the Condition stays for its time."""
        if new is not None and new.node:
            self._queue.add(Key("rejections", new.node))

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
        yield from everything(self.cache)
        yield from (Key("rejections", node) for node in dict.fromkeys(self._rejections.concerned()))

    def _operations(self, case: Case) -> list[Operation]:
        return self.cache.operations.by("case_uid", case.uid)

    async def _pass(self, key: Key) -> float | None:
        """One pass, with the one reading of the clock that it gets."""
        metrics.QUEUE.set(self._queue.depth)
        with _pass_seconds(key.kind).time():
            return await self._dispatch(key, self._clock.now())

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


def _differs(old: Policy | None, new: Policy | None, part: Callable[[Policy], object]) -> bool:
    return old is None or new is None or part(old) != part(new)
