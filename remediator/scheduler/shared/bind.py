"""Binding a Pod to its cards: reserve in the node's ledger, then bind with annotations; take back what fails.

What keeps a card from being sold twice is on the API server alone. A ledger is written under the version that was read.
A Pod is bound in the version that was read before its cards were reserved, so whoever takes a reservation back writes
the Pod first, and a bind that was under way is refused. Annotations come with the node, in one write.
"""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import replace

import msgspec
import structlog

from remediator.clock import Clock
from remediator.core.shared_gpus import CardPod, Ledger, Reservation
from remediator.kube.api import shared_gpus
from remediator.kube.wire import errors
from remediator.scheduler import metrics
from remediator.scheduler.shared.books import Books
from remediator.scheduler.shared.ledger import CardRefusal, Fate, Reserved, reserve
from remediator.scheduler.shared.store import Store
from remediator.scheduler.shared.taking_back import take_back

ATTEMPTS = 3  # a Pod that somebody else writes in between is read again
log = structlog.get_logger(__name__)


class BindingArgs(msgspec.Struct, rename="pascal"):
    """ExtenderBindingArgs."""

    pod_name: str
    pod_namespace: str
    pod_uid: str = msgspec.field(name="PodUID")
    node: str


class Unbound(Exception):
    """The Pod was not bound; the message is for the event that kube-scheduler writes."""


class Moved(Exception):
    """The Pod has moved on since it was read, and has no node: nothing is reserved, and it may be tried again."""


class Binder:
    """Binds Pods; any number at once, in any number of replicas."""

    def __init__(self, store: Store, books: Books, clock: Clock, token: Callable[[], str] | None = None) -> None:
        self._store, self._books, self._clock = store, books, clock
        self._token = token or (lambda: secrets.token_hex(8))

    async def bind(self, body: bytes) -> bytes:
        """ExtenderBindingArgs to ExtenderBindingResult; what goes wrong stands in its `Error`."""
        with metrics.SECONDS.labels("bind").time():
            try:
                outcome, error = "ok", await self._bound(msgspec.json.decode(body, type=BindingArgs))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
                outcome, error = "malformed", f"not ExtenderBindingArgs: {wrong}; send what kube-scheduler sends"
            except Unbound as refused:
                outcome, error = "refused", str(refused)
            except (errors.ApiError, ValueError) as failed:
                outcome, error = "failed", str(failed)
        metrics.ANSWERS.labels("bind", outcome).inc()
        if error:
            log.warning("a Pod was not bound", error=error)
        return msgspec.json.encode({"Error": error})

    async def _bound(self, args: BindingArgs) -> str:
        for _ in range(ATTEMPTS):
            try:
                return await self._attempt(args)
            except Moved:
                continue
        raise Unbound("the Pod changes all the time; kube-scheduler tries it again")

    async def _attempt(self, args: BindingArgs) -> str:
        pod = await self._store.pod(args.pod_namespace, args.pod_name)
        if pod is None or pod.uid != args.pod_uid:
            raise Unbound("there is no Pod of this name and uid any more")
        if pod.node:
            if pod.node == args.node:
                return ""
            raise Unbound(f"the Pod is on node {pod.node} already")
        if not pod.ask.memory:
            await self._store.bind(pod, args.node, None)
            return ""
        return await self._shared(pod, args.node)

    async def _shared(self, pod: CardPod, name: str) -> str:
        node = self._books.nodes.get(name)
        if node is None:
            raise Unbound(f"node {name} is not known here yet")
        sizes, token = node.cards.sizes, self._token()
        entry = Reservation(pod.uid, pod.namespace, pod.name, (), self._clock.now(), token)  # what to take back
        alone = False
        try:
            outcome = await self._reserve(pod, name, token)
            entry, alone = outcome.reservation, outcome.first
            sent = shared_gpus.given(pod, entry.shares, sizes, self._clock.wall())
            await self._store.bind(pod, name, sent)
        except (errors.ApiError, asyncio.CancelledError) as failed:
            unsure = isinstance(failed, (errors.Unavailable, asyncio.CancelledError))
            return await self._given_up(entry, name, sizes, failed, alone=alone and not unsure)
        return ""

    async def _reserve(self, pod: CardPod, name: str, token: str) -> Reserved:
        """Raises Unbound, with nothing written, and ApiError."""
        node = self._books.nodes.get(name)
        assert node is not None
        sizes, unhealthy, pods = self._books.sizes(node), self._books.unhealthy(name), self._books.pods(name)
        outcomes: list[Reserved | CardRefusal] = []

        def change(ledger: Ledger) -> Ledger:
            outcome = reserve(ledger, pod, sizes, unhealthy, pods, self._clock.now(), token)
            outcomes.append(outcome)
            return ledger if isinstance(outcome, CardRefusal) else replace(outcome.ledger, node_uid=node.uid)

        await self._store.write(name, sizes.sizes, change)
        outcome = outcomes[-1]
        if isinstance(outcome, CardRefusal):
            raise Unbound(f"{outcome.reason}: {outcome.why or 'its cards have no room for the Pod now'}")
        return outcome

    async def _given_up(
        self, entry: Reservation, node: str, sizes: tuple[int, ...], failed: BaseException, *, alone: bool
    ) -> str:
        """Roll back, as far as it is certain that nothing counts any more; "" where the Pod is bound after all.

        Raises what failed. What cannot be rolled back now is left to the sweep.
        """
        what: Fate | None = None
        try:
            what = await asyncio.shield(take_back(self._store, node, sizes, entry, alone=alone))
        except (errors.ApiError, ValueError) as left:
            log.warning("a reservation of shared GPUs is left to the sweep", pod=entry.name, node=node, error=str(left))
        if isinstance(failed, asyncio.CancelledError):
            raise failed
        if what is Fate.HOLDS:
            return ""
        if what is Fate.UNBOUND and isinstance(failed, errors.Conflict):
            raise Moved
        raise failed
