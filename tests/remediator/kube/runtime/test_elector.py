"""One leader at a time, whatever is lost, late, cut off or asleep; and the next one soon."""

import asyncio
import json
import random
import re
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from remediator.clock import Clock
from remediator.kube.runtime.elector import Elector
from remediator.kube.wire.client import Client
from remediator.kube.wire.errors import Unavailable
from remediator.kube.wire.transport import Reply
from tests.remediator.kube.scripted import status

pytestmark = pytest.mark.looptime(noop_cycles=0)
WALL = datetime(2026, 11, 20, 12, tzinfo=UTC)


class Leases:
    """The API server's side of one Lease: resourceVersion, 404, 409."""

    def __init__(self):
        self.lease, self.version, self.writes, self.reads = None, 0, [], 0

    def handle(self, method, path, body):
        self.reads += method == "GET"
        body = json.loads(body) if body else None
        if method == "GET":
            return Reply(200, json.dumps(self.lease).encode(), {}) if self.lease else status(404, "no such lease")
        if method == "POST" and self.lease:
            return status(409, reason="AlreadyExists")
        if method == "PUT" and body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            return status(409, reason="Conflict")
        self.version += 1
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        self.writes.append((asyncio.get_running_loop().time(), method, path, body["spec"]))
        return Reply(200, json.dumps(self.lease).encode(), {})

    @property
    def holder(self):
        return self.lease["spec"]["holderIdentity"]


class Wire:
    """One replica's way to the server; `reach` is awaited before, `answer` after each request."""

    def __init__(self, leases):
        self.leases, self.down = leases, False

    async def request(self, method, path, *, query=(), body=b"", content_type="", accept="", timeout=30.0):
        await self.reach(method)
        reply = self.leases.handle(method, path, body)
        await self.answer(method)
        return reply

    async def reach(self, method):
        if self.down:
            await asyncio.sleep(3)
            raise Unavailable(0, "Unreachable", "down")

    async def answer(self, method):
        pass


class Work:
    """What a leader does: it says when it starts and when it has stopped."""

    def __init__(self, stopping=0.0):
        self.stopping, self.log = stopping, []
        self.started, self.fail = asyncio.Event(), asyncio.Event()

    def now(self):
        return asyncio.get_running_loop().time()

    async def __call__(self):
        self.log.append(("start", self.now()))
        self.started.set()
        try:
            await self.fail.wait()
            raise ValueError("the work failed")
        finally:
            await asyncio.sleep(self.stopping)
            self.log.append(("stop", self.now()))

    @property
    def running(self):
        return bool(self.log) and self.log[-1][0] == "start"


def wall():
    """A wall clock that goes on with the loop's, in whole seconds as the header Date has them."""
    return WALL + timedelta(seconds=int(asyncio.get_running_loop().time()))


def make(leases, identity, *, wire=None, **options):
    loop = asyncio.get_running_loop()
    clock = Clock(options.pop("wall", wall), options.pop("clock", loop.time))
    options = {"rand": lambda: 0.5} | options
    return Elector(Client(wire or Wire(leases)), "remediator", "remediator-system", identity, clock, **options)


async def end_all():
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.wait(others)


@asynccontextmanager
async def competing(elector, work):
    task = asyncio.create_task(elector.run(work))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_the_first_one_makes_the_lease_and_renews_it():
    """The record has Kubernetes' fields and time format, and moves on every two seconds."""
    leases, work = Leases(), Work()
    elector = make(leases, "a")
    async with competing(elector, work):
        await asyncio.sleep(11)
        assert work.running
        assert elector.is_leader
    _, method, path, spec = leases.writes[0]
    assert (method, path) == ("POST", "/apis/coordination.k8s.io/v1/namespaces/remediator-system/leases")
    assert spec == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-11-20T12:00:00.000000Z",
        "renewTime": "2026-11-20T12:00:00.000000Z",
        "leaseTransitions": 0,
    }
    renewals = [at for at, *_ in leases.writes[:-1]]
    assert 5 <= len(renewals) <= 6


class LateWrite(Wire):
    """The last renewal lands between the look and the write of the release."""

    late = 0

    async def answer(self, method):
        if self.late and method == "GET":
            self.late -= 1
            lease = json.loads(json.dumps(self.leases.lease))
            self.leases.handle("PUT", "", json.dumps(lease).encode())


