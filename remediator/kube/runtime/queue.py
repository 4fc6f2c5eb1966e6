"""Work queue: which keys need a pass. Each key is handled by at most one worker at a time."""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from functools import cache
from typing import Generic, TypeVar

import structlog

from remediator.kube.runtime.backoff import full_jitter
from remediator.kube.wire.errors import ApiError
from remediator.metrics import REQUEUES

RETRY_BASE, RETRY_CAP = 0.5, 60.0
SHARE, LEAST = 4, 2  # every fourth worker, and two at least, may serve keys that give way beside others
PATIENCE = 5.0  # seconds that a key gives way at most
K = TypeVar("K", bound=Hashable)
Lines = tuple[deque[tuple[K, float | None]], ...]
log = structlog.get_logger(__name__)
_requeues = cache(REQUEUES.labels)  # looked up once for all passes


class WorkQueue(Generic[K]):
    """Keys to work on, first come first served, none twice, none by two workers at once.

    A key added while it is worked on is worked on once more afterwards. `gives_way` says of a key that is added whether
    it waits for others: 0, for none; 1, while keys of 0 are queued or in work; 2, while keys of 0 or 1 are. A quarter
    of the workers may serve it beside keys in work. After 5 s it stands in line with keys of 0. Make and use it inside
    one event loop.
    """

    def __init__(
        self, name: str, rand: Callable[[], float] = random.random, gives_way: Callable[[K], int] = lambda key: 0
    ) -> None:
        self._name, self._rand, self._gives_way = name, rand, gives_way
        self._lines: Lines[K] = (deque(), deque(), deque())  # by `gives_way`; and until when, in the loop's time
        self._queued: dict[K, float | None] = {}  # until when it gives way; None where it does not
        self._active: dict[K, int] = {}  # the line that it was taken from
        self._again: set[K] = set()
        self._idle: deque[asyncio.Future[None]] = deque()  # workers that wait for a key
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._promotion: asyncio.TimerHandle | None = None  # when the first key has given way for long enough
        self._beside = LEAST
        self._failures: dict[K, int] = {}

    @property
    def depth(self) -> int:
        """How many keys wait for a worker; timers and keys in work do not count."""
        return len(self._queued) + len(self._again)

    def add(self, key: K) -> None:
        """Ask for a pass over `key` as soon as a worker is free. One that gives way no more goes to the others."""
        if key in self._active:
            self._again.add(key)
            return
        gives_way = self._gives_way(key)
        if key in self._queued and (gives_way or self._queued[key] is None):
            return
        self._put(key, gives_way)
        self._wake()

    def _put(self, key: K, line: int) -> None:
        loop = asyncio.get_running_loop()
        self._queued[key] = until = loop.time() + PATIENCE if line else None
        self._lines[line].append((key, until))
        if until is not None and self._promotion is None:
            self._promotion = loop.call_at(until, self._promote)

    def _promote(self) -> None:
        """Keys that have given way for long enough do so no more."""
        loop = asyncio.get_running_loop()
        for line in self._lines[1:]:
            while line and (line[0][1] or 0.0) <= loop.time():
                key, until = line.popleft()
                if self._queued.get(key) == until:
                    self._put(key, 0)
        times = [line[0][1] or 0.0 for line in self._lines[1:] if line]
        self._promotion = loop.call_at(min(times), self._promote) if times else None
        self._wake()

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
        while (line := self._ready()) is None:
            await self._woken()
        key, _ = self._lines[line].popleft()
        del self._queued[key]
        self._active[key] = line
        self._wake()
        return key

    async def _woken(self) -> None:
        """Wait for a key that may be taken. Where this worker is cancelled as it is woken, another one looks."""
        worker = asyncio.get_running_loop().create_future()
        self._idle.append(worker)
        try:
            await worker
        except asyncio.CancelledError:
            if not worker.cancelled():
                self._wake()
            raise

    def _ready(self) -> int | None:
        """The line whose first key may be taken now: the first line with a key, where workers may serve it."""
        for at, line in enumerate(self._lines):
            while line and self._queued.get(line[0][0]) != line[0][1]:
                line.popleft()  # it gives way no more, and stands in the first line
            if line and at == 0:  # any worker may serve it
                return at
            if line:
                beside = sum(taken >= at for taken in self._active.values())
                return at if beside == len(self._active) or beside < self._beside else None
        return None

    def _wake(self) -> None:
        """Let one idle worker look, if there is a key for it; it wakes the next one."""
        while self._idle and self._ready() is not None:
            worker = self._idle.popleft()
            if not worker.done():
                worker.set_result(None)
                return

    def done(self, key: K) -> None:
        """The pass over `key` is over; if it was added meanwhile, it is queued now."""
        del self._active[key]
        if key in self._again:
            self._again.discard(key)
            self.add(key)
        self._wake()

    def close(self) -> None:
        """Cancel all timers."""
        for timer in (*self._timers.values(), *filter(None, [self._promotion])):
            timer.cancel()
        self._timers.clear()

    async def run(self, worker: Callable[[K], Awaitable[float | None]], n: int) -> None:
        """Let `n` workers serve the queue until cancelled.

        `worker(key)` gives the seconds until the next look at the key, None for no such wish. What it raises is logged
        and the key is retried with back-off.
        """
        self._beside = max(LEAST, n // SHARE)
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
        _requeues(self._name, why).inc()

    def _due(self, key: K) -> None:
        del self._timers[key]
        self.add(key)


def _cancelled() -> bool:
    """Whether somebody cancels this task; else a CancelledError comes from something that a pass awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
