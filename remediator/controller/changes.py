"""Which passes a change asks for: keys for the leader's work queue."""

from collections.abc import Callable, Iterable

from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.controller.deleted_starts import DeletedStarts
from remediator.controller.keys import ADMISSION, ORPHANS, Key
from remediator.controller.marks import marked
from remediator.controller.node_index import availability
from remediator.controller.presence import Presence
from remediator.core import failures, manual
from remediator.core.case import Case, Phase
from remediator.core.gpu_operator import resumed
from remediator.core.node import Node
from remediator.core.operation import Operation
from remediator.core.pod import Pod
from remediator.core.policy import Policy
from remediator.core.rejections import Rejection
from remediator.kube.informers import Pause
from remediator.kube.runtime.informer import Informer
from remediator.kube.runtime.leader import LeaderQueue


class Changes:
    """Adds to the queue what a change of any object may make due."""

    def __init__(
        self,
        cache: ClusterCache,
        queue: LeaderQueue[Key],
        presence: Presence,
        deleted_starts: DeletedStarts,
        clock: Clock,
    ) -> None:
        self.cache, self._queue, self._clock = cache, queue, clock
        self._presence, self._deleted_starts = presence, deleted_starts

    def subscribe(self, rejected_pods: Informer[Rejection]) -> None:
        """Hear of every change from now on."""
        cache = self.cache
        cache.nodes.on_change(lambda _, old, new: self._on_node(old, new))
        cache.nodes.on_beat(self._on_heartbeat)
        cache.policies.on_change(lambda _, old, new: self.on_policy(old, new))
        cache.templates.on_change(lambda *_: self._on_template())
        cache.cases.on_change(lambda _, old, new: self._on_case(old, new))
        cache.cases.on_view(self._on_case_view)
        cache.operations.on_change(lambda _, old, new: self._on_operation(old, new))
        cache.pods.on_change(lambda _, old, new: self._on_pod(old, new))
        cache.pause.on_change(lambda _, old, new: self._on_pause(old, new))
        rejected_pods.on_change(lambda _, old, new: self._on_rejection(old, new))
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
        if (node := self.cache.nodes.get(operation.node)) is not None and resumed(node.labels):
            self._queue.add(Key("node", node.name))
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

    def on_policy(self, old: Policy | None, new: Policy | None) -> None:
        """Nodes are looked at again where what decides about them has changed, which no write of a status does."""
        if not self._queue.leading:
            return
        policies = [policy for policy in (old, new) if policy is not None]
        self._queue.add(*dict.fromkeys(Key("policy", policy.name) for policy in policies))
        if _differs(old, new, lambda policy: policy.spec):
            self._queue.add(ADMISSION)
            self._wake(case for case in self.cache.unfinished if case.policy == policies[0].name)
        if _differs(old, new, lambda policy: policy.watches):
            held = (case for case in self.cache.unfinished if case.policy == policies[0].name and not case.claimed)
            self._queue.feed([Key("case", case.name) for case in held])
            self._queue.feed(
                Key("node", node.name) if any(policy.selects(node) for policy in policies) else None
                for node in self.cache.nodes
            )

    def _on_pause(self, old: Pause | None, new: Pause | None) -> None:
        self._queue.add(ADMISSION)
        if self._queue.leading:
            self._presence.look(self._clock.now())
            self._wake(self.cache.unfinished)
            if (old is not None and old.leaving) != (new is not None and new.leaving):
                self._queue.add(*(Key("node", node.name) for node in self.cache.nodes))

    def _wake(self, cases: Iterable[Case]) -> None:
        """What a stop, or its end, changes for cases that hold their node."""
        for case in [case for case in cases if case.open and case.claimed]:
            self._on_case(None, case)

    def _on_template(self) -> None:
        if self._queue.leading:
            self._queue.add(ADMISSION, *(Key("policy", policy.name) for policy in self.cache.policies))
            self._wake(case for case in self.cache.unfinished if case.attempt and case.runs(case.attempt.operation))

    def _operations(self, case: Case) -> list[Operation]:
        return self.cache.operations.by("case_uid", case.uid)


def _differs(old: Policy | None, new: Policy | None, part: Callable[[Policy], object]) -> bool:
    return old is None or new is None or part(old) != part(new)
