"""A cluster with shared GPUs over the embedded server, replicas that bind, and a judge of every write."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Protocol

from remediator.clock import SYSTEM, Clock
from remediator.core.names import Namespaces
from remediator.kube import api
from remediator.kube.api import shared_gpus
from remediator.kube.informers import Informers
from remediator.kube.wire.client import Client
from remediator.kube.wire.errors import Unavailable
from remediator.kube.wire.transport import Reply, Transport
from remediator.scheduler.shared.bind import Binder
from remediator.scheduler.shared.books import Books
from remediator.scheduler.shared.store import Store
from remediator.scheduler.shared.sweep import LedgerSweep
from tests.harness.cluster import MemoryCluster
from tests.harness.kinds import NODES, PODS
from tests.harness.late_news import LateNews
from tests.harness.replica import at_work
from tests.harness.waiting import until

MEMORY, COUNT = shared_gpus.MEMORY, shared_gpus.COUNT
INDEX = "ALIYUN_COM_GPU_MEM_IDX"
Object = dict[str, Any]


def node(name: str, *sizes: int, whole: int = 0, offered: int | None = None) -> Object:
    """A Node with cards of these sizes; unequal ones stand in its annotation."""
    room = {"cpu": "96", "pods": "999", MEMORY: str(sum(sizes)), COUNT: str(len(sizes))}
    room |= {"nvidia.com/gpu": str(whole)} if whole else {}
    written = {"remediator.dev/gpu-memory": ",".join(map(str, sizes))} if len(set(sizes)) > 1 else {}
    allocatable = room | ({MEMORY: str(offered)} if offered is not None else {})
    ready = [{"type": "Ready", "status": "True", "lastHeartbeatTime": datetime.now(UTC).isoformat()}]
    status = {"capacity": room, "allocatable": allocatable, "conditions": ready}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": written}, "status": status}


def pod(name: str, *memory: int, cards: int = 1, at: str = "", **annotations: str) -> Object:
    """A Pod whose containers ask for so much; `at` is the node that somebody else put it on."""
    wants = [{"limits": {MEMORY: str(each)}} for each in memory]
    wants = wants or [{}]
    containers = [{"name": f"c{n}", "image": "job:1", "resources": wanted} for n, wanted in enumerate(wants)]
    notes = annotations | ({"remediator.dev/gpu-cards": str(cards)} if cards != 1 else {})
    meta = {"name": name, "namespace": "default", "annotations": notes}
    spec = {"containers": containers, "schedulerName": "nobody"} | ({"nodeName": at} if at else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


class Judge:
    """Looks at every Pod after every request: the memory of bound Pods on each card is at most its size."""

    def __init__(self, sizes: dict[str, tuple[int, ...]]) -> None:
        self.sizes, self.looks = sizes, 0

    def look(self, pods: list[Object]) -> None:
        """Raise AssertionError where a card is sold twice."""
        self.looks += 1
        used: Counter[tuple[str, int]] = Counter()
        for each in pods:
            if each["spec"].get("nodeName") and each.get("status", {}).get("phase") not in shared_gpus.ENDED:
                allocated = json.loads(each["metadata"]["annotations"]["scheduler.framework.gpushare.allocation"])
                for container in allocated.values():
                    used.update({(each["spec"]["nodeName"], int(card)): memory for card, memory in container.items()})
        over = {place: memory for place, memory in used.items() if memory > self.sizes[place[0]][place[1]]}
        assert not over, f"memory on (node, card): {over}"


class Wire:
    """The connection of one replica: it may be slow, lose answers, send twice, and be dead from some request on."""

    def __init__(self, inner: Transport, chance: Random, after: Callable[[], None]) -> None:
        self._inner, self._chance, self._after = inner, chance, after
        self.trouble, self.dead, self.dies_at = 0.0, False, -1
        self.asked = 0
        self.held: asyncio.Event | None = None  # binds wait for it

    async def request(self, method: str, path: str, **asked: Any) -> Reply:
        """See Transport.request."""
        self.asked += 1
        if self.asked == self.dies_at:
            self.dead = True
            if self._chance.random() < 0.5:
                await self._carry(method, path, asked)
        if self.dead:
            raise Unavailable(0, "", "the replica was killed")
        if self.held is not None and path.endswith("/binding"):
            await self.held.wait()
        for _ in range(self._chance.randrange(6) if self.trouble else 0):
            await asyncio.sleep(0)
        reply = await self._carry(method, path, asked)
        if method != "GET" and self._chance.random() < self.trouble:
            if self._chance.random() < 0.5:
                await self._carry(method, path, asked)
            raise Unavailable(0, "", "the answer was lost")
        return reply

    async def _carry(self, method: str, path: str, asked: dict[str, Any]) -> Reply:
        reply = await self._inner.request(method, path, **asked)
        self._after()
        return reply

    def stream(self, path: str, **asked: Any) -> Any:
        """See Transport.stream."""
        return self._inner.stream(path, **asked)

    async def close(self) -> None:
        """Nothing to close."""


class Standing(Protocol):
    """What replicas stand on."""

    @property
    def clock(self) -> Clock: ...

    def look(self) -> None: ...


class Replica:
    """What one replica has of shared GPUs."""

    def __init__(self, stand: "Standing", chance: Random, transport: Transport) -> None:
        self.wire, self.watches = Wire(transport, chance, stand.look), LateNews(transport)
        self.informers = Informers(Client(self.watches), stand.clock, Namespaces())
        self.books = Books(self.informers)
        self.store = Store(Client(self.wire), stand.clock)
        self.binder = Binder(self.store, self.books, stand.clock, lambda: f"{chance.getrandbits(64):016x}")
        self.sweep = LedgerSweep(self.store, self.books, stand.clock)

    async def bind(self, body: Object, node: str) -> str:
        """What it answers: "" for a Pod that is bound."""
        meta = body["metadata"]
        args = {"PodName": meta["name"], "PodNamespace": "default", "PodUID": meta["uid"], "Node": node}
        return str(json.loads(await self.binder.bind(json.dumps(args).encode()))["Error"])


class Stand(MemoryCluster):
    """The server, its judge, and a clock that a test may turn."""

    def __init__(self, seed: int = 0, **sizes: tuple[int, ...]) -> None:
        super().__init__()
        self.chance, self.ahead, self.judge = Random(seed), timedelta(), Judge(sizes)
        self.clock = Clock(lambda: datetime.now(UTC) + self.ahead, SYSTEM.monotonic)
        self.replicas: list[Replica] = []

    def look(self) -> None:
        """Let the judge look."""
        self.judge.look([entry.obj for entry in self.server.cluster.store.collection("pods").entries.values()])

    @asynccontextmanager
    async def working(self, replicas: int = 1) -> AsyncIterator["Stand"]:
        """With its nodes, and replicas whose watches are complete."""
        for name, sizes in self.judge.sizes.items():
            await self.client.create(NODES, node(name, *sizes))
        self.replicas = [Replica(self, Random(self.chance.random()), self.server.transport()) for _ in range(replicas)]
        async with at_work(*(replica.informers.run() for replica in self.replicas)):
            for replica in self.replicas:
                await replica.informers.synced()
            yield self

    async def make_pod(self, name: str, *memory: int, **asked: Any) -> Object:
        """A Pod of somebody."""
        return await self.client.create(PODS, pod(name, *memory, **asked), namespace="default")

    async def pod(self, name: str) -> Object:
        """A Pod as it is now."""
        return await self.client.get(PODS, name, namespace="default")

    async def delete_pod(self, name: str) -> None:
        """It goes at once."""
        await self.client.transport.request("DELETE", PODS.path(name, "default"), body=b'{"gracePeriodSeconds":0}')

    def ledger(self, name: str) -> dict[str, list[tuple[int, int]]]:
        """What each Pod has reserved on a node: (card, memory)."""
        for entry in self.server.cluster.store.collection(f"{api.GPU_LEDGER.plural}.{api.GROUP}").entries.values():
            if entry.obj["metadata"]["name"] == name:
                listed = entry.obj["spec"].get("reservations") or ()
                return {each["name"]: [(c["index"], c["memory"]) for c in each["cards"]] for each in listed}
        return {}

    def bound(self) -> dict[str, str]:
        """The card of each Pod that is bound, as node/card."""
        pods = [entry.obj for entry in self.server.cluster.store.collection("pods").entries.values()]
        return {
            each["metadata"]["name"]: f"{each['spec']['nodeName']}/{each['metadata']['annotations'][INDEX]}"
            for each in pods
            if each["spec"].get("nodeName")
        }

    async def reserved(self, name: str, on: str = "n") -> None:
        """Wait until a Pod has a reservation."""
        await until(lambda: name in self.ledger(on), 10)

    async def seen(self) -> None:
        """Wait until every replica's watches have all Pods and ledgers that the server has."""
        for replica in self.replicas:
            replica.watches.arrives.set()
            await replica.books.ledgers.caught_up()
            await until(lambda replica=replica: self._shown(replica) == set(self.bound()), 10)

    def _shown(self, replica: Replica) -> set[str]:
        return {each.name for node in self.judge.sizes for each in replica.books.pods(node)}
