"""The work of the leader: one lease, work queues that exist while it is held, and sweeps by the clock."""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import structlog
from apscheduler.triggers.interval import IntervalTrigger

from remediator.clock import Clock
from remediator.kube.runtime.backoff import full_jitter
from remediator.kube.runtime.elector import Elector
from remediator.kube.runtime.informer import Informer, caught_up, synced
from remediator.kube.runtime.queue import WorkQueue
from remediator.kube.runtime.turns import sliced
from remediator.metrics import LEADER_CHANGES, Contained

LONGEST_SLEEP = 60.0  # seconds: the wall clock may be set while we wait
RESTART_BASE, RESTART_CAP = 1.0, 60.0
SLICE = 100  # keys that are asked for between two turns of the loop
K = TypeVar("K", bound=Hashable)
log = structlog.get_logger(__name__)


class SweepTrigger(Protocol):
    """When a sweep is due: any trigger of apscheduler."""

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        """The first time after the previous one; None for never again."""


class Sweep(NamedTuple):
    """Work that is due by the clock, whatever happens."""

    name: str
    trigger: SweepTrigger
    callback: Callable[[], None]


def every(interval: timedelta) -> SweepTrigger:
    """Due once in each interval, the first time one interval after leading began."""
    trigger: SweepTrigger = IntervalTrigger(
        seconds=int(interval.total_seconds()), start_date=datetime(2020, 1, 1, tzinfo=UTC), timezone=UTC
    )
    return trigger


class LeaderQueue(Generic[K]):
    """A work queue that exists while this replica leads. Keys that are added at other times are dropped.

    Leading begins with every key of `everything()`, since nothing is remembered, and not before `informers()`, asked
    then, have what the API server has.
    `serve(key)` is one pass: it gives the seconds until the next look, None for no such wish. `gives_way` says which
    keys wait for others, as in WorkQueue. `prepare()` is called before anything is waited for, and may change what
    `informers()` gives; `began()` before the first pass, `ended()` when leading is over.
    Where a queue that is not `essential` fails as a whole it begins anew, and the others go on.
    """

    def __init__(
        self,
        name: str,
        serve: Callable[[K], Awaitable[float | None]],
        everything: Callable[[], Iterable[K | None]],
        *,
        workers: int,
        informers: Callable[[], Sequence[Informer[Any]]] = lambda: (),
        sweeps: Sequence[Sweep] = (),
        essential: bool = True,
        prepare: Callable[[], object] = lambda: None,
        began: Callable[[], None] = lambda: None,
        ended: Callable[[], None] = lambda: None,
        gives_way: Callable[[K], int] = lambda key: 0,
    ) -> None:
        self.name, self._informers, self.essential = name, informers, essential
        self._serve, self._everything, self._workers = serve, everything, workers
        self._sweeps, self._gives_way = sweeps, gives_way
        self._prepare, self._began, self._ended = prepare, began, ended
        self._queue: WorkQueue[K] | None = None
        self._feeds: deque[Iterable[K | None]] = deque()
        self._fed = asyncio.Event()

    @property
    def informers(self) -> Sequence[Informer[Any]]:
        """What passes rest on, as it is now."""
        return self._informers()

    @property
    def leading(self) -> bool:
        """Whether keys are taken now."""
        return self._queue is not None

    @property
    def depth(self) -> int:
        """How many keys wait for a pass."""
        return self._queue.depth if self._queue else 0

    def add(self, *keys: K) -> None:
        """Ask for a pass over each key; forgotten where another replica leads."""
        if self._queue is not None:
            for key in keys:
                self._queue.add(key)

    def feed(self, keys: Iterable[K | None]) -> None:
        """Ask for a pass over each of many keys, which are made slice by slice; None is a step that gives no key."""
        if self._queue is not None:
            self._feeds.append(keys)
            self._fed.set()

    def add_all(self) -> None:
        """Ask for a pass over everything, the same way."""
        self.feed(self._everything())

    async def run(self, clock: Clock) -> None:
        """Serve until cancelled."""
        self._prepare()
        await synced(*self.informers)
        if not self.essential:  # whoever leads has waited for the others
            await caught_up(*self.informers)
        self._queue = WorkQueue(self.name, gives_way=self._gives_way)
        try:
            self._began()
            self.add_all()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._queue.run(self._serve, self._workers))
                group.create_task(self._feeding())
                for sweep in self._sweeps:
                    group.create_task(sweeping(sweep, clock))
        finally:
            self._queue.close()
            self._queue = None
            self._feeds.clear()
            self._ended()

    async def _feeding(self) -> None:
        while True:
            await self._fed.wait()
            self._fed.clear()
            while self._feeds:
                with Contained("feed", self.name):
                    async for key in sliced(self._feeds.popleft(), SLICE):
                        if key is not None:
                            self.add(key)


