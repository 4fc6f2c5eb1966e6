"""Tests of idle nodes: Pods that give way to any other, a few at a time, and the Condition IdleTestFailed.

The names of the Pods are the fence: a policy has as many as nodes may be tested at once, and creating one twice fails.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from remediator import metrics, windows
from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.controller.effects import Create, Delete, Done, EffectResult, GaveUp, Patch, Retry
from remediator.controller.handlers.base import seconds
from remediator.controller.node_conditions.write import write
from remediator.controller.perform import Performer
from remediator.core import idle_result, idle_test, names
from remediator.core.case import Case
from remediator.core.idle_result import IDLE_TEST_FAILED
from remediator.core.idle_test import Candidate, IdleEnd, NodeUse
from remediator.core.node import Node
from remediator.core.node_inventory import Inventory
from remediator.core.pod import Pod
from remediator.core.policy import IdleTest, Policy
from remediator.core.template import Template
from remediator.kube import api
from remediator.kube.api import encode
from remediator.kube.api.builtin import EVENT, POD, POD_HEAD
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import LeaderQueue
from remediator.kube.runtime.turns import sliced
from remediator.kube.wire.errors import ApiError

log = structlog.get_logger()
AT_ONCE = 2  # passes
LOOK = 30.0  # seconds between two looks at a policy
SOON = 5.0  # seconds between two looks at the nodes, however often tests change
MOST_A_LOOK = 50  # tests that are made in one look
SLICE = 200  # nodes between two turns of the loop
MOST_WORDS = 1024  # of an Event


class IdleTestKey(NamedTuple):
    """What a pass is about: the tests of a policy, or the Condition of a node."""

    kind: str
    name: str


class _Quiet(NamedTuple):
    """A node of which tests have said nothing so many times in a row: until when it is left alone."""

    times: int
    until: datetime


class IdleTests:
    """Makes the tests, reads their results, and keeps the Condition. Only who leads writes.

    What a test that says nothing has cost is kept in memory alone: who leads next tries the node again.
    """

    def __init__(self, informers: Informers, cache: ClusterCache, performer: Performer, clock: Clock) -> None:
        self._cache, self._performer, self._clock = cache, performer, clock
        self._inventories, self._gpu_pods = informers.inventories, informers.gpu_pods
        self._quiet: dict[str, _Quiet] = {}
        self._told: set[str] = set()  # uids of tests whose end was told
        self._lost: set[str] = set()  # of those that no kubelet has ended, which was told
        self._gone: dict[str, Pod] = {}  # by uid: tests that went before their end was read
        self._looked: dict[str, datetime] = {}  # by policy: when its nodes were looked at last
        self.queue: LeaderQueue[IdleTestKey] = LeaderQueue(
            "idle tests",
            self._pass,
            self._everything,
            workers=AT_ONCE,
            informers=(self._inventories,),
            essential=False,
            ended=self._forget,
        )
        cache.pods.on_change(lambda _, old, new: self._on_pod(old, new))
        cache.policies.on_change(lambda _, old, new: self._on_policy(old, new))
        cache.nodes.on_change(lambda name, old, new: self._on_node(name, old, new))
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
        for each in self._inventories:
            if each.tested and not each.tested.passed:
                yield IdleTestKey("node", each.node)

    def _forget(self) -> None:
        self._quiet, self._told, self._lost, self._gone, self._looked = {}, set(), set(), {}, {}

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None or not pod.idle_test:
            return
        if old is not None and new is None and self.queue.leading and not old.ended:
            self._gone[old.uid] = old
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
            return await self._say(subject.name, now)
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
            await self._tell(pod, idle_test.end_of(pod) if pod.disrupted else IdleEnd.DELETED, now)
        known = self._gone.keys() | {pod.uid for pod in self._cache.pods if pod.idle_test}
        self._told &= known
        self._lost &= known

    async def _say(self, name: str, now: datetime) -> float | None:
        """Keep the Condition of a node of which a test has said something."""
        node, own = self._cache.nodes.get(name), self._own(name)
        if node is None or own is None:
            return None
        asked = own.tested is None or idle_test.asked(node, own.tested, self._cache.policies)
        words = idle_test.condition(node, own.tested, self._cache.cases.by("node", name), asked=asked)
        if words is None:
            return None
        stands = words.status.value == "True" or self._cache.has_open_case(name)
        before = node.conditions.get(IDLE_TEST_FAILED)
        if not stands and before is not None and (before.status, before.reason) == (words.status, words.reason):
            return None  # what is well, and nobody waits for, is not said again
        again = await write(self._performer, self._cache, node, words, now)
        return again if stands else None

    async def _look_at(self, pod: Pod, policy: Policy | None, now: datetime) -> bool:
        """One test: read its end, or take it back. Returns whether its place is becoming free."""
        if pod.ended and not pod.deleting:
            if await self._tell(pod, self._end_of(pod), now):
                await self._delete(pod)
            return True
        if pod.deleting:
            await self._tell(pod, idle_test.end_of(pod), now)
            if idle_test.lost(pod, now):
                await self._tell_lost(pod, now)
            return False
        end = self._taken_back(pod, policy, now)
        if end is None:
            return False
        await self._tell(pod, end, now)
        await self._delete(pod)
        return True

    def _end_of(self, pod: Pod) -> IdleEnd:
        """How a test ended by itself: beside a repair, on another node or in another boot it proves nothing."""
        node = self._cache.nodes.get(pod.tested)
        if node is None or idle_test.in_the_way(node, self._holders(node)):
            return IdleEnd.GAVE_WAY
        elsewhere = pod.node not in ("", node.name) or pod.tested_boot != node.boot_id
        return IdleEnd.CANNOT_TELL if elsewhere else idle_test.end_of(pod)

    def _taken_back(self, pod: Pod, policy: Policy | None, now: datetime) -> IdleEnd | None:
        """Why a test may not go on; None where it may."""
        node = self._cache.nodes.get(pod.tested)
        if policy is None or policy.idle_test is None or self._cache.leaving or node is None:
            return IdleEnd.GAVE_WAY
        if idle_test.in_the_way(node, self._holders(node)):
            return IdleEnd.GAVE_WAY
        template = self._cache.templates.get(pod.template)
        timeout = template.timeout if template is not None else timedelta(0)
        return idle_test.end_of(pod) if idle_test.overdue(pod, timeout, now) else None

    async def _delete(self, pod: Pod) -> None:
        await self._performer.all([Delete(POD, pod.name, pod.uid, pod.namespace)])

    async def _tell_lost(self, pod: Pod, now: datetime) -> None:
        """Say once that no kubelet has ended it: it may still run where nobody sees it, and keeps its place."""
        if pod.uid in self._lost:
            return
        self._lost.add(pod.uid)
        metrics.IDLE_TESTS.labels(IdleEnd.LOST.value).inc()
        sentence = (
            f"no kubelet has ended the test {pod.name} of {pod.tested}: it counts until the node is back or deleted"
        )
        await self._event(pod, IdleEnd.LOST, sentence, now)

    # --- results -----------------------------------------------------------------------------------------------------

    async def _tell(self, pod: Pod, end: IdleEnd, now: datetime) -> bool:
        """Keep what a test has found, once; of one that has found nothing, that. False where it is not kept yet."""
        if pod.uid in self._told:
            return True
        kept = await self._keep(pod, end, now) if end.proves else Done()
        if isinstance(kept, Retry):
            return False
        if isinstance(kept, GaveUp):
            log.warning("the result of an idle test cannot be kept", node=pod.tested, end=end.value)
            end = IdleEnd.CANNOT_TELL
        self._told.add(pod.uid)
        metrics.IDLE_TESTS.labels(end.value).inc()
        log.info("idle test", node=pod.tested, policy=pod.idle_test, end=end.value, message=pod.message)
        if end.proves:
            self._quiet.pop(pod.tested, None)
        else:
            times = self._quiet[pod.tested].times + 1 if pod.tested in self._quiet else 1
            self._quiet[pod.tested] = _Quiet(times, now + idle_test.pause(times))
        if end is not IdleEnd.PASSED:
            await self._event(pod, end, pod.message or "it has said nothing", now)
        return True

    async def _keep(self, pod: Pod, end: IdleEnd, now: datetime) -> EffectResult:
        """Write the result into the node's inventory."""
        node, own = self._cache.nodes.get(pod.tested), self._inventories.get(pod.tested)
        if node is None:
            return Done()
        if own is None:
            made = await self._performer.all([Create(api.INVENTORY, encode.new_inventory(node.name))])
            return made if isinstance(made, GaveUp) else Retry(SOON, "its inventory has just been made")
        if own.unreadable or own.node != node.name:
            return GaveUp(f"NodeInventory {own.name} is not one of this node that can be read")
        result = idle_test.result_of(pod, pod.template, end, node.boot_id, now)
        gpus = idle_result.merged(own.tested_gpus, idle_result.of_gpus(result, pod.message))
        after = replace(own, tested=result, tested_gpus=gpus)
        patch = Patch(api.INVENTORY, own.name, encode.inventory_status(own, after), subresource="status")
        return await self._performer.all([patch])

    async def _event(self, pod: Pod, end: IdleEnd, message: str, now: datetime) -> None:
        node = self._cache.nodes.get(pod.tested)
        if node is None:
            return
        name = names.name(node.name, "idle-test", pod.uid, end.value)
        text = f"idle test of policy {pod.idle_test}: {message}"[:MOST_WORDS]
        body = encode.node_event(name, node, f"IdleTest{end.value}", text, now)
        await self._performer.all([Create(EVENT, body, namespace="default")])

    # --- new tests ---------------------------------------------------------------------------------------------------

    async def _begin(self, policy: Policy, test: IdleTest, now: datetime) -> float:
        """Make tests where the share, the window and the nodes allow; seconds until the next look."""
        opened = windows.opened(test.window, now)
        template = self._cache.templates.get(test.probe)
        stopped = idle_test.stops_new(policy, self._cache.paused) or idle_test.cannot_run(template, test)
        if opened is None or stopped or template is None or self._cache.silent or not self._gpu_pods.fresh():
            return LOOK
        selected, candidates = await self._candidates(policy, template, opened, now)
        most = idle_test.allowed(test, selected)
        known = {pod.name for pod in self._cache.pods.by("idle_test", policy.name)}
        if not candidates or not idle_test.free_slots(policy.name, most, known):
            return LOOK
        slots, chosen = await self._free_slots(policy, most), idle_test.longest_untested(candidates, MOST_A_LOOK)
        for slot, name in zip(slots[:MOST_A_LOOK], chosen, strict=False):
            if (wait := await self._make(policy, slot, name, template, now)) is not None:
                return max(LOOK, wait)
        return SOON if len(slots) > MOST_A_LOOK and len(candidates) > MOST_A_LOOK else LOOK

    async def _candidates(
        self, policy: Policy, template: Template, opened: datetime, now: datetime
    ) -> tuple[int, list[Candidate]]:
        """How many nodes the policy selects, and those that may be tested. Each node is looked at once."""
        asking = [each for each in self._cache.policies if each.idle_test is not None]
        selected, candidates = 0, []
        async for node in sliced(list(self._cache.nodes), SLICE):
            if not policy.selects(node):
                continue
            selected += 1
            own = self._own(node.name)
            tested = own.tested if own is not None else None
            own_turn = idle_test.tester(node, asking) == policy.name
            free = own_turn and not self._cache.pods.by("tested", node.name)
            due = free and idle_test.is_due(tested, policy.name, opened)
            if due and not self._is_quiet(node.name, now) and not self._obstacle(node, template):
                candidates.append(Candidate(tested.at.timestamp() if tested else 0.0, node.name))
        return selected, candidates

    def _is_quiet(self, name: str, now: datetime) -> bool:
        quiet = self._quiet.get(name)
        return quiet is not None and now < quiet.until

    def _obstacle(self, node: Node, template: Template) -> str:
        spare = self._cache.spare
        held = spare is None or bool(spare.held_on(node.name))
        return idle_test.obstacle(node, NodeUse(self._holders(node), held), template)

    def _holders(self, node: Node) -> list[Case]:
        """The cases that may work on the node, or have not given it back: not those of policies that only watch."""
        cases = self._cache.cases.by("node", node.name)
        return [case for case in cases if case.claimed or not self._only_watches(case.policy)]

    def _only_watches(self, name: str) -> bool:
        policy = self._cache.policies.get(name)
        return policy is not None and not policy.acts

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
        ours = [head.metadata for head in heads if head.metadata.annotations.get(names.IDLE_TEST, "").startswith(asked)]
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
        if first != live.name or self._obstacle(node, template):
            return None
        body = encode.idle_test_pod(template, slot, policy.name, node, now)
        return seconds(await self._performer.all([Create(POD, body, gated=True)]))

    def _own(self, name: str) -> Inventory | None:
        own = self._inventories.get(name)
        return own if own is not None and own.node == name else None


def _asks(policy: Policy | None) -> object:
    """What of a policy decides which nodes are tested at all."""
    asks = policy is not None and (policy.idle_test is not None or policy.unreadable)
    return (policy.selector, policy.unreadable) if policy is not None and asks else None


def _differs(old: Node | None, new: Node) -> bool:
    """Whether the Condition may have to say something else."""
    before = old.conditions.get(IDLE_TEST_FAILED) if old else None
    return old is None or before != new.conditions.get(IDLE_TEST_FAILED) or old.labels != new.labels
