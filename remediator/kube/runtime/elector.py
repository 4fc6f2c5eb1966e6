"""Leader election: a Lease lets one replica at a time lead."""

import asyncio
import math
import os
import random
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import msgspec
import structlog

from remediator.clock import Clock
from remediator.kube.api.builtin import LEASE, Lease, LeaseSpec
from remediator.kube.runtime.skew import ServerClock
from remediator.kube.runtime.versions import is_older
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.kube.wire.times import micro_stamp, parse

log = structlog.get_logger(__name__)
LOOK_SECONDS = 1.0  # between two reads of a Lease that another holds: so soon is it seen that it was given back
_FAILURES = (errors.ApiError, TimeoutError, msgspec.DecodeError)


def _exit() -> None:
    os._exit(1)


class Elector:
    """Competes for the Lease `namespace/name`. `identity` must be new for each process start.

    A leader renews every `retry` seconds. When its last renewal *began* `renew` seconds ago it stops leading,
    and 5 % of `duration` before the lease may pass on, `on_stuck` ends a process whose work has not stopped by then.
    Others read the lease each second and write nothing. They take it when it was given back, or when they have seen it
    unchanged for `duration` by their own monotonic clock; the wall time is for the record only. Who stands more than
    30 seconds from the API server's clock does not lead, since decisions compare times of both. A leader that finds its
    lease older than it was stops leading: the API server was restored from a backup, and what was decided since then is
    not so. Whoever finds it older, leader or not, calls `on_set_back`: what was read since then is not so, either.
    `rand` gives floats in [0, 1). `notes` are annotations of the Lease from the first write of each leadership on.
    """

    def __init__(
        self,
        client: Client,
        name: str,
        namespace: str,
        identity: str,
        clock: Clock,
        *,
        duration: float = 15.0,
        renew: float = 10.0,
        retry: float = 2.0,
        rand: Callable[[], float] = random.random,
        on_stuck: Callable[[], None] = _exit,
        on_set_back: Callable[[], None] = lambda: None,
        notes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._server_clock = ServerClock(client.transport, clock)
        self._client = Client(self._server_clock)
        self._name, self._namespace, self._identity = name, namespace, identity
        self._duration, self._renew, self._retry, self._look_every = duration, renew, retry, LOOK_SECONDS
        self._clock, self._rand = clock, rand
        self._on_stuck, self._on_set_back = on_stuck, on_set_back
        self._log = log.bind(lease=f"{namespace}/{name}", identity=identity)
        self._seen = Lease({})
        self._before: Lease | None = None
        self._own_notes = notes
        self._notes = dict(notes)
        self._seen_at = -math.inf
        self._set_back = False
        self._held_from = -math.inf
        self._wrote = False
        self._leading = False

    @property
    def is_leader(self) -> bool:
        """Whether new work may start now. Turns False by the clock alone, even if the process slept meanwhile."""
        return self._leading and self._left() > 0 and not self._server_clock.differs

    @property
    def before(self) -> tuple[datetime | None, Mapping[str, str]]:
        """When who led before us renewed the Lease last, None where nobody did, and its annotations then."""
        lease = self._before or Lease({})
        annotations, renewed = lease.metadata.get("annotations") or {}, lease.spec.renew_time
        try:
            return (parse(renewed) if renewed else None), annotations
        except ValueError:
            return None, annotations

    def note(self, name: str, value: str) -> None:
        """Keep an annotation on the Lease, from the next renewal on and for who leads next."""
        self._notes[name] = value

    @property
    def skew(self) -> timedelta:
        """How far the API server's clock is ahead of ours."""
        return self._server_clock.skew

    @property
    def clock_differs(self) -> bool:
        """Whether we do not lead because of that."""
        return self._server_clock.differs

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Compete for the lease and run `lead()` while holding it, again after each loss.

        Returns when `lead()` returns, raises what it raises. However this ends, `lead()` has stopped first and the
        lease is released then, so that the next one need not wait for it to run out.
        """
        while True:
            try:
                await self._acquire()
                ended = await self._lead(lead)
            finally:
                await self._release()
            if ended:
                return

    def _left(self) -> float:
        """Seconds that we may still lead on the last renewal."""
        return self._held_from + self._renew - self._clock.monotonic()

    async def _acquire(self) -> None:
        while not ((taken := await self._try(self._renew / 2)) and self._left() > 0):
            pause = self._retry * (1 + self._rand())
            await asyncio.sleep(min(pause, self._look_every) if taken is False and self._taken() else pause)
        self._log.info("lease acquired")

    async def _lead(self, lead: Callable[[], Awaitable[None]]) -> bool:
        """Run `lead()` until it ends (True) or the lease is lost (False). Either way it has stopped."""
        task = asyncio.ensure_future(lead())
        self._leading = True
        try:
            await self._hold(task)
            ended = task.done()
        finally:
            self._leading = False
            await self._stop(task)
            self._before = None
        if ended:
            task.result()
        return ended

    async def _hold(self, task: asyncio.Future[None]) -> None:
        """Renew until the work ends, another holds the lease, or time is up."""
        pause = self._retry
        while (left := self._left()) > 0:
            await asyncio.wait({task}, timeout=min(left, pause))
            if task.done() or left <= pause or self._left() <= 0:
                break
            asked = self._clock.monotonic()
            renewed = await self._try(min(self._left(), self._renew / 2))
            if not renewed and (self._taken() or self.clock_differs):
                break
            pause = max(0.0, asked + self._retry * (1 + 0.2 * self._rand()) - self._clock.monotonic())
        if not task.done():
            self._log.warning("lease lost", holder=self._seen.spec.holder_identity)

    async def _stop(self, task: asyncio.Future[None]) -> None:
        """Cancel the work and see it end, whoever else cancels us meanwhile."""
        if not task.cancel():
            return
        margin = 0.05 * self._duration  # also what a process gets that slept past the end
        left = max(margin, self._held_from + self._duration - margin - self._clock.monotonic())
        stuck = asyncio.get_running_loop().call_later(left, self._on_stuck)
        interrupted: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as again:
                interrupted = again
        stuck.cancel()
        if not task.cancelled() and (error := task.exception()):
            self._log.error("work failed while stopping", error=repr(error))
        if interrupted:
            raise interrupted

    async def _try(self, within: float) -> bool | None:
        """The same as `_take`; None where the API server has not done it."""
        try:
            async with asyncio.timeout(within):
                return await self._take()
        except _FAILURES as error:
            self._log.warning("lease not written", error=str(error) or type(error).__name__)
            return None

    async def _take(self) -> bool:
        """Look, and write unless another holds the lease. If True, it is ours as of the start of this call."""
        began = self._clock.monotonic()
        lease = await self._look()
        if self._taken():
            return False
        if self.clock_differs:
            self._log.error("our clock differs from the API server's: not leading", seconds=self.skew.total_seconds())
            return False
        self._wrote = True
        self._remember(lease)
        if lease is None:
            wish = Lease.named(self._name, self._namespace, self._renewed(None))
            wish.metadata = self._noted(wish.metadata)
            self._note(await self._client.create(LEASE, wish, namespace=self._namespace))
        else:
            await self._replace(Lease(self._noted(lease.metadata), self._renewed(lease.spec)))
        self._held_from = began
        return True

    async def _look(self) -> Lease | None:
        try:
            lease = await self._client.get(LEASE, self._name, namespace=self._namespace)
        except errors.NotFound:
            lease = None
        self._note(lease or Lease({}))
        return lease

    def _remember(self, lease: Lease | None) -> None:
        """Keep the lease as it was before we take it; our own is what we lost, or a write whose reply was lost."""
        ours = lease is not None and lease.spec.holder_identity == self._identity
        if not self._leading and not (ours and self._before is not None):
            self._before, self._notes = lease or Lease({}), dict(self._own_notes)

    def _noted(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """With our annotations of this leadership; a release keeps them, too."""
        if not self._notes:
            return dict(metadata)
        return {**metadata, "annotations": {**(metadata.get("annotations") or {}), **self._notes}}

    def _note(self, lease: Lease) -> None:
        if lease.version != self._seen.version:  # any write counts as a sign of life: wrong is only too late
            self._set_back = is_older(lease.version, self._seen.version)
            self._seen, self._seen_at = lease, self._clock.monotonic()
            if self._set_back:
                self._log.warning("the API server went back; everything is read anew", version=lease.version)
                self._on_set_back()

    def _taken(self) -> bool:
        """Whether the lease, as we saw it last, is not ours to write."""
        holder = self._seen.spec.holder_identity
        if self._leading:  # a leader renews and never takes: in between another may have led
            return holder != self._identity or self._set_back
        fresh = self._clock.monotonic() < self._seen_at + self._seen.spec.lease_duration_seconds
        return holder not in ("", self._identity) and fresh

    def _renewed(self, old: LeaseSpec | None) -> LeaseSpec:
        now = micro_stamp(self._clock.wall())
        mine = old is not None and old.holder_identity == self._identity
        return LeaseSpec(
            holder_identity=self._identity,
            lease_duration_seconds=math.ceil(self._duration),
            acquire_time=old.acquire_time if old and mine else now,
            renew_time=now,
            lease_transitions=old.lease_transitions + (not mine) if old else 0,
        )

    async def _release(self) -> None:
        """Free the lease if a write of ours may have taken it; a failure only makes the next one wait."""
        if not self._wrote:
            return
        try:
            async with asyncio.timeout(max(self._retry, 1.0)):
                try:
                    await self._free()
                except errors.Conflict:  # a write of ours that was under way has landed in between
                    await self._free()
            self._wrote = False
        except _FAILURES as error:
            self._log.warning("lease not released", error=str(error) or type(error).__name__)

    async def _free(self) -> None:
        lease = await self._look()
        if lease and lease.spec.holder_identity == self._identity:
            freed = msgspec.structs.replace(self._renewed(lease.spec), holder_identity="")
            await self._replace(Lease(self._noted(lease.metadata), freed))

    async def _replace(self, lease: Lease) -> None:
        self._note(await self._client.replace(LEASE, self._name, lease, namespace=self._namespace))