async def test_a_renewal_that_lands_while_the_lease_is_given_back_does_not_keep_it():
    leases = Leases()
    wire = LateWrite(leases)
    leading = make(leases, "a", wire=wire)
    async with competing(leading, Work()) as a:
        await asyncio.sleep(5)
        wire.late = 1
        a.cancel()
        await asyncio.wait({a})
    assert leases.holder == ""


async def test_a_second_one_waits_and_takes_over_after_a_release():
    """While one leads the other does not; on shutdown work stops first, then the lease is free at once."""
    leases, first, second = Leases(), Work(stopping=1.0), Work()
    b = make(leases, "b")
    async with competing(make(leases, "a"), first) as a:
        await asyncio.sleep(1)
        async with competing(b, second):
            await asyncio.sleep(60)
            assert not second.log
            assert not b.is_leader
            a.cancel()
            await asyncio.wait({a})
            assert a.cancelled()
            assert first.log[-1] == ("stop", 62.0)
            assert leases.holder == ""
            assert leases.writes[-1][0] == 62.0
            await asyncio.sleep(4)
            assert second.running
            spec = leases.lease["spec"]
            assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("b", 1)


@pytest.mark.parametrize("leads_for", [10.0, 10.3, 10.6, 10.9, 61.5])
async def test_a_lease_that_is_given_back_is_taken_within_a_second(leads_for):
    """Whenever that is: who waits looks each second."""
    leases, first, second = Leases(), Work(), Work()
    async with competing(make(leases, "a"), first) as a:
        await asyncio.sleep(0.05)
        async with competing(make(leases, "b"), second):
            await asyncio.sleep(leads_for)
            a.cancel()
            await asyncio.wait({a})
            await asyncio.wait_for(second.started.wait(), 2)
            assert second.log == [("start", pytest.approx(first.log[-1][1], abs=1.0))]


async def test_who_waits_reads_the_lease_each_second_and_writes_nothing():
    """61 reads in a minute, the first one at once; of the leader's requests there are no more for it."""
    leases, waiting = Leases(), Wire(Leases())
    waiting.leases.lease = {"metadata": {"resourceVersion": "0"}, "spec": {"holderIdentity": "a"}}
    async with competing(make(leases, "b", wire=waiting, duration=90.0, renew=60.0), Work()):
        for version in range(6):
            waiting.leases.lease["metadata"]["resourceVersion"] = str(version)
            await asyncio.sleep(10)
        await asyncio.sleep(0.5)
        assert (waiting.leases.reads, len(waiting.leases.writes)) == (61, 0)


async def test_who_waits_asks_an_api_server_that_is_away_no_oftener_than_before():
    """Three seconds until there is no answer, and three of a pause: ten times in a minute, not fifteen."""
    leases, waiting = Leases(), Wire(Leases())
    waiting.leases.lease = {"metadata": {"resourceVersion": "0"}, "spec": {"holderIdentity": "a"}}
    asked = []

    async def reach(method):
        asked.append(method)
        await Wire.reach(waiting, method)

    waiting.reach = reach
    async with competing(make(leases, "b", wire=waiting), Work()):
        await asyncio.sleep(0.5)
        waiting.down = True
        await asyncio.sleep(60)
        assert asked == ["GET"] * 11


async def test_a_dead_leader_is_followed_after_the_lease_has_stood_still():
    """Another's lease is judged by how long we saw it unchanged, never by the times written in it."""
    leases, work = Leases(), Work()
    spec = {"holderIdentity": "dead", "leaseDurationSeconds": 20, "renewTime": "1999-01-01T00:00:00.000000Z"}
    leases.lease = {"metadata": {"name": "remediator", "resourceVersion": "0", "labels": {"x": "y"}}, "spec": spec}
    async with competing(make(leases, "b"), work):
        await asyncio.sleep(19.9)
        assert not work.log
        await asyncio.sleep(5)
        assert work.running
        assert leases.lease["metadata"]["labels"] == {"x": "y"}


async def test_a_lease_that_moves_is_never_taken():
    """Any renewal that is seen starts the wait anew."""
    leases, work = Leases(), Work()
    async with competing(make(leases, "b"), work):
        for beat in range(30):
            meta = {"name": "remediator", "resourceVersion": str(beat)}
            leases.lease = {"metadata": meta, "spec": {"holderIdentity": "a", "renewTime": "the wall clock stands"}}
            await asyncio.sleep(10)
        assert not work.log


