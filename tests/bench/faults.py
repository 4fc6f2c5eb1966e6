"""One fault on one node, and the moment at which the API server shows that somebody has claimed the node."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import msgspec

from remediator.core import names
from remediator.kube import api
from remediator.kube.wire import frames as wire
from remediator.kube.wire.client import Client, check
from remediator.kube.wire.transport import STRATEGIC_PATCH
from tests.bench import floor
from tests.bench.numbers import stamp
from tests.harness.kinds import NODES
from tests.harness.waiting import until

CLAIM_SECONDS, SETTLE_SECONDS = 60.0, 60.0
POLICY = "bench"


class Side(NamedTuple):
    """Who answers: which condition is its fault, and which taint is its claim."""

    name: str
    condition: str
    taint: str


REMEDIATOR = Side("remediator", "BenchFault", names.CASE_TAINT)
FLOOR = Side("floor", floor.CONDITION, floor.TAINT)


class _Named(msgspec.Struct):
    name: str


class _Taint(msgspec.Struct):
    key: str


class _Spec(msgspec.Struct):
    taints: list[_Taint] = []


class _Node(msgspec.Struct):
    metadata: _Named
    spec: _Spec = msgspec.field(default_factory=_Spec)


class Sightings:
    """A watch on nodes that tells when a taint was first seen on a node, on the loop's clock."""

    def __init__(self) -> None:
        self._awaited: dict[tuple[str, str], asyncio.Future[float]] = {}
        self._node = msgspec.json.Decoder(_Node).decode

    def taint(self, node: str, key: str) -> asyncio.Future[float]:
        """When the taint is seen on the node; ask before it can be there."""
        return self._awaited.setdefault((node, key), asyncio.get_running_loop().create_future())

    async def follow(self, client: Client, version: str, opened: asyncio.Event) -> None:
        """Watch from `version` on. Raises RuntimeError when the watch ends: what it missed is unknown."""
        query = [("watch", "true"), ("resourceVersion", version), ("timeoutSeconds", "86400")]
        async with client.transport.stream(NODES.path(), query=query, idle_timeout=3600) as stream:
            opened.set()
            async for line in wire.lines(aiter(stream)):
                self._see(self._node(wire.EVENT.decode(line).object), asyncio.get_running_loop().time())
        raise RuntimeError("the watch of the benchmark ended")

    def _see(self, node: _Node, now: float) -> None:
        for taint in node.spec.taints:
            found = self._awaited.get((node.metadata.name, taint.key))
            if found is not None and not found.done():
                found.set_result(now)


@asynccontextmanager
async def sightings(client: Client) -> AsyncIterator[Sightings]:
    """A watch that lasts as long as the context; if it breaks, so does the context."""
    page = msgspec.json.decode(check(await client.transport.request("GET", NODES.path(), query=[("limit", "1")])).body)
    seen, opened = Sightings(), asyncio.Event()
    watch = asyncio.create_task(seen.follow(client, page["metadata"]["resourceVersion"], opened))
    try:
        await opened.wait()
        yield seen
    finally:
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch


async def claimed_after(client: Client, seen: Sightings, side: Side, node: str) -> float:
    """Make one fault; seconds from the answer to the patch that makes it to the sight of the claim."""
    claim = seen.taint(node, side.taint)
    path, body = NODES.path(node, subresource="status"), msgspec.json.encode(condition(side.condition, "True"))
    check(await client.transport.request("PATCH", path, body=body, content_type=STRATEGIC_PATCH))
    answered = asyncio.get_running_loop().time()
    try:
        return await asyncio.wait_for(claim, CLAIM_SECONDS) - answered
    except TimeoutError:
        raise TimeoutError(f"{side.name} has not claimed {node} within {CLAIM_SECONDS:.0f} s") from None


def condition(name: str, status: str) -> dict:
    """A patch of a node's status that sets one condition now."""
    now = stamp()
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    found = {"type": name, "status": status, "reason": "Bench", "message": "set by the benchmark", **times}
    return {"status": {"conditions": [found]}}


async def settle(client: Client) -> None:
    """Wait until the case was handed over, take it away, and wait until nothing of it is left."""

    async def escalated() -> bool:
        cases = await client.list_all(api.CASE)
        return bool(cases) and all(case.status.phase == "Escalated" for case in cases)

    async def gone() -> bool:
        budgets = await client.list_all(api.BUDGET)
        left = [*await client.list_all(api.CASE), *await client.list_all(api.OPERATION)]
        return not left and not any(budget.status.claims for budget in budgets)

    await until(escalated, SETTLE_SECONDS)
    for kind in (api.OPERATION, api.CASE):
        for found in await client.list_all(kind):
            await client.delete(kind, found.metadata.name)
    await until(gone, SETTLE_SECONDS)
    closed = {"metadata": {"annotations": {names.BREAKER_CLOSED_AT: stamp()}}}  # all that was tried here was in vain
    await client.patch(api.POLICY, POLICY, closed)
