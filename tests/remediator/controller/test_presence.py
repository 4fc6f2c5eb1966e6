"""Time in which a replica stood still counts against nobody, also where it leads on when it wakes."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from types import SimpleNamespace

import pytest

from remediator.clock import Clock
from remediator.controller.presence import LOOK, Presence
from remediator.core.absence import NEVER_AWAY
from remediator.kube.runtime.elector import Elector
from remediator.kube.runtime.leader import Leader
from remediator.kube.wire.client import Client
from tests.builders import START
from tests.remediator.kube.runtime.test_elector import Leases, Wire

pytestmark = pytest.mark.looptime(noop_cycles=0)


class Replica:
    """The only one. Both of its clocks run on during `freeze` (SIGSTOP), the monotonic one not during `suspend`."""

    def __init__(self, lease_seconds):
        self.wall = self.monotonic = 0.0
        loop = asyncio.get_running_loop()
        self.clock = Clock(
            lambda: START + timedelta(seconds=loop.time() + self.wall), lambda: loop.time() + self.monotonic
        )
        lease = {"duration": lease_seconds, "renew": lease_seconds * 2 / 3, "retry": lease_seconds * 2 / 15}
        self.elector = Elector(
            Client(Wire(Leases())), "remediator", "system", "a", self.clock, rand=lambda: 0.5, **lease
        )
        self.cache = SimpleNamespace(absences=NEVER_AWAY, paused=False, informers=())
        self.presence = Presence(self.cache, Leader(self.elector, self.clock))

    def freeze(self, seconds):
        self.wall += seconds
        self.monotonic += seconds

    def suspend(self, seconds):
        self.wall += seconds

    @asynccontextmanager
    async def leading(self):
        async def lead():
            try:
                while True:
                    self.presence.look(self.clock.now())
                    await asyncio.sleep(LOOK.total_seconds())
            finally:
                self.presence.end(self.clock.now())

        task = asyncio.create_task(self.elector.run(lead))
        try:
            await asyncio.sleep(35)
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    def absent(self):
        return sum((gap.end - gap.begin).total_seconds() for gap in self.cache.absences.gaps)


@pytest.mark.parametrize("seconds", [11, 30, 60, 90])
async def test_with_the_shipped_lease_a_freeze_of_11_seconds_or_more_counts_against_no_deadline(seconds):
    replica = Replica(15)
    async with replica.leading():
        assert replica.absent() == 0
        replica.freeze(seconds)
        await asyncio.sleep(60)
        assert replica.elector.is_leader
        assert seconds <= replica.absent() <= seconds + 45


@pytest.mark.parametrize("stops", [Replica.freeze, Replica.suspend])
@pytest.mark.parametrize("lease_seconds", [15, 120])
async def test_a_replica_that_keeps_its_lease_and_stood_still_for_41_seconds_was_absent(stops, lease_seconds):
    replica = Replica(lease_seconds)
    async with replica.leading():
        stops(replica, 41)
        await asyncio.sleep(60)
        assert replica.elector.is_leader
        assert 41 <= replica.absent() <= 41 + 45


async def test_a_replica_that_looks_every_30_seconds_was_never_absent():
    replica = Replica(15)
    async with replica.leading():
        await asyncio.sleep(3600)
        assert replica.absent() == 0