async def test_a_leader_that_is_cut_off_stops_before_another_may_start():
    """Ten seconds after its last renewal began the old one stops, fifteen after it the new one may start."""
    leases, first, second = Leases(), Work(stopping=3.0), Work()
    wire = Wire(leases)
    a = make(leases, "a", wire=wire)
    async with competing(a, first), competing(make(leases, "b"), second):
        await asyncio.sleep(60)
        last_renewal = leases.writes[-1][0]
        wire.down = True
        await asyncio.sleep(40)
        stopped = first.log[-1][1]
        assert stopped == pytest.approx(last_renewal + 13, abs=0.1)
        assert not a.is_leader
        started = second.log[0][1]
        assert last_renewal + 15 <= started <= last_renewal + 20


async def test_one_that_never_wrote_ends_at_once():
    """Without a lease to give back, shutdown asks a server that is away nothing."""
    leases, work = Leases(), Work()
    wire = Wire(leases)
    wire.down = True
    async with competing(make(leases, "a", wire=wire), work) as task:
        await asyncio.sleep(20)
        task.cancel()
        await asyncio.wait({task})
        assert asyncio.get_running_loop().time() == 20


async def test_a_short_outage_costs_no_leadership():
    """Renewals that fail for less than the deadline are tried again, right after taking the lease as later."""
    leases, work = Leases(), Work()
    wire = Wire(leases)
    async with competing(make(leases, "a", wire=wire), work):
        for _ in range(5):
            await asyncio.sleep(0.5)
            wire.down = True
            await asyncio.sleep(6)
            wire.down = False
            await asyncio.sleep(6)
        assert len(work.log) == 1


async def test_an_outage_right_after_a_takeover_costs_no_leadership():
    """What we saw before taking the lease says nothing about who holds it now."""
    leases, work = Leases(), Work()
    wire = Wire(leases)
    leases.lease = {"metadata": {"resourceVersion": "0"}, "spec": {"holderIdentity": "dead"}}
    async with competing(make(leases, "a", wire=wire), work):
        await work.started.wait()
        wire.down = True
        await asyncio.sleep(6)
        wire.down = False
        await asyncio.sleep(20)
        assert len(work.log) == 1


async def test_the_deadline_counts_from_the_start_of_the_last_renewal():
    """A reply that took four seconds gives no four seconds more."""
    leases, work = Leases(), Work()
    wire = Wire(leases)

    async def slow(method):
        if method != "GET":
            await asyncio.sleep(4)

    async with competing(make(leases, "a", wire=wire), work):
        await asyncio.sleep(1)
        wire.answer = slow
        await asyncio.sleep(3)
        written = leases.writes[-1][0]
        await asyncio.sleep(4)
        wire.down = True
        assert len(leases.writes) == 3
        later = leases.writes[-1][0]
        assert work.running
        await asyncio.sleep(30)
        assert work.log[1] == ("stop", written + 10) or work.log[1] == ("stop", later + 10)


async def test_after_a_loss_it_competes_again():
    """A replica that lost the lease and finds it free later leads once more."""
    leases, work = Leases(), Work()
    wire = Wire(leases)
    async with competing(make(leases, "a", wire=wire), work):
        await asyncio.sleep(5)
        wire.down = True
        await asyncio.sleep(30)
        wire.down = False
        await asyncio.sleep(30)
        assert [what for what, _ in work.log] == ["start", "stop", "start"]


@pytest.mark.parametrize("holder", ["b", ""])
async def test_a_leader_that_is_no_more_the_holder_stops_at_once(holder):
    """If the record names another or nobody, another may have led meanwhile: the work stops now."""
    leases, work = Leases(), Work()
    async with competing(make(leases, "a"), work):
        await asyncio.sleep(5)
        leases.lease["spec"]["holderIdentity"] = holder
        leases.lease["metadata"]["resourceVersion"] = "999"
        await asyncio.sleep(3)
        assert work.log[1][0] == "stop"


