"""The fleet as the extender sees it: one row per node, kept by watches of its own and independent of who leads."""

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from sys import intern
from typing import Any, NamedTuple

import structlog

from remediator.clock import Clock
from remediator.core.node import Node
from remediator.core.policy import Policy
from remediator.kube import api
from remediator.kube.api import decode as codec
from remediator.kube.api import gpu_pods
from remediator.kube.runtime.reflector import Reflector
from remediator.kube.wire.client import Client
from remediator.scheduler.verdict import CaseSummary, Gpus, NodeState, health, summary

ROUND_SECONDS = 60.0  # evidence grows old and repairs are forgotten without any event
SLICE = 20  # nodes judged without letting a request in
log = structlog.get_logger(__name__)


class GpuNode(NamedTuple):
    """A node and the GPUs that it offers."""

    node: Node
    gpus: Gpus


class Holding(NamedTuple):
    """The GPUs that one Pod holds. Most Pods hold none, and all of those are this one fact."""

    node: str = ""
    gpus: Gpus = ()


NOTHING = Holding()
Watch = Reflector[Any, Any]


class Fleet:
    """Follows nodes, Pods, cases and policies; `on_row(name, old, new)` tells of each node whose row has changed.

    Nothing is judged before every list is complete: `rows` is empty until then.
    """

    def __init__(
        self, client: Client, on_row: Callable[[str, NodeState | None, NodeState | None], None], clock: Clock
    ) -> None:
        self.rows: dict[str, NodeState] = {}
        self.complete = False
        self._on_row, self._clock = on_row, clock
        self._used: dict[str, Counter[str]] = {}
        self._cases: dict[str, dict[str, CaseSummary]] = {}
        self._policies_moved = asyncio.Event()
        self._nodes: Reflector[gpu_pods.Node, GpuNode] = Reflector(client, gpu_pods.NODE, gpu_node, self._on_node)
        self._policies = Reflector(client, api.POLICY, codec.remediation_policy, self._on_policy)
        pods: Watch = Reflector(client, gpu_pods.POD, holding, self._on_pod, fields=gpu_pods.RUNNING)
        cases: Watch = Reflector(client, api.CASE, _summary, self._on_case)
        self._watches: tuple[Watch, ...] = (self._nodes, self._policies, pods, cases)

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        async with asyncio.TaskGroup() as group:
            for watch in self._watches:
                group.create_task(watch.run())
            await asyncio.gather(*(watch.synced.wait() for watch in self._watches))
            self.complete = True
            self._judge(self._nodes.store)
            gc.collect()
            gc.freeze()  # the rows live as long as we do; walking them again and again is what makes a request late
            log.info("extender synced", nodes=len(self.rows))
            await self._keep_judging()

    def fresh(self) -> bool:
        """Whether everything is known and every watch shows signs of life."""
        return self.complete and all(watch.fresh() for watch in self._watches)

    def row(self, found: GpuNode) -> NodeState:
        """The row of a node as somebody else describes it, with what we know of its cases and Pods."""
        return self._row(found, self._clock.wall())

    # --- events ------------------------------------------------------------------------------------------------------

    def _on_node(self, key: str, old: GpuNode | None, new: GpuNode | None) -> None:
        self._judge([key])

    def _on_case(self, key: str, old: CaseSummary | None, new: CaseSummary | None) -> None:
        for case in (old, new):
            if case is not None:
                self._cases.setdefault(case.node, {}).pop(key, None)
        if new is not None:
            self._cases[new.node][key] = new
        self._judge({case.node for case in (old, new) if case is not None})

    def _on_pod(self, key: str, old: Holding | None, new: Holding | None) -> None:
        """GPUs change hands; health has nothing to do with it, so nothing is judged anew."""
        old, new = old or NOTHING, new or NOTHING
        if old == new:
            return
        self._used.setdefault(old.node, Counter()).subtract(dict(old.gpus))
        self._used.setdefault(new.node, Counter()).update(dict(new.gpus))
        for name in {old.node, new.node}:
            used, row = self._held(name), self.rows.get(name)
            if row is not None:
                self._put(name, row._replace(used=used))

    def _on_policy(self, key: str, old: Policy | None, new: Policy | None) -> None:
        """Status and versions of a policy move often; what it looks for, seldom."""
        if _looks_for(old) != _looks_for(new):
            self._policies_moved.set()

    # --- judging -----------------------------------------------------------------------------------------------------

    def _judge(self, names: Iterable[str]) -> None:
        if not self.complete:
            return
        now = self._clock.wall()
        for name in names:
            found = self._nodes.store.get(name)
            self._put(name, self._row(found, now) if found else None)

    def _row(self, found: GpuNode, now: datetime) -> NodeState:
        name = found.node.name
        cases = self._cases.get(name, {}).values()
        said = health(found.node, cases, self._policies.store.values(), now)
        return NodeState(said, found.gpus, self._held(name))

    def _held(self, name: str) -> Gpus:
        used = +self._used.get(name, Counter())
        if not used:
            self._used.pop(name, None)
        return tuple(sorted(used.items()))

    def _put(self, name: str, row: NodeState | None) -> None:
        old = self.rows.get(name)
        if old == row:
            return
        if row is None:
            del self.rows[name]
        else:
            self.rows[name] = row
        self._on_row(name, old, row)

    async def _keep_judging(self) -> None:
        """Every node once a minute, a few at a time; all of them at once, nearly, when a policy has changed."""
        while True:
            hurried = self._policies_moved.is_set()
            self._policies_moved.clear()
            names = list(self._nodes.store)
            for at in range(0, len(names) or 1, SLICE):
                self._judge(names[at : at + SLICE])
                if hurried:
                    await asyncio.sleep(0)
                elif await self._moved_within(ROUND_SECONDS * SLICE / max(len(names), SLICE)):
                    break

    async def _moved_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._policies_moved.wait()
        return False


def gpu_node(wire: gpu_pods.Node) -> GpuNode:
    """A Node with its GPUs. Nodes have a hundred labels each and nearly all of them in common: the words are shared."""
    labels = {intern(key): intern(value) for key, value in wire.metadata.labels.items()}
    return GpuNode(replace(codec.node(wire), labels=labels), gpu_pods.offered(wire))


def holding(wire: gpu_pods.Pod) -> Holding:
    """What a Pod that runs somewhere holds."""
    gpus = gpu_pods.asked(wire)
    return Holding(wire.spec.node_name or "", gpus) if gpus else NOTHING


def _summary(wire: api.NodeRemediation) -> CaseSummary:
    return summary(codec.remediation_case(wire))


def _looks_for(policy: Policy | None) -> object:
    return (policy.selector, policy.when) if policy else None
