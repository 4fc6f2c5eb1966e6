"""Plays Pods of a list against the extender over HTTP on loopback: its answers beside the scores of the replay."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import islice
from random import Random
from typing import Any, NamedTuple

import aiohttp
import msgspec
from aiohttp import web

from remediator.clock import SYSTEM
from remediator.core import names
from remediator.kube.api import gpu_pods
from remediator.kube.api.builtin import Quantities
from remediator.kube.informers import Informers
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.kube.wire.transport import Reply, Stream
from remediator.scheduler.attributes.catalog import WHOLE
from remediator.scheduler.extender import Extender
from remediator.scheduler.packing.points import POINTS, Score
from remediator.scheduler.packing.replay.engine import ReplayFleet, ScoringPolicy
from remediator.scheduler.packing.replay.report import workload_of
from remediator.scheduler.packing.replay.trace import Arrival, Trace, TraceNode, tuned
from remediator.scheduler.packing.room import CARD, NodeRoom
from remediator.scheduler.reasons import VerdictReason
from remediator.scheduler.row import NodeState
from remediator.scheduler.score import Scorer, Scoring
from remediator.web.extender import bodies, routes

HOST = "127.0.0.1"


class Agreement(NamedTuple):
    """`differing`: Pods of whose nodes one was scored or filtered otherwise; `slowest` of the answers, in ms."""

    pods: int
    differing: int
    median: float
    slowest: float


class _Nowhere:
    """No API server: what stands is put in by hand, and nothing is written."""

    async def request(self, method: str, path: str, **_: Any) -> Reply:
        raise errors.Unavailable(0, "", "a replay has no API server")

    def stream(self, path: str, **_: Any) -> AbstractAsyncContextManager[Stream]:
        raise errors.Unavailable(0, "", "a replay has no API server")

    async def close(self) -> None:
        """There is nothing to close."""


async def agreement(trace: Trace, seed: int, most: int) -> Agreement:
    """Place the first Pods of a list that ask for whole cards or none; cards that Pods share have other resources."""
    chance = Random(seed)
    machines, arrivals = tuned(trace, chance)
    whole = [arrival for arrival in arrivals if arrival.task.milli == CARD]
    workload = workload_of(trace._replace(arrivals=tuple(whole)))
    fleet = ReplayFleet(machines, ScoringPolicy("", POINTS[Score.FGD], workload), chance)
    client = Client(_Nowhere())
    extender = Extender(client, Informers(client, SYSTEM, names.Namespaces()), SYSTEM, (), Scoring(Score.FGD, workload))
    extender.stand({machine.name: _row(machine.room) for machine in machines})
    differing, seconds = 0, []
    async with _served(extender) as url, aiohttp.ClientSession() as session:
        for arrival in islice(whole, most):
            expected = {machines[at].name: score for at, score in fleet.scores(arrival).items()}
            began = SYSTEM.monotonic()
            answered = await _ask(session, url, arrival, list(expected))
            seconds.append(SYSTEM.monotonic() - began)
            differing += answered != {name: _HEALTHY + score for name, score in expected.items()}
            placed = fleet.place(arrival)
            if placed is not None:
                extender.stand(_changed(machines, fleet, placed[0]))
    seconds.sort()
    return Agreement(len(seconds), differing, 1000 * seconds[len(seconds) // 2], 1000 * seconds[-1])


_HEALTHY = Scorer().worst(VerdictReason.FIT)


def _row(room: NodeRoom) -> NodeState:
    """What the extender knows of such a node."""
    used = room.cards - len(room.rests)
    held = ((room.resource, used),) if used else ()
    return NodeState(VerdictReason.FIT, ((room.resource, room.cards),), held, room.facts, cpu=room.rounded.cpu)


def _changed(machines: list[TraceNode], fleet: ReplayFleet, at: int) -> dict[str, NodeState]:
    return {machines[at].name: _row(fleet.rooms[at])}


async def _ask(session: aiohttp.ClientSession, url: str, arrival: Arrival, nodes: list[str]) -> dict[str, int]:
    """What it scores of the nodes that it lets through."""
    body = {"Pod": _pod(arrival), "Nodes": None, "NodeNames": nodes}
    async with session.post(f"{url}/filter", json=body) as answer:
        body["NodeNames"] = (await answer.json())["NodeNames"]
    async with session.post(f"{url}/prioritize", json=body) as answer:
        return {entry["Host"]: entry["Score"] for entry in await answer.json()}


def _pod(arrival: Arrival) -> Any:
    requests: Quantities = {gpu_pods.CPU: f"{arrival.task.cpu}m"}
    if arrival.task.cards:
        requests[WHOLE] = str(arrival.task.cards)
    container = gpu_pods.Container(resources=gpu_pods.Resources(requests=requests))
    meta = gpu_pods.GpuPodMeta(annotations=gpu_pods.Annotations(gpu=arrival.asks or None))
    return msgspec.to_builtins(gpu_pods.GpuPod(metadata=meta, spec=gpu_pods.GpuPodSpec(containers=(container,))))


@asynccontextmanager
async def _served(extender: Extender) -> AsyncIterator[str]:
    app = web.Application()
    app.add_routes(routes(extender, bodies(False)))
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, 0)
        await site.start()
        yield f"http://{HOST}:{runner.addresses[0][1]}/scheduler"
    finally:
        await runner.cleanup()