async def test_work_that_does_not_stop_ends_the_process_before_the_lease_passes_on():
    """The last resort comes before fifteen seconds after the last renewal, and the lease is not released."""
    leases, stuck = Leases(), []
    wire = Wire(leases)

    async def stubborn():
        while True:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                if asyncio.get_running_loop().time() > 100:
                    raise

    clock = asyncio.get_running_loop().time
    elector = make(leases, "a", wire=wire, on_stuck=lambda: stuck.append(clock()))
    task = asyncio.create_task(elector.run(stubborn))
    await asyncio.sleep(30)
    last = leases.writes[-1][0]
    wire.down = True
    await asyncio.sleep(30)
    assert len(stuck) == 1
    assert last + 13 < stuck[0] < last + 15
    wire.down = False
    assert leases.holder == "a"
    task.cancel()
    await asyncio.sleep(5)
    assert not task.done()
    assert leases.holder == "a"
    await asyncio.sleep(2000)
    await end_all()


async def test_a_second_shutdown_signal_does_not_leave_the_work_running():
    """Cancelled twice, it still waits for the work and only then gives up the lease."""
    leases, work = Leases(), Work(stopping=5.0)
    async with competing(make(leases, "a"), work) as task:
        await asyncio.sleep(5)
        task.cancel()
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.sleep(1)
        assert leases.holder == "a"
        await asyncio.wait({task})
        assert task.cancelled()
        assert work.log[-1] == ("stop", 10.0)


async def test_failing_work_ends_the_run_and_frees_the_lease():
    """What the work raises comes out, and the next one need not wait."""
    leases, work = Leases(), Work()
    task = asyncio.create_task(make(leases, "a").run(work))
    await asyncio.sleep(5)
    work.fail.set()
    with pytest.raises(ValueError, match="the work failed"):
        await task
    assert leases.holder == ""


async def test_work_that_ends_by_itself_ends_the_run():
    """Nothing left to lead: released and returned."""
    leases = Leases()
    await make(leases, "a").run(lambda: asyncio.sleep(30))
    assert asyncio.get_running_loop().time() < 35
    assert leases.holder == ""


async def test_a_process_that_slept_is_no_leader_when_it_wakes():
    """Before anything else runs, the clock alone says that leadership is over; then the work is stopped."""
    leases, work, slept = Leases(), Work(), 0.0
    loop = asyncio.get_running_loop()
    elector = make(leases, "a", clock=lambda: loop.time() + slept)
    async with competing(elector, work):
        await asyncio.sleep(5)
        assert elector.is_leader
        slept = 60.0
        assert not elector.is_leader
        await asyncio.sleep(2.5)
        assert work.log[1][0] == "stop"


async def test_a_lease_won_too_long_ago_is_not_led_on():
    """A process that slept between asking and hearing the answer does not start its work on an old lease."""
    leases, work, slept = Leases(), Work(), 0.0
    loop = asyncio.get_running_loop()
    wire = Wire(leases)

    async def sleep_over_the_reply(method):
        nonlocal slept
        if method == "POST":
            slept = 60.0

    wire.answer = sleep_over_the_reply
    async with competing(make(leases, "a", wire=wire, clock=lambda: loop.time() + slept), work):
        await asyncio.sleep(1)
        assert not work.log
        await asyncio.sleep(5)
        assert work.running


async def test_a_lost_reply_to_the_first_write_still_leads_to_leadership():
    """A write whose answer was lost is found on the next look; on shutdown it would be released."""
    leases, work, lost = Leases(), Work(), [True]
    wire = Wire(leases)

    async def answer(method):
        if method == "POST" and lost.pop():
            raise Unavailable(0, "Unreachable", "lost")

    wire.answer = answer
    async with competing(make(leases, "a", wire=wire), work):
        await asyncio.sleep(1)
        assert leases.holder == "a"
        assert not work.log
        await asyncio.sleep(4)
        assert work.running
        assert leases.lease["spec"]["leaseTransitions"] == 0
    assert leases.holder == ""


