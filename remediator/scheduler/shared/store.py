"""Ledgers and Pods on the API server: read live, written under the version that was read, and Pods bound or fenced."""

import asyncio
from collections.abc import Callable, Collection
from weakref import WeakValueDictionary

import msgspec

from remediator.clock import Clock
from remediator.core.shared_gpus import CardPod, Ledger
from remediator.kube import api
from remediator.kube.api import builtin, decode, encode, gpu_pods, shared_gpus
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.scheduler.shared.ledger import adopted

TRIES = 16  # of one write to a ledger that others write to, too


class Store:
    """The requests of binds and of the sweep. Each raises ApiError; nothing is remembered but whose turn it is."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        # By node, as long as somebody writes. It saves conflicts with ourselves; versions are what protects.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._last: dict[str, Ledger] = {}  # by node, as we wrote it last: saves a read where nobody else writes

    def keep(self, nodes: Collection[str]) -> None:
        """Forget what was written of all other nodes."""
        for gone in self._last.keys() - nodes:
            del self._last[gone]

    async def pod(self, namespace: str, name: str) -> CardPod | None:
        """A Pod as it is now; None where there is none. Raises ValueError for one that cannot be read."""
        try:
            return shared_gpus.card_pod(await self._client.get(gpu_pods.POD, name, namespace=namespace))
        except errors.NotFound:
            return None

    async def pods_on(self, node: str) -> list[CardPod]:
        """The Pods on a node as they are now. Raises ValueError for one that cannot be read."""
        wire = await self._client.list_all(gpu_pods.POD, fields=builtin.on_node(node), limit=builtin.USER_PODS)
        return [pod for pod in map(shared_gpus.card_pod, wire) if pod.ask.memory]

    async def ledger(self, node: str) -> Ledger:
        """The ledger of a node as it is now; one without a version where there is none."""
        try:
            return decode.gpu_ledger(await self._client.get(api.GPU_LEDGER, node))
        except errors.NotFound:
            return Ledger(node)

    async def write(self, node: str, sizes: tuple[int, ...], change: Callable[[Ledger], Ledger]) -> Ledger:
        """Write what `change` makes of the ledger, again while others write it; the same: nothing is written.

        One that is not there begins with all that Pods on the node hold. Gives the ledger that is stored. Raises
        Conflict where others never stop.
        """
        turn = self._turns.setdefault(node, asyncio.Lock())
        async with turn:
            for left in reversed(range(TRIES)):
                guess = self._last.pop(node, None)
                before = guess or await self.ledger(node)
                known = before if before.version else adopted(before, await self.pods_on(node), self._clock.now())
                after = change(known)
                if after == before and guess is None:
                    return before
                if after == before:
                    continue  # what is refused, or done already, is so by what the API server says
                try:
                    self._last[node] = await self._put(after, sizes)
                    return self._last[node]
                except (errors.Conflict, errors.AlreadyExists, errors.NotFound):
                    if not left:
                        raise
        raise AssertionError("unreachable")

    async def _put(self, ledger: Ledger, sizes: tuple[int, ...]) -> Ledger:
        if ledger.version:
            body = encode.gpu_ledger(ledger, sizes)
            return decode.gpu_ledger(await self._client.patch(api.GPU_LEDGER, ledger.node, body))
        return decode.gpu_ledger(await self._client.create(api.GPU_LEDGER, encode.new_gpu_ledger(ledger, sizes)))

    async def drop(self, ledger: Ledger) -> None:
        """Delete a ledger as it was read. Raises Conflict where it has moved on."""
        await self._client.delete(api.GPU_LEDGER, ledger.node, version=ledger.version)

    async def bind(self, pod: CardPod, node: str, annotations: dict[str, str] | None) -> None:
        """Put this version of the Pod on the node."""
        path = gpu_pods.POD.path(pod.name, pod.namespace, "binding")
        await self._client.send("POST", path, msgspec.Raw, encode.binding(pod, node, annotations))

    async def fence(self, pod: CardPod, token: str) -> None:
        """Let no bind of this version of the Pod, or of one before, count. Raises Conflict where it has moved on."""
        await self._client.patch(gpu_pods.POD, pod.name, encode.fence(pod, token), namespace=pod.namespace)
