"""What anybody with a kubeconfig can see: cases, operations, nodes, tickets, and each change as a line."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from remediator.core import names
from remediator.kube import api
from remediator.kube.runtime.reflector import Reflector
from remediator.kube.wire.client import Client, Kind
from remediator_sim.plain import NODES, Object, plain, whole


class Line(NamedTuple):
    """One thing that happened to one node."""

    node: str
    word: str
    text: str


CASES, OPERATIONS, TICKETS = plain(api.CASE), plain(api.OPERATION), plain(api.TICKET)


class View:
    """The objects as the server last sent them. `tell` hears of each new line of a case's timeline."""

    def __init__(self, client: Client, tell: Callable[[Line], None]) -> None:
        self._tell, self._changed = tell, asyncio.Event()
        hears = {CASES: self._case, OPERATIONS: self._operation, NODES: self._hear, TICKETS: self._hear}
        self._watches = {kind: Reflector(client, kind, whole, hear) for kind, hear in hears.items()}

    async def run(self) -> None:
        """Follow the server until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._watches.values():
                group.create_task(reflector.run())

    async def changed(self, seconds: float) -> None:
        """Wait for the next change, at most so long."""
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # wait_for would lose a cancellation that comes with a change
                await self._changed.wait()

    def all(self, kind: Kind[Object]) -> list[Object]:
        """The objects of a kind, oldest first."""
        found = self._watches[kind].store.values()
        return sorted(found, key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"]))

    def of(self, kind: Kind[Object], node: str) -> list[Object]:
        """Those of one node."""
        return [one for one in self.all(kind) if one["spec"].get("nodeName") == node]

    def case(self, node: str, policy: str) -> Object | None:
        """The newest case of a node under a policy."""
        return next((one for one in reversed(self.of(CASES, node)) if one["spec"]["policyName"] == policy), None)

    def node(self, name: str) -> Object:
        """One node; an empty object where there is none."""
        return self._watches[NODES].store.get(name, {})

    def condition(self, node: str, kind: str) -> str:
        """The status of one condition of a node; "" where it has none."""
        found = self.node(node).get("status", {}).get("conditions", ())
        return next((one["status"] for one in found if one["type"] == kind), "")

    def marks(self, node: str) -> list[str]:
        """What of ours is on a node now."""
        spec, notes = self.node(node).get("spec", {}), self.node(node)["metadata"].get("annotations", {})
        taints = [taint["key"] for taint in spec.get("taints", ()) if taint["key"].startswith(names.GROUP)]
        return [*taints, *(key for key in notes if key == names.CORDONED_BY)]

    def _hear(self, key: str, old: Object | None, new: Object | None) -> None:
        self._changed.set()

    def _case(self, key: str, old: Object | None, new: Object | None) -> None:
        self._changed.set()
        before, now = (_timeline(one) for one in (old, new))
        for moment in now[len(before) :] if now[: len(before)] == before else now[-1:]:
            self._tell(Line((new or {})["spec"]["nodeName"], moment["reason"], moment.get("message", "")))

    def _operation(self, key: str, old: Object | None, new: Object | None) -> None:
        self._changed.set()
        for blocked in _blocked(new):
            if new is not None and blocked not in _blocked(old):
                said = f"{blocked['pod']} may not be evicted: PodDisruptionBudget {blocked.get('pdb', '?')}"
                self._tell(Line(new["spec"]["nodeName"], "DrainBlocked", said))


def _timeline(case: Mapping[str, Any] | None) -> list[dict[str, str]]:
    return list((case or {}).get("status", {}).get("timeline", ()))


def _blocked(operation: Mapping[str, Any] | None) -> list[dict[str, str]]:
    return list((operation or {}).get("status", {}).get("drain", {}).get("blocked", ()))