class Weather(Wire):
    """A bad network: slow, lossy, with requests that arrive after their sender gave up."""

    def __init__(self, leases, chance):
        super().__init__(leases)
        self.chance, self.stragglers = chance, set()

    async def request(self, method, path, *, query=(), body=b"", content_type="", accept="", timeout=30.0):
        if self.down:
            raise Unavailable(0, "Unreachable", "down")
        if self.chance.random() < 0.1:
            straggler = asyncio.create_task(self.later(method, path, body))
            self.stragglers.add(straggler)
            await asyncio.sleep(self.chance.random() * 6)
            raise Unavailable(0, "Unreachable", "lost")
        return await super().request(method, path, body=body)

    async def later(self, method, path, body):
        await asyncio.sleep(self.chance.random() * 20)
        if self.leases.lease or method == "POST":
            self.leases.handle(method, path, body)

    async def reach(self, method):
        await asyncio.sleep(self.chance.random() ** 3 * 4)

    async def answer(self, method):
        await asyncio.sleep(self.chance.random() ** 3 * 4)
        if self.chance.random() < 0.1:
            raise Unavailable(0, "Unreachable", "lost")


class Room:
    """The exclusive section; `filled` are the times in which somebody was inside."""

    def __init__(self, chance):
        self.inside, self.filled, self.chance = set(), [], chance

    async def enter(self, name):
        assert not self.inside, f"{name} enters beside {self.inside}"
        self.inside.add(name)
        began = asyncio.get_running_loop().time()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(self.chance.random() * 4)  # what it takes to stop
            self.inside.discard(name)
            self.filled.append((began, asyncio.get_running_loop().time()))


def idle(room, writes, end):
    """Seconds in which nobody was inside and the Lease let another one in: given back, or written 15 seconds ago."""
    following = [*(at for at, *_ in writes[1:]), end]
    spans = [(at, min(at + 15, then), spec) for (at, *_, spec), then in zip(writes, following, strict=True)]
    held = [(at, until) for at, until, spec in spans if spec["holderIdentity"]]
    covered = last = 0.0
    for begin, stop in sorted([*room.filled, *held]):
        covered += max(0.0, min(stop, end) - max(begin, last))
        last = max(last, min(stop, end))
    return end - covered


async def life(leases, room, chance, number):
    """One replica: it starts, loses the network for a while, is shut down or killed, and starts again."""
    for start in range(1000):
        name, wire = f"{number}-{start}", Weather(leases, chance)
        elector = make(leases, name, wire=wire, rand=chance.random)
        task = asyncio.create_task(elector.run(lambda name=name: room.enter(name)))
        await _wait(task, chance.random() * 200)
        wire.down = chance.random() < 0.7  # with the network gone a shutdown releases nothing
        await _wait(task, chance.random() * 40)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled(), task.exception()


async def _wait(task, seconds):
    await asyncio.wait({task}, timeout=seconds)
    assert not task.done(), task.exception()


