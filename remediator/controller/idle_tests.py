"""Tests of idle nodes: Pods that give way to any other, a few at a time.

The names of the Pods are the fence: a policy has as many as nodes may be tested at once, and creating one twice fails.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from remediator import windows
from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.controller.effects import Create, Delete
from remediator.controller.handlers.base import seconds
from remediator.controller.idle_nodes import IdleNodes
from remediator.controller.idle_test_results import IdleTestResults
from remediator.controller.perform import Performer
from remediator.core import idle_test, names, neighbour
from remediator.core.idle_result import IDLE_TEST_FAILED
from remediator.core.idle_test import IdleEnd
from remediator.core.node import Node
from remediator.core.node_inventory import Inventory
from remediator.core.operation import Operation
from remediator.core.pod import Pod
from remediator.core.policy import IdleTest, Policy
from remediator.core.template import Template
from remediator.kube.api import encode
from remediator.kube.api.builtin import POD, POD_HEAD
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import LeaderQueue
from remediator.kube.wire.errors import ApiError

log = structlog.get_logger()
AT_ONCE = 2  # passes
LOOK = 30.0  # seconds between two looks at a policy
SOON = 5.0  # seconds between two looks at the nodes, however often tests change
MOST_A_LOOK = 50  # tests that are made in one look


class IdleTestKey(NamedTuple):
    """What a pass is about: the tests of a policy, or the Condition of a node."""

    kind: str
    name: str


class IdleTests:
    """Makes the tests, takes them back, and has their results kept. Only who leads writes."""

    def __init__(self, informers: Informers, cache: ClusterCache, performer: Performer, clock: Clock) -> None:
        self._cache, self._performer, self._clock = cache, performer, clock
        self._inventories, self._gpu_pods = informers.inventories, informers.gpu_pods
        self._results = IdleTestResults(informers.inventories, cache, performer)
        self._nodes = IdleNodes(cache, self._results)
        self._gone: dict[str, Pod] = {}  # by uid: tests that went before their end was read
        self._looked: dict[str, datetime] = {}  # by policy: when its nodes were looked at last
        self.queue: LeaderQueue[IdleTestKey] = LeaderQueue(
            "idle tests",
            self._pass,
            self._everything,
            workers=AT_ONCE,
            informers=lambda: (self._inventories,),
            essential=False,
            ended=self._forget,
        )
        cache.pods.on_change(lambda _, old, new: self._on_pod(old, new))
        cache.policies.on_change(lambda _, old, new: self._on_policy(old, new))
        cache.nodes.on_change(lambda name, old, new: self._on_node(name, old, new))
        cache.operations.on_change(lambda _, old, new: self._on_operation(old, new))
        cache.cases.on_change(lambda _, old, new: self._wake(*(case.node for case in (new or old,) if case)))
        self._inventories.on_change(lambda name, old, new: self._on_inventory(old, new))

    # --- what wakes a pass -------------------------------------------------------------------------------------------

    def _everything(self) -> Iterator[IdleTestKey]:
        named = {policy.name for policy in self._cache.policies if policy.idle_test is not None}
        named |= {pod.idle_test for pod in self._cache.pods if pod.idle_test}
        yield from (IdleTestKey("policy", name) for name in sorted(named))
        yield from self._failed()

    def _failed(self) -> Iterator[IdleTestKey]:
        """The nodes whose newest test has failed."""
        return (IdleTestKey("node", node) for node in self._results.failed())

    def _forget(self) -> None:
        self._gone, self._looked = {}, {}
        self._results.forget()

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None or not pod.idle_test:
            return
        vanished = old is not None and new is None and not old.ended and not old.neighbour_of
        if old is not None and vanished and self.queue.leading:
            self._gone[old.uid] = old
        self.queue.add(IdleTestKey("policy", pod.idle_test))

    def _on_operation(self, old: Operation | None, new: Operation | None) -> None:
        """One that measures to neighbours gives them back at its end."""
        if old is not None and (new is None or new.finished is not None):
            for pod in self._cache.pods.by("neighbour_of", old.uid):
                self.queue.add(IdleTestKey("policy", pod.idle_test))

    def _on_policy(self, old: Policy | None, new: Policy | None) -> None:
        for policy in (old, new):
            if policy is not None and policy.idle_test is not None:
                self.queue.add(IdleTestKey("policy", policy.name))
        if _asks(old) != _asks(new):
            self.queue.feed(self._failed())

    def _on_node(self, name: str, old: Node | None, new: Node | None) -> None:
        self._look_again(name)
        if new is not None and IDLE_TEST_FAILED in new.conditions and _differs(old, new):
            self.queue.add(IdleTestKey("node", name))

    def _look_again(self, node: str) -> None:
        """Whether tests of this node have to give way is asked at once."""
        for test in self._cache.pods.by("tested", node):
            self.queue.add(IdleTestKey("policy", test.idle_test))

    def _wake(self, *nodes: str) -> None:
        for name in nodes:
            self._look_again(name)
            node = self._cache.nodes.get(name)
            if node is not None and IDLE_TEST_FAILED in node.conditions:
                self.queue.add(IdleTestKey("node", name))

    def _on_inventory(self, old: Inventory | None, new: Inventory | None) -> None:
        if new is not None and (old.tested if old else None) != new.tested:
            self.queue.add(IdleTestKey("node", new.node))

    # --- passes ------------------------------------------------------------------------------------------------------

    async def _pass(self, subject: IdleTestKey) -> float | None:
        now = self._clock.now()
        if subject.kind == "node":
            return await self._results.say(subject.name, now)
        policy = self._cache.policies.get(subject.name)
        tests = self._cache.pods.by("idle_test", subject.name)
        ended = [await self._look_at(pod, policy, now) for pod in tests]
        await self._settle_gone(subject.name, now)
        if policy is None or policy.idle_test is None or policy.unreadable:
            return LOOK if tests else None
        since = now - self._looked.get(policy.name, datetime.min.replace(tzinfo=now.tzinfo))
        if timedelta(0) <= since < timedelta(seconds=SOON):
            return SOON
        self._looked[policy.name] = now
        again = await self._begin(policy, policy.idle_test, now)
        return min(SOON, again) if any(ended) else again

    async def _settle_gone(self, policy: str, now: datetime) -> None:
        """Tell the end of tests that went before anybody read it, and forget all that are not there any more."""
        for uid in [uid for uid, pod in self._gone.items() if pod.idle_test == policy]:
            pod = self._gone.pop(uid)
            await self._results.tell(pod, idle_test.end_of(pod) if pod.disrupted else IdleEnd.DELETED, now)
        known = self._gone.keys() | {pod.uid for pod in self._cache.pods if pod.idle_test}
        self._results.keep_only(known)

    async def _look_at(self, pod: Pod, policy: Policy | None, now: datetime) -> bool:
        """One test: read its end, or take it back. Returns whether its place is becoming free."""
        if pod.neighbour_of:
            return await self._look_at_neighbour(pod, now)
        if pod.ended and not pod.deleting:
            if await self._results.tell(pod, self._end_of(pod), now):
                await self._delete(pod)
            return True
        if pod.deleting:
            await self._results.tell(pod, idle_test.end_of(pod), now)
            if idle_test.lost(pod, now):
                await self._results.tell_lost(pod, now)
            return False
        end = self._taken_back(pod, policy, now)
        if end is None:
            return False
        await self._results.tell(pod, end, now)
        await self._delete(pod)
        return True

    async def _look_at_neighbour(self, pod: Pod, now: datetime) -> bool:
        """The other end of a measurement, which says nothing of its own node: take it back once it is of no use."""
        if pod.deleting:
            if idle_test.lost(pod, now):
                await self._results.tell_lost(pod, now)
            return False
        why = "it has ended" if pod.ended else self._no_neighbour(pod, now)
        if not why:
            return False
        log.info("neighbour given back", node=pod.tested, policy=pod.idle_test, why=why, message=pod.message)
        await self._delete(pod)
        return True

    def _no_neighbour(self, pod: Pod, now: datetime) -> str:
        """Why it is taken back; "" where it may go on."""
        node = self._cache.nodes.get(pod.tested)
        goes_on = self._cache.unfinished_operations
        operation = next((each for each in goes_on if each.uid == pod.neighbour_of), None)
        obstacle = idle_test.in_the_way(node, self._nodes.holders(node)) if node is not None else ""
        leaving = "nodes are given back before Remediator is taken away" if self._cache.leaving else ""
        return leaving or neighbour.gives_way(pod, operation, node, obstacle, now)

    def _end_of(self, pod: Pod) -> IdleEnd:
        """How a test ended by itself: beside a repair, on another node or in another boot it proves nothing."""
        node = self._cache.nodes.get(pod.tested)
        if node is None or idle_test.in_the_way(node, self._nodes.holders(node)):
            return IdleEnd.GAVE_WAY
        elsewhere = pod.node not in ("", node.name) or pod.tested_boot != node.boot_id
        return IdleEnd.CANNOT_TELL if elsewhere else idle_test.end_of(pod)

    def _taken_back(self, pod: Pod, policy: Policy | None, now: datetime) -> IdleEnd | None:
        """Why a test may not go on; None where it may."""
        node = self._cache.nodes.get(pod.tested)
        if policy is None or policy.idle_test is None or self._cache.leaving or node is None:
            return IdleEnd.GAVE_WAY
        if idle_test.in_the_way(node, self._nodes.holders(node)):
            return IdleEnd.GAVE_WAY
        template = self._cache.templates.get(pod.template)
        timeout = template.timeout if template is not None else timedelta(0)
        return idle_test.end_of(pod) if idle_test.overdue(pod, timeout, now) else None

    async def _delete(self, pod: Pod) -> None:
        await self._performer.all([Delete(POD, pod.name, pod.uid, pod.namespace)])

    # --- new tests ---------------------------------------------------------------------------------------------------

    async def _begin(self, policy: Policy, test: IdleTest, now: datetime) -> float:
        """Make tests where the share, the window and the nodes allow; seconds until the next look."""
        opened = windows.opened(test.window, now)
        template = self._cache.templates.get(test.probe)
        stopped = idle_test.stops_new(policy, self._cache.paused) or idle_test.cannot_run(template, test)
        if opened is None or stopped or template is None or self._cache.silent or not self._gpu_pods.fresh():
            return LOOK
        selected, candidates = await self._nodes.candidates(policy, template, opened, now)
        most = idle_test.allowed(test, selected)
        known = {pod.name for pod in self._cache.pods.by("idle_test", policy.name) if not pod.neighbour_of}
        if not candidates or not idle_test.free_slots(policy.name, most, known):
            return LOOK
        slots, chosen = await self._free_slots(policy, most), idle_test.longest_untested(candidates, MOST_A_LOOK)
        for slot, name in zip(slots[:MOST_A_LOOK], chosen, strict=False):
            if (wait := await self._make(policy, slot, name, template, now)) is not None:
                return max(LOOK, wait)
        return SOON if len(slots) > MOST_A_LOOK and len(candidates) > MOST_A_LOOK else LOOK

    async def _free_slots(self, policy: Policy, most: int) -> list[str]:
        """The free names by a live list: none where the API server does not say."""
        labels = f"{names.IDLE_TEST}=true"
        try:
            heads = await self._performer.client.list_all(
                POD_HEAD, namespace=self._cache.namespaces.operations, labels=labels
            )
        except ApiError as error:
            log.warning("tests of idle nodes not listed: none begins", answer=str(error))
            return []
        asked = f"{policy.name}/"
        tests = [head.metadata for head in heads if names.NEIGHBOUR_OF not in head.metadata.labels]
        ours = [meta for meta in tests if meta.annotations.get(names.IDLE_TEST, "").startswith(asked)]
        return idle_test.free_slots(policy.name, most, {meta.name for meta in ours})

    async def _make(self, policy: Policy, slot: str, name: str, template: Template, now: datetime) -> float | None:
        """One test, of a policy and a node that are read live: what a user has just stopped does not begin.

        Seconds until the API server is asked again where it has refused; None where it has not.
        """
        try:
            live, node = await self._performer.policy(policy.name), await self._performer.node(name)
        except ApiError:
            return LOOK
        if live is None or node is None or live.idle_test != policy.idle_test or live.mode is not policy.mode:
            return LOOK
        first = idle_test.tester(node, [live, *(each for each in self._cache.policies if each.name != live.name)])
        if first != live.name or self._nodes.obstacle(node, template):
            return None
        body = encode.idle_test_pod(template, slot, policy.name, node, now)
        return seconds(await self._performer.all([Create(POD, body, gated=True)]))


def _asks(policy: Policy | None) -> object:
    """What of a policy decides which nodes are tested at all."""
    asks = policy is not None and (policy.idle_test is not None or policy.unreadable)
    return (policy.selector, policy.unreadable) if policy is not None and asks else None


def _differs(old: Node | None, new: Node) -> bool:
    """Whether the Condition may have to say something else."""
    before = old.conditions.get(IDLE_TEST_FAILED) if old else None
    return old is None or before != new.conditions.get(IDLE_TEST_FAILED) or old.labels != new.labels
