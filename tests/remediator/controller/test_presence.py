"""Time in which a replica stood still counts against nobody, also where it leads on when it wakes."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from types import SimpleNamespace

import pytest

from remediator.clock import Clock
from remediator.controller.presence import LOOK, Presence
from remediator.core import names
from remediator.core.absence import NEVER_AWAY, Absences, read
from remediator.kube.runtime.elector import Elector
from remediator.kube.runtime.leader import Leader
from remediator.kube.wire.client import Client
from tests.builders import START, a_case, at, minutes
from tests.remediator.kube.runtime.test_elector import Leases, Wire

pytestmark = pytest.mark.looptime(noop_cycles=0)


class Replica:
    """The only one. Both of its clocks run on during `freeze` (SIGSTOP), the monotonic one not during `suspend`."""

    def __init__(self, lease_seconds, leases=None, unfinished=()):
        self.wall = self.monotonic = 0.0
        loop = asyncio.get_running_loop()
        self.clock = Clock(
            lambda: START + timedelta(seconds=loop.time() + self.wall), lambda: loop.time() + self.monotonic
        )
        lease = {"duration": lease_seconds, "renew": lease_seconds * 2 / 3, "retry": lease_seconds * 2 / 15}
        self.elector = Elector(
            Client(Wire(leases or Leases())), "remediator", "system", "a", self.clock, rand=lambda: 0.5, **lease
        )
        pause = {"paused": False, "leaving": False}
        self.cache = SimpleNamespace(absences=NEVER_AWAY, **pause, informers=(), unfinished=unfinished)
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


@pytest.mark.slow
async def test_a_replica_that_looks_every_30_seconds_was_never_absent():
    replica = Replica(15)
    async with replica.leading():
        await asyncio.sleep(3600)
        assert replica.absent() == 0


@pytest.mark.parametrize("deleted", [True, False])
async def test_an_hour_in_which_nobody_led_is_an_absence_also_where_somebody_deleted_the_lease(deleted):
    leases = Leases()
    async with Replica(15, leases).leading():
        pass
    if deleted:
        leases.lease = None
    await asyncio.sleep(3600)
    next_leader = Replica(15, leases, unfinished=(a_case("a", created=0),))
    async with next_leader.leading():
        assert 3600 <= next_leader.absent() <= 3600 + 80


class Lease:
    """A leader's presence by a clock that the test reads, and its notes."""

    def __init__(self, *unfinished, before=(None, {})):
        self.notes = {}
        pause = {"paused": False, "leaving": False}
        self.cache = SimpleNamespace(absences=NEVER_AWAY, **pause, informers=(), unfinished=unfinished)
        leader = SimpleNamespace(before=before, note=self.notes.__setitem__, is_leader=True)
        self.presence = Presence(self.cache, leader)

    def look(self, *minutes):
        for minute in minutes:
            self.presence.look(at(minute))
        return self.cache.absences


async def test_where_the_lease_is_gone_all_time_of_a_case_that_goes_on_may_have_been_an_absence():
    """Its drain began in minute 5 and may take 30 minutes; the Lease was deleted, and we lead from minute 60 on."""
    lease = Lease(a_case("a", created=0), a_case("b", created=50))
    assert lease.look(60) == Absences().including(at(0), at(60))
    assert lease.cache.absences.deadline(at(5), minutes(30)) == at(90)
    assert lease.notes[names.ABSENCES] == str(lease.cache.absences)


async def test_what_the_lease_told_is_noted_anew_at_once_so_that_it_outlives_a_lease_that_is_deleted_while_we_lead():
    told = str(Absences().including(at(1), at(2)))
    lease = Lease(a_case("a", created=0), before=(at(60), {names.ABSENCES: told}))
    lease.look(60)
    assert lease.notes[names.ABSENCES] == told


async def test_the_first_replica_that_ever_leads_was_never_absent():
    assert Lease().look(60) == NEVER_AWAY


async def test_one_look_by_a_clock_that_is_a_year_ahead_postpones_no_deadline_by_more_than_that_look():
    lease = Lease()
    lease.look(0, 0.5)
    assert lease.look(365 * 24 * 60) == Absences().including(at(0.5), at(365 * 24 * 60))
    assert lease.look(1, 1.5, 2) == Absences().including(at(0.5), at(1))
    assert lease.cache.absences.deadline(at(2), minutes(10)) == at(12)
    assert read(lease.notes[names.ABSENCES], at(5)) == lease.cache.absences


async def test_a_clock_that_is_ahead_until_we_lead_no_more_is_no_absence_when_we_lead_again():
    lease = Lease()
    lease.look(0, 60 * 24)
    lease.presence.end(at(60 * 24))
    assert lease.look(3) == Absences().including(at(0), at(3))
    lease.presence.end(at(3))
    assert lease.look(3.5, 4).deadline(at(3), minutes(10)) == at(13)


async def test_an_absence_goes_on_from_the_time_to_which_the_clock_was_set_back():
    lease = Lease()
    lease.look(0)
    lease.cache.paused = True
    lease.look(10)
    assert lease.look(5, 7) == Absences().including(at(0), at(7))


async def test_a_pause_in_which_nodes_are_given_back_for_good_is_no_absence_so_that_what_hangs_ends_by_its_time_out():
    lease = Lease()
    lease.look(0)
    lease.cache.paused = lease.cache.leaving = True
    assert lease.look(*(minute / 2 for minute in range(1, 21))) == NEVER_AWAY


def an_informer(kind, fresh):
    return SimpleNamespace(kind=kind, fresh=lambda: fresh)


NEWS, SILENCE = an_informer("Node", True), an_informer("Pod", False)


async def test_one_watch_that_is_silent_for_ever_suspends_time_outs_for_15_minutes_and_is_then_told_by_its_kind():
    """The right to watch was taken away, or its CRD is broken; the others go on."""
    lease = Lease()
    lease.cache.informers = (NEWS, SILENCE)
    lease.look(*(minute / 2 for minute in range(29)))
    assert lease.cache.silent == ()
    absences = lease.look(*(minute / 2 for minute in range(29, 2 * 3 * 24 * 60)))
    assert absences.deadline(at(0), minutes(15)) == at(30)
    assert lease.cache.silent == ("Pod",)
    lease.cache.informers = (NEWS, NEWS)
    assert (lease.look(3 * 24 * 60), lease.cache.silent) == (absences, ())


async def test_an_outage_in_which_every_watch_is_silent_for_a_day_counts_against_no_deadline():
    lease = Lease()
    lease.cache.informers = (SILENCE, SILENCE)
    assert lease.look(*(minute / 2 for minute in range(2 * 24 * 60))).deadline(at(0), minutes(15)) == at(1454.5)
