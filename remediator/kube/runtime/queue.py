"""Work queue: which keys need a pass. Each key is handled by at most one worker at a time."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import structlog

from remediator.kube.runtime.backoff import full_jitter
from remediator.kube.wire.errors import ApiError
from remediator.metrics import REQUEUES

RETRY_BASE, RETRY_CAP = 0.5, 60.0
K = TypeVar("K", bound=Hashable)
log = structlog.get_logger(__name__)


class WorkQueue(Generic[K]):
    """Keys to work on, first come first served, none twice, none by two workers at once.

    A key added while it is worked on is worked on once more afterwards. Make and use it inside one event loop.
    """

    def __init__(self, name: str, rand: Callable[[], float] = random.random) -> None:
        self._name, self._rand = name, rand
        self._ready: asyncio.Queue[K] = asyncio.Queue()
        self._queued: set[K] = set()
        self._active: set[K] = set()
        self._again: set[K] = set()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}

    @property
    def depth(self) -> int:
        """How many keys wait for a worker; timers and keys in work do not count."""
        return len(self._queued) + len(self._again)

    def add(self, key: K) -> None:
        """Ask for a pass over `key` as soon as a worker is free."""
        if key in self._active:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._ready.put_nowait(key)

    def add_at(self, key: K, delay_seconds: float) -> None:
        """Ask for a pass in `delay_seconds`. Of several such wishes for one key the earliest is kept."""
        loop = asyncio.get_running_loop()
        when = loop.time() + delay_seconds
        pending = self._timers.get(key)
        if pending is not None and pending.when() <= when:
            return
        if pending is not None:
            pending.cancel()
        self._timers[key] = loop.call_at(when, self._due, key)

    def retry(self, key: K) -> None:
        """Ask for a pass after a failure: each failure in a row doubles the range that the wait is drawn from."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_at(key, full_jitter(failures, base=RETRY_BASE, cap=RETRY_CAP, rand=self._rand))

    def forget(self, key: K) -> None:
        """The last pass over `key` went well: the next failure waits from the start again."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """Wait for a key and take it; call `done` with it when its pass is over."""
        key = await self._ready.get()
        self._queued.discard(key)
        self._active.add(key)
        return key

    def done(self, key: K) -> None:
        """The pass over `key` is over; if it was added meanwhile, it is queued now."""
        self._active.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def close(self) -> None:
        """Cancel all timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    async def run(self, worker: Callable[[K], Awaitable[float | None]], n: int) -> None:
        """Let `n` workers serve the queue until cancelled.

        `worker(key)` gives the seconds until the next look at the key, None for no such wish. What it raises is logged
        and the key is retried with back-off.
        """
        async with asyncio.TaskGroup() as group:
            for _ in range(n):
                group.create_task(self._serve(worker))

    async def _serve(self, worker: Callable[[K], Awaitable[float | None]]) -> None:
        while True:
            key = await self.get()
            try:
                await self._work(worker, key)
            finally:
                self.done(key)
            await asyncio.sleep(0)  # keys that are ready and passes that wait for nothing must not stop the loop

    async def _work(self, worker: Callable[[K], Awaitable[float | None]], key: K) -> None:
        try:
            next_look = await worker(key)
        except ApiError as error:
            log.warning("pass refused by the API server", key=key, error=str(error))
            self._count("refused")
            self.retry(key)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _cancelled():
                raise
            log.exception("pass failed", key=key)
            self._count("failed")
            self.retry(key)
        else:
            self.forget(key)
            if next_look is not None:
                self._count("later")
                self.add_at(key, next_look)

    def _count(self, why: str) -> None:
        REQUEUES.labels(self._name, why).inc()

    def _due(self, key: K) -> None:
        del self._timers[key]
        self.add(key)


def _cancelled() -> bool:
    """Whether somebody cancels this task; else a CancelledError comes from something that a pass awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
