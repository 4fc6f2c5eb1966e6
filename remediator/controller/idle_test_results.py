"""What tests of idle nodes have found: kept in inventories, told once, and shown as the Condition IdleTestFailed."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

import structlog

from remediator import metrics
from remediator.controller.cache import ClusterCache
from remediator.controller.effects import Create, Done, EffectResult, GaveUp, Patch, Retry
from remediator.controller.node_conditions.write import write
from remediator.controller.perform import Performer
from remediator.core import idle_result, idle_test, names
from remediator.core.idle_result import IDLE_TEST_FAILED
from remediator.core.idle_test import IdleEnd
from remediator.core.node_inventory import Inventory
from remediator.core.pod import Pod
from remediator.kube import api
from remediator.kube.api import encode
from remediator.kube.api.builtin import EVENT
from remediator.kube.runtime.informer import Informer

log = structlog.get_logger()
MADE = Retry(5.0, "its inventory has just been made")
MOST_WORDS = 1024  # of an Event


class _Quiet(NamedTuple):
    """A node of which tests have said nothing so many times in a row: until when it is left alone."""

    times: int
    until: datetime


class IdleTestResults:
    """Those of all tests.

    What a test that says nothing has cost is kept in memory alone: who leads next tries the node again.
    """

    def __init__(self, inventories: Informer[Inventory], cache: ClusterCache, performer: Performer) -> None:
        self._inventories, self._cache, self._performer = inventories, cache, performer
        self.forget()

    def forget(self) -> None:
        """Begin anew: somebody else may have led meanwhile."""
        self._quiet: dict[str, _Quiet] = {}
        self._told: set[str] = set()  # uids of tests whose end was told
        self._lost: set[str] = set()  # of those that no kubelet has ended, which was told

    def keep_only(self, uids: set[str]) -> None:
        """Forget all tests but these, which are still there."""
        self._told &= uids
        self._lost &= uids

    def own(self, node: str) -> Inventory | None:
        """The inventory of a node, if it is that."""
        own = self._inventories.get(node)
        return own if own is not None and own.node == node else None

    def failed(self) -> Iterator[str]:
        """The nodes whose newest test has failed."""
        return (each.node for each in self._inventories if each.tested and not each.tested.passed)

    def is_quiet(self, name: str, now: datetime) -> bool:
        """Whether a node is left alone for a while: tests have said nothing of it."""
        quiet = self._quiet.get(name)
        return quiet is not None and now < quiet.until

    async def tell(self, pod: Pod, end: IdleEnd, now: datetime) -> bool:
        """Keep what a test has found, once; of one that has found nothing, that. False where it is not kept yet."""
        if pod.uid in self._told:
            return True
        kept = await self._keep(pod, end, now) if end.proves else Done()
        if isinstance(kept, Retry):
            return False
        if isinstance(kept, GaveUp):
            log.warning("the result of an idle test cannot be kept", node=pod.tested, end=end.value, once=True)
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
            return made if isinstance(made, GaveUp) else MADE
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

    async def tell_lost(self, pod: Pod, now: datetime) -> None:
        """Say once that no kubelet has ended it: it may still run where nobody sees it, and keeps its place."""
        if pod.uid in self._lost:
            return
        self._lost.add(pod.uid)
        metrics.IDLE_TESTS.labels(IdleEnd.LOST.value).inc()
        sentence = (
            f"no kubelet has ended the test {pod.name} of {pod.tested}: it counts until the node is back or deleted"
        )
        await self._event(pod, IdleEnd.LOST, sentence, now)

    async def say(self, name: str, now: datetime) -> float | None:
        """Keep the Condition of a node of which a test has said something."""
        node, own = self._cache.nodes.get(name), self.own(name)
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
