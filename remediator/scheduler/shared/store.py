"""Ledgers and Pods on the API server: read live, written under the version that was read, and Pods bound or fenced."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from remediator.clock import Clock
from remediator.core.shared_gpus import CardPod, Ledger
from remediator.kube import api
from remediator.kube.api import builtin, decode, encode, gpu_pods, shared_gpus
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.scheduler.shared.ledger import adopted

TRIES = 16  # of one write to a ledger that others write to, too


Change = Callable[[Ledger], Ledger]


class _Asked(NamedTuple):
    """One change of a ledger; `stored` is told when it is written."""

    sizes: tuple[int, ...]
    change: Change
    stored: asyncio.Future[Ledger]


class Store:
    """The requests of binds and of the sweep. Each raises ApiError; nothing is remembered but what is to be written."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        # By node, what is to be written and who writes it: saves conflicts with ourselves. Versions are what protects.
        self._asked: dict[str, list[_Asked]] = {}
        self._writers: dict[str, asyncio.Task[None]] = {}
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

    async def write(self, node: str, sizes: tuple[int, ...], change: Change) -> Ledger:
        """Write what `change` makes of the ledger, again while others write it; the same: nothing is written.

        Changes that come while one of the node is being written are written together, in the order in which they came:
        then `change` gets what those before it have made. A ledger that is not there begins with all that Pods on the
        node hold. Gives the ledger that is stored. Raises Conflict where others never stop.
        """
        asked = _Asked(sizes, change, asyncio.get_running_loop().create_future())
        queue = self._asked.setdefault(node, [])
        queue.append(asked)
        if node not in self._writers:
            self._writers[node] = asyncio.create_task(self._write_asked(node, queue))
        return await asked.stored

    async def _write_asked(self, node: str, queue: list[_Asked]) -> None:
        """Until nobody asks any more. A caller that is cancelled stops nothing: others wait for the same write."""
        try:
            while queue:
                batch = queue.copy()
                queue.clear()
                stored = await self._tried(node, batch)
                for asked in batch:
                    if not asked.stored.done():
                        _tell(asked.stored, stored)
        finally:
            del self._writers[node], self._asked[node]

    async def _tried(self, node: str, batch: list[_Asked]) -> Ledger | Exception:
        try:
            return await self._write(node, batch[-1].sizes, [asked.change for asked in batch])
        except (errors.ApiError, ValueError) as failed:
            return failed

    async def _write(self, node: str, sizes: tuple[int, ...], changes: Sequence[Change]) -> Ledger:
        for left in reversed(range(TRIES)):
            guess = self._last.pop(node, None)
            before = guess or await self.ledger(node)
            steps = [before if before.version else adopted(before, await self.pods_on(node), self._clock.now())]
            for change in changes:
                steps.append(change(steps[-1]))
            if guess is not None and any(old == new for old, new in pairwise(steps)):
                continue  # what is refused, or done already, is so by what the API server says
            if steps[-1] == before:
                return before
            try:
                self._last[node] = await self._put(steps[-1], sizes)
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


def _tell(future: asyncio.Future[Ledger], stored: Ledger | Exception) -> None:
    if isinstance(stored, Exception):
        future.set_exception(stored)
    else:
        future.set_result(stored)
