"""One lease for all writers: queues begin with everything, sweeps follow the clock, a failure stops nobody else."""

import asyncio
import contextlib
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from apscheduler.triggers.cron import CronTrigger
from structlog.testing import capture_logs

from remediator.clock import Clock
from remediator.kube.runtime.leader import Leader, LeaderQueue, Sweep, every, sweeping

pytestmark = pytest.mark.looptime
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


class Holds:
    """An elector that leads from the start, until `lost`."""

    def __init__(self):
        self.is_leader, self.lost = True, asyncio.Event()

    async def run(self, lead):
        while not self.lost.is_set():
            work, loss = asyncio.ensure_future(lead()), asyncio.ensure_future(self.lost.wait())
            try:
                await asyncio.wait({work, loss}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                loss.cancel()
                work.cancel()
            if work.done() and not work.cancelled():
                work.result()
            with contextlib.suppress(asyncio.CancelledError):
                await work
        await asyncio.Event().wait()


class Unsynced:
    """An informer whose list is complete after a while."""

    def __init__(self, after, behind=0):
        self.after, self.behind = after, behind

    async def synced(self):
        await asyncio.sleep(self.after)

    async def caught_up(self):
        await asyncio.sleep(self.behind)


def clock(ahead=timedelta()):
    """A clock that goes with the loop."""
    loop = asyncio.get_running_loop()
    return Clock(lambda: NOON + ahead + timedelta(seconds=loop.time()), loop.time)


def now():
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def leading(*queues, elector=None):
    leader = Leader(elector or Holds(), clock(), rand=lambda: 1.0)
    for queue in queues:
        leader.add(queue)
    task = asyncio.ensure_future(leader.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


def queue(name, serve, keys=(), informers=(), **options):
    return LeaderQueue(name, serve, lambda: keys, workers=1, informers=lambda: informers, **options)


async def test_leading_begins_with_everything_and_takes_keys_until_it_is_over():
    served, ended = [], []

    async def serve(key):
        served.append(key)

    made, elector = queue("q", serve, ["a", "b"], ended=lambda: ended.append(now())), Holds()
    made.add("too early")
    async with leading(made, elector=elector):
        await asyncio.sleep(1)
        assert made.leading
        made.add("c", "d")
        await asyncio.sleep(1)
        elector.lost.set()
        await asyncio.sleep(1)
        assert not made.leading
        made.add("too late")
        assert made.depth == 0
        await asyncio.sleep(1)
    assert served == ["a", "b", "c", "d"]
    assert ended == [2]


async def test_a_queue_that_comes_while_we_lead_is_served_at_once_and_later_not_before_the_next_lease():
    served, elector = [], Holds()

    async def serve(key):
        served.append((now(), key))

    leader = Leader(elector, clock(), rand=lambda: 1.0)
    leader.add(queue("first", serve))
    task = asyncio.ensure_future(leader.run())
    await asyncio.sleep(5)
    leader.add(queue("later", serve, ["a"], essential=False))
    await asyncio.sleep(5)
    elector.is_leader = False
    elector.lost.set()
    await asyncio.sleep(1)
    leader.add(queue("too late", serve, ["b"], essential=False))
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait({task})
    assert served == [(5, "a")]


async def test_what_a_queue_waits_for_may_be_said_when_it_begins():
    begun, informers = [], []

    async def serve(key):
        begun.append(now())

    def prepare():
        informers.append(Unsynced(after=7))

    async with leading(queue("q", serve, ["a"], informers, essential=False, prepare=prepare)):
        await asyncio.sleep(20)
    assert begun == [7]


async def test_nothing_is_served_before_the_caches_have_what_the_server_had_when_the_lease_was_won():
    begun = {}

    async def serve(key):
        begun[key] = now()

    async with leading(
        queue("first", serve, ["first"], informers=[Unsynced(0, behind=30)]), queue("second", serve, ["second"])
    ):
        await asyncio.sleep(29)
        assert begun == {}
        await asyncio.sleep(60)
    assert min(begun["first"], begun["second"]) >= 30


async def test_the_lease_is_competed_for_once_essential_queues_know_the_cluster_and_others_may_come_later():
    begun = {}

    async def serve(key):
        begun[key] = now()

    first = queue("first", serve, ["first"], informers=[Unsynced(5)])
    second = queue("second", serve, ["second"], informers=[Unsynced(20)], essential=False)
    async with leading(first, second):
        await asyncio.sleep(60)
    assert begun["first"] < 12
    assert begun["second"] >= 20


async def test_a_queue_that_is_not_essential_begins_only_with_what_the_api_server_has_now():
    """Else an issue of a Ticket that a restored backup does not know is opened again."""
    begun = {}

    async def serve(key):
        begun[key] = now()

    first = queue("first", serve, ["first"], informers=[Unsynced(0)])
    second = queue("second", serve, ["second"], informers=[Unsynced(0, behind=30)], essential=False)
    async with leading(first, second):
        await asyncio.sleep(60)
    assert begun["first"] < 10
    assert begun["second"] >= 30


async def test_a_queue_that_fails_as_a_whole_begins_anew_and_the_others_go_on():
    begun, served = [], []

    def everything():
        begun.append(now())
        if len(begun) < 4:
            raise ValueError("a bug")
        return ["ticket"]

    async def serve(key):
        served.append((key, now()))
        return 10.0 if key == "node" else None

    broken = LeaderQueue("tickets", serve, everything, workers=1, essential=False)
    with capture_logs() as logs:
        async with leading(queue("controller", serve, ["node"]), broken) as task:
            await asyncio.sleep(25)
            assert not task.done()
    assert begun == [0, 1, 3, 7], "after waits that double"
    assert [at for key, at in served if key == "node"] == [0, 10, 20]
    assert [at for key, at in served if key == "ticket"] == [7]
    assert [entry["queue"] for entry in logs if "queue" in entry] == ["tickets"] * 3


async def test_a_pass_that_raises_is_tried_again_and_ends_no_leading():
    tries = []

    async def serve(key):
        tries.append(now())
        raise ValueError("a bug")

    with capture_logs():
        async with leading(queue("q", serve, ["a"])) as task:
            await asyncio.sleep(60)
            assert not task.done()
    assert len(tries) > 3


async def test_an_essential_queue_that_fails_as_a_whole_ends_the_leader():
    def everything():
        raise ValueError("a bug")

    leader = Leader(Holds(), clock())
    leader.add(LeaderQueue("controller", None, everything, workers=1))
    with pytest.raises(ExceptionGroup):
        await leader.run()


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        pytest.param(every(timedelta(minutes=10)), [600, 1200, 1800], id="every 10 minutes, from when it began"),
        pytest.param(CronTrigger(minute=20, timezone="Asia/Kolkata"), [3000], id="at 18:20 in Kolkata"),
    ],
)
async def test_a_sweep_is_due_as_its_trigger_says(trigger, expected):
    due = []
    task = asyncio.ensure_future(sweeping(Sweep("s", trigger, lambda: due.append(round(now()))), clock()))
    await asyncio.sleep(expected[-1] + 300)
    task.cancel()
    assert due == expected


