"""What anybody with a kubeconfig can see: cases, operations, nodes, tickets, and each change as a line."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from remediator.core import names
from remediator.kube import api
from remediator.kube.runtime.reflector import Reflector
from remediator.kube.wire.client import Client, Kind
from remediator_sim.plain import NODES, Object, condition_status, of_node, plain, whole


class ViewLine(NamedTuple):
    """One thing that happened: to which node, one word for it, and a sentence."""

    node: str
    reason: str
    text: str


CASES, OPERATIONS, TICKETS = plain(api.CASE), plain(api.OPERATION), plain(api.TICKET)


class View:
    """The objects as the server last sent them.

    `report` is given each new line of a case's timeline, but not of cases of the policies in `quiet`: many nodes say
    the same there.
    """

    def __init__(self, client: Client, report: Callable[[ViewLine], None], quiet: Collection[str] = ()) -> None:
        self._report, self._quiet, self._changed = report, quiet, asyncio.Event()
        listeners = {CASES: self._on_case, OPERATIONS: self._on_operation, NODES: self._on_any, TICKETS: self._on_any}
        self._reflectors = {kind: Reflector(client, kind, whole, listener) for kind, listener in listeners.items()}

    async def run(self) -> None:
        """Follow the server until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors.values():
                group.create_task(reflector.run())

    async def changed(self, seconds: float) -> None:
        """Wait for the next change, at most so long."""
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # wait_for would lose a cancellation that comes with a change
                await self._changed.wait()

    def all(self, kind: Kind[Object]) -> list[Object]:
        """The objects of a kind, oldest first."""
        objects = self._reflectors[kind].store.values()
        return sorted(objects, key=lambda obj: (obj["metadata"]["creationTimestamp"], obj["metadata"]["name"]))

    def of(self, kind: Kind[Object], node: str) -> list[Object]:
        """Those of one node."""
        return of_node(self.all(kind), node)

    def case(self, node: str, policy: str) -> Object | None:
        """The newest case of a node under a policy."""
        return next((case for case in reversed(self.of(CASES, node)) if case["spec"].get("policyName") == policy), None)

    def node(self, name: str) -> Object:
        """One node; an empty object where there is none."""
        return self._reflectors[NODES].store.get(name, {})

    def condition(self, node: str, kind: str) -> str:
        """The status of one condition of a node; "" where it has none."""
        return condition_status(self.node(node), kind)

    def marks(self, node: str) -> list[str]:
        """What of ours is on a node now."""
        spec, annotations = self.node(node).get("spec", {}), self.node(node)["metadata"].get("annotations", {})
        taints = [taint["key"] for taint in spec.get("taints", ()) if taint["key"].startswith(names.GROUP)]
        return [*taints, *(key for key in annotations if key == names.CORDONED_BY)]

    def _on_any(self, key: str, old: Object | None, new: Object | None) -> None:
        self._changed.set()

    def _on_case(self, key: str, old: Object | None, new: Object | None) -> None:
        self._changed.set()
        if new is None or new["spec"].get("policyName") in self._quiet:
            return
        before, now = _timeline(old), _timeline(new)
        for event in now[len(before) :] if now[: len(before)] == before else now[-1:]:
            self._report(ViewLine(new["spec"]["nodeName"], event["reason"], event.get("message", "")))

    def _on_operation(self, key: str, old: Object | None, new: Object | None) -> None:
        self._changed.set()
        for pod in blocked_pods(new):
            if new is not None and pod not in blocked_pods(old):
                text = f"{pod['pod']} may not be evicted: PodDisruptionBudget {pod.get('pdb', '?')}"
                self._report(ViewLine(new["spec"]["nodeName"], "DrainBlocked", text))


def blocked_pods(operation: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """The Pods that a drain may not evict now: pod, pdb."""
    return list((operation or {}).get("status", {}).get("drain", {}).get("blocked", ()))


def _timeline(case: Mapping[str, Any] | None) -> list[dict[str, str]]:
    return list((case or {}).get("status", {}).get("timeline", ()))
