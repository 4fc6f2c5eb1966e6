"""Evictions that drains ask for, judged one by one: the operation by the cache, the Pod as it is now."""

import asyncio
from collections.abc import Callable

from remediator.core.eviction import AskedEviction, EvictablePod, EvictionRuling, by_pod, by_request, unknown
from remediator.core.names import Namespaces
from remediator.core.operation import Operation
from remediator.kube.api.eviction_review import EVICTED_POD, evictable_pod
from remediator.kube.runtime.informer import Informer
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client

AT_ONCE, SECONDS = 16, 3.0  # Pods that are read at the same time, and until one must be: the API server waits for 5


class EvictionJudge:
    """What becomes of an eviction."""

    def __init__(
        self, client: Client, operations: Informer[Operation], spaces: Namespaces, wait: Callable[[], str] = lambda: ""
    ) -> None:
        """`wait`: see by_request."""
        self._client, self._operations, self._spaces, self._wait = client, operations, spaces, wait
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def ruling(self, asked: AskedEviction, serious: Callable[[], None] = lambda: None) -> EvictionRuling:
        """Nothing is read for who names no drain that runs; `serious()` is called before a Pod is read."""
        operations = self._operations.by("drain_pod", asked.speaker) if asked.speaker else ()
        drain = by_request(asked, operations, self._spaces, self._wait())
        if isinstance(drain, EvictionRuling):
            return drain
        try:
            async with asyncio.timeout(SECONDS), self._turns:
                serious()  # only now: who waits for a turn gives way to new connections
                pod = await self._read(asked)
        except (errors.ApiError, OSError, TimeoutError) as error:
            return unknown(asked, str(error) or "the API server does not answer")
        return by_pod(asked, drain, pod)

    async def _read(self, asked: AskedEviction) -> EvictablePod | None:
        try:
            return evictable_pod(await self._client.get(EVICTED_POD, asked.name, namespace=asked.namespace))
        except errors.NotFound:
            return None