async def test_a_sweep_that_was_missed_while_the_clock_jumped_is_made_once():
    """The wall clock is set 5 hours ahead after a quarter of an hour: 30 sweeps are overdue, one is made."""
    due, ahead, loop = [], [timedelta()], asyncio.get_running_loop()
    wall = Clock(lambda: NOON + ahead[0] + timedelta(seconds=loop.time()), loop.time)
    task = asyncio.ensure_future(sweeping(Sweep("s", every(timedelta(minutes=10)), lambda: due.append(now())), wall))
    await asyncio.sleep(900)
    ahead[0] = timedelta(hours=5)
    await asyncio.sleep(1000)
    task.cancel()
    assert due == [600, 900, 1500]


async def test_a_sweep_that_fails_is_logged_and_due_again():
    due = []

    def fails():
        due.append(now())
        raise ValueError("a bug")

    with capture_logs() as logs:
        task = asyncio.ensure_future(sweeping(Sweep("all", every(timedelta(minutes=1)), fails), clock()))
        await asyncio.sleep(150)
        task.cancel()
    assert due == [60, 120]
    assert [entry["sweep"] for entry in logs] == ["all", "all"]


async def test_a_clock_set_back_6_hours_stops_no_sweep_for_so_long():
    """It is set back 5 minutes after the beginning: the interval of 10 minutes begins anew within a minute of that."""
    due, ahead, loop = [], [timedelta()], asyncio.get_running_loop()
    wall = Clock(lambda: NOON + ahead[0] + timedelta(seconds=loop.time()), loop.time)
    task = asyncio.ensure_future(sweeping(Sweep("s", every(timedelta(minutes=10)), lambda: due.append(now())), wall))
    await asyncio.sleep(290)
    ahead[0] = -timedelta(hours=6)
    await asyncio.sleep(1300)
    task.cancel()
    assert due == [900, 1500]


async def test_a_queue_that_just_ends_begins_anew_after_a_wait_and_one_that_ran_for_long_waits_little():
    """It ends at once 3 times, then after 100 seconds: more than the longest wait."""
    begun = []

    class Ends:
        name, informers, essential = "ends", (), False

        async def run(self, clock):
            begun.append(now())
            await asyncio.sleep(100 if len(begun) == 4 else 0)

    with capture_logs():
        async with leading(Ends()):
            await asyncio.sleep(109)
    assert begun == [0, 1, 3, 7, 108]