class Leader:
    """Competes for the lease of all writers; while it is held, every queue is served."""

    def __init__(self, elector: Elector, clock: Clock, rand: Callable[[], float] = random.random) -> None:
        self._elector, self._clock, self._rand = elector, clock, rand
        self._queues: list[LeaderQueue[Any]] = []
        self._group: asyncio.TaskGroup | None = None  # while it leads

    @property
    def is_leader(self) -> bool:
        """Whether new work may start now."""
        return self._elector.is_leader

    @property
    def before(self) -> tuple[datetime | None, Mapping[str, str]]:
        """When who led before us renewed the Lease last, None where nobody did, and its annotations then."""
        return self._elector.before

    def note(self, name: str, value: str) -> None:
        """Keep an annotation on the Lease for who leads next."""
        self._elector.note(name, value)

    @property
    def skew(self) -> timedelta:
        """How far the API server's clock is ahead of ours."""
        return self._elector.skew

    @property
    def clock_differs(self) -> bool:
        """Whether the clocks differ so much that this replica does not lead."""
        return self._elector.clock_differs

    def add(self, queue: LeaderQueue[Any]) -> None:
        """Serve this queue, too; after `run` has begun only one that is not essential, at once where we lead."""
        self._queues.append(queue)
        if self._group is not None and self.is_leader:
            self._group.create_task(self._keep(queue))

    async def run(self) -> None:
        """Compete, once essential queues know the cluster, until cancelled. Raises what an essential queue raises."""
        await synced(*(informer for queue in self._queues if queue.essential for informer in queue.informers))
        await self._elector.run(self._lead)

    async def _lead(self) -> None:
        """Nothing is decided before every cache has what the API server had when the lease was won."""
        LEADER_CHANGES.labels("gained").inc()
        try:
            await self._caught_up()
            async with asyncio.TaskGroup() as group:
                self._group = group
                for queue in self._queues:
                    group.create_task(self._keep(queue))
        finally:
            self._group = None
            LEADER_CHANGES.labels("lost").inc()

    async def _caught_up(self) -> None:
        began = self._clock.monotonic()
        essential = dict.fromkeys(informer for queue in self._queues if queue.essential for informer in queue.informers)
        await caught_up(*essential)
        log.info("leading", caches_caught_up_in=round(self._clock.monotonic() - began, 3))

    async def _keep(self, queue: LeaderQueue[Any]) -> None:
        failures = 0
        while True:
            began = self._clock.monotonic()
            failure = await _failure(queue, self._clock)
            if self._clock.monotonic() - began > RESTART_CAP:
                failures = 0
            wait = full_jitter(failures, base=RESTART_BASE, cap=RESTART_CAP, rand=self._rand)
            message = "work of the leader failed; it begins anew"
            log.error(message, queue=queue.name, retry_in=wait, exc_info=failure)
            await asyncio.sleep(wait)
            failures += 1


async def _failure(queue: LeaderQueue[Any], clock: Clock) -> Exception | None:
    """Serve the queue until that ends; what it raised, None where it just ended. Raises it of an essential queue."""
    try:
        await queue.run(clock)
    except Exception as failure:
        if queue.essential:
            raise
        return failure
    return None


async def sweeping(sweep: Sweep, clock: Clock) -> None:
    """Call back whenever the trigger is due; what was due while the process or its clock stood still, once.

    Where the clock is set back behind the last time, that no longer counts: the trigger is asked anew. What the
    callback raises is logged: the next time may be better.
    """
    previous = clock.wall()
    while (due := sweep.trigger.get_next_fire_time(previous, clock.wall())) is not None:
        if not await _reached(due, previous, clock):
            previous = clock.wall()
            continue
        try:
            sweep.callback()
        except Exception:
            log.exception("sweep failed", sweep=sweep.name)
        previous = max(due, clock.wall())


async def _reached(due: datetime, previous: datetime, clock: Clock) -> bool:
    """Wait until it is due; False as soon as the clock stands before the previous time."""
    while (now := clock.wall()) < due:
        if now < previous:
            return False
        await asyncio.sleep(min((due - now).total_seconds(), LONGEST_SLEEP))
    return True