@pytest.mark.sampled
@pytest.mark.looptime(noop_cycles=0)
@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(8, 100))])
async def test_never_two_at_once_and_mostly_one(seed):
    """Three replicas, an hour of bad weather, restarts and cuts: never two inside, and the room is not left empty.

    How long a Lease is held for nobody is the weather's: writes whose answers are lost. While it is not, the room is
    empty for 560 s in the middle of 100 seeds, and for 700 in one; where it is asked for half as often for 830.
    """
    chance, leases = random.Random(seed), Leases()
    room = Room(chance)
    lives = [asyncio.create_task(life(leases, room, chance, number)) for number in range(3)]
    done, _ = await asyncio.wait(lives, timeout=3600, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()
    writes, entries = list(leases.writes), len(room.filled)
    moments = [spec["renewTime"] for *_, spec in writes]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", moment) for moment in moments)
    await end_all()
    assert entries > 15
    assert idle(room, writes, 3600) < 750


class DatedWire(Wire):
    """A server whose clock is so far ahead of ours."""

    def __init__(self, leases, ahead):
        super().__init__(leases)
        self.ahead = ahead

    async def request(self, *args, **kwargs):
        reply = await super().request(*args, **kwargs)
        return reply._replace(headers={"date": format_datetime(wall() + self.ahead, usegmt=True)})


@pytest.mark.parametrize("seconds", [-31, -30, 0, 30, 31])
async def test_who_stands_more_than_30_seconds_from_the_servers_clock_does_not_lead(seconds):
    """The header Date has whole seconds: the server's second may be nearly over."""
    leases, work = Leases(), Work()
    elector = make(leases, "a", wire=DatedWire(leases, timedelta(seconds=seconds + (-1 if seconds < 0 else 0))))
    async with competing(elector, work):
        await asyncio.sleep(30)
        assert work.running == elector.is_leader == (abs(seconds) <= 30)
        assert bool(leases.writes) == (abs(seconds) <= 30)
        assert elector.skew == timedelta(seconds=seconds)


async def test_a_leader_whose_clock_jumps_stops_and_the_next_one_takes_over():
    leases, first, second = Leases(), Work(), Work()
    wire = DatedWire(leases, timedelta(0))
    elector = make(leases, "a", wire=wire)
    async with competing(elector, first), competing(make(leases, "b"), second):
        await asyncio.sleep(10)
        assert first.running
        wire.ahead = timedelta(minutes=-10)
        await asyncio.sleep(10)
        assert (first.running, elector.is_leader, second.running) == (False, False, True)
        wire.ahead = timedelta(0)
        await asyncio.sleep(10)
        assert (first.running, second.running) == (False, True)


async def test_the_next_leader_finds_what_the_last_one_noted_and_when_it_was_there_last():
    leases, first, second = Leases(), Work(), Work()
    a, b = make(leases, "a"), make(leases, "b")
    async with competing(a, first) as task:
        await asyncio.sleep(3)
        assert a.before == (None, {})
        a.note("example.com/x", "1")
        await asyncio.sleep(3)
        assert leases.lease["metadata"]["annotations"] == {"example.com/x": "1"}
        task.cancel()
        await asyncio.wait({task})
    async with competing(b, second):
        await asyncio.sleep(10)
        assert b.before == (WALL + timedelta(seconds=6), {"example.com/x": "1"})
        assert leases.lease["metadata"]["annotations"] == {"example.com/x": "1"}, "and it stays"


async def test_the_lease_says_how_its_holder_was_started_from_the_first_write_on():
    leases, first, second = Leases(), Work(), Work()
    async with competing(make(leases, "a", notes={"example.com/s": "1"}), first) as task:
        await asyncio.sleep(0.5)
        assert leases.lease["metadata"]["annotations"] == {"example.com/s": "1"}
        task.cancel()
        await asyncio.wait({task})
    async with competing(make(leases, "b", notes={"example.com/s": "2"}), second):
        await asyncio.sleep(1)
        assert leases.lease["metadata"]["annotations"] == {"example.com/s": "2"}


async def test_who_was_cut_off_and_leads_again_knows_since_when_it_could_not_act():
    """Nobody else has taken the lease meanwhile: it still names us."""
    leases, work = Leases(), Work()
    wire = Wire(leases)
    elector = make(leases, "a", wire=wire)
    async with competing(elector, work):
        await asyncio.sleep(5)
        assert elector.before == (None, {})
        elector.note("example.com/x", "1")
        await asyncio.sleep(5)
        wire.down = True
        await asyncio.sleep(30)
        assert not work.running
        wire.down = False
        await asyncio.sleep(10)
        assert work.running
        assert elector.before == (WALL + timedelta(seconds=8), {"example.com/x": "1"})


async def test_a_leader_whose_lease_went_back_stops_and_leads_again_once_it_has_won_it_anew():
    """A backup was restored that names the same holder: what was decided since it was made is not so."""
    leases, work = Leases(), Work()
    async with competing(make(leases, "a"), work):
        await asyncio.sleep(10)
        backup = leases.lease
        await asyncio.sleep(20)
        leases.lease = backup
        await asyncio.sleep(10)
        assert [what for what, _ in work.log] == ["start", "stop", "start"]
        assert work.log[1][1] - 30 <= 2.5


@pytest.mark.parametrize("holder", ["a", "b"])
async def test_whoever_finds_the_lease_older_than_it_was_says_so_once(holder):
    """A leader does, and so does a replica that only waits: both have read what is not so any more."""
    leases, told = Leases(), []
    elector = make(leases, holder, on_set_back=lambda: told.append(asyncio.get_running_loop().time()))
    async with competing(make(leases, "a") if holder == "b" else elector, Work()):
        await asyncio.sleep(1)
        async with competing(elector, Work()) if holder == "b" else nullcontext():
            await asyncio.sleep(9)
            backup = leases.lease
            await asyncio.sleep(20)
            assert told == []
            leases.lease = backup
            await asyncio.sleep(10)
    assert len(told) == 1
    assert told[0] - 30 <= 2.5
