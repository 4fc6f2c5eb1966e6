"""Another system that drains nodes: it sees the request on the node, and says by a Condition when it is done."""

import asyncio
import contextvars
from contextlib import suppress
from random import Random
from typing import Any

from remediator.core.names import DRAIN_REQUESTED
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.times import stamp
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.apiserver.store import Change, Listener
from remediator_sim.plain import NODES, Object
from remediator_sim.simulation.clock import true_time

CONDITION = "SlurmDrained"
TEMPLATES: Kind[Any] = Kind(
    "remediator.dev", "v1alpha1", "nodeoperationtemplates", "NodeOperationTemplate", dict[str, Any]
)
STALE, NEVER = 0.3, 0.1  # of the nodes at the begin; of the requests
DRAINS, BEAT, BEATS = (5.0, 600.0), 60.0, 20  # seconds that a drain takes; it says so again, so many times
LONG_AGO = "2026-11-19T00:00:00Z"


class Slurm:
    """It drains every node that asks for it, but for some."""

    def __init__(self, server: EmbeddedServer, client: Client, seed: int) -> None:
        self._client, self._chance = client, Random(f"slurm {seed}")
        self._asked: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        server.cluster.store.collection("nodes").listen(Listener(None, self._hear, lambda: None))

    async def begin(self, nodes: tuple[str, ...]) -> None:
        """Let reboots wait for it; on some nodes stands what was so long ago."""
        drain = {"strategy": "External", "condition": CONDITION, "timeout": "20m"}
        await self._client.patch(TEMPLATES, "reboot", {"spec": {"drain": drain}})
        for node in nodes:
            if self._chance.random() < STALE:
                await self._say(node, "True", LONG_AGO)

    def _hear(self, change: Change) -> None:
        node = change.entry.obj
        name, notes = node["metadata"]["name"], node["metadata"].get("annotations") or {}
        asked = "" if change.type == "DELETED" else notes.get(DRAIN_REQUESTED, "")
        if asked == self._asked.get(name, ""):
            return
        self._asked[name] = asked
        answer = self._drain(name, asked) if asked else self._say(name, "False")
        task = asyncio.get_running_loop().create_task(answer, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _drain(self, name: str, asked: str) -> None:
        never, seconds = self._chance.random() < NEVER, self._chance.uniform(*DRAINS)
        await asyncio.sleep(seconds)
        for _ in range(0 if never else BEATS):
            if self._asked.get(name) != asked:
                return
            await self._say(name, "True")
            await asyncio.sleep(BEAT)

    async def _say(self, name: str, status: str, at: str = "") -> None:
        time = at or stamp(true_time())
        condition: Object = {"type": CONDITION, "status": status, "reason": "Slurm"}
        condition |= {"lastTransitionTime": time, "lastHeartbeatTime": time}
        body = {"status": {"conditions": [condition]}}
        with suppress(errors.ApiError):
            await self._client.patch(NODES, name, body, content_type=STRATEGIC_PATCH, subresource="status")
