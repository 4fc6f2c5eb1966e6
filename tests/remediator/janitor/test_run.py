"""The loop: a pass at once and in each interval, whatever one of them meets, and only by the replica that leads."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

import aiohttp
import pytest
from structlog.testing import capture_logs

from remediator.clock import Clock
from remediator.core.idle_policy import JanitorMode
from remediator.janitor.idle.sources import Sources
from remediator.janitor.outcome import JanitorOutcome
from remediator.janitor.rules import read
from remediator.janitor.run import Janitor
from remediator.janitor.settings import JanitorSettings
from remediator.kube.runtime.elector import Elector
from remediator.web import janitor as page
from tests.harness.kinds import PODS
from tests.remediator.janitor.idle_place import Cluster
from tests.remediator.janitor.place import NOW, Place

BROKEN = read("rules: [{id: broken, resources: [pods], jmespath: a..b, ttl: 1h}]")


def clock() -> Clock:
    """The time of the loop, whose beginning is NOW."""
    loop = asyncio.get_running_loop()
    return Clock(lambda: NOW + timedelta(seconds=loop.time()), loop.time)


@contextlib.asynccontextmanager
async def running(janitor: Janitor) -> AsyncIterator[None]:
    work = asyncio.create_task(janitor.run())
    try:
        yield
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


@pytest.mark.looptime(start=1)
async def test_a_pass_is_made_at_once_and_then_in_each_interval() -> None:
    place = Place()
    await place.pod("a", ttl="10h")  # over one second ago
    await place.pod("b", ttl="10h1m30s")
    janitor = Janitor(place.client, JanitorSettings(JanitorMode.ENFORCE, interval=60), clock())
    async with running(janitor):
        await asyncio.sleep(1)
        assert await place.names(PODS) == {"b"}
        await asyncio.sleep(117)
        assert await place.names(PODS) == {"b"}
        await asyncio.sleep(3)
        assert await place.names(PODS) == set()


@pytest.mark.looptime(start=1)
async def test_a_pass_that_fails_is_logged_and_the_next_goes_on() -> None:
    place = Place()
    await place.pod("a", ttl="1h")
    place.server.faults.refuse(500, when=lambda asked: asked.path == "/apis")
    janitor = Janitor(place.client, JanitorSettings(JanitorMode.ENFORCE, BROKEN, interval=60), clock())
    with capture_logs() as logs:
        async with running(janitor):
            await asyncio.sleep(61)
    assert [log["event"] for log in logs] == [
        "the janitor's pass failed",
        "deleted",
        "the janitor cannot do all",
        "pass",
    ]
    assert logs[1]["object"] == "pods/team/a"
    assert logs[2]["problem"].startswith("rule broken: column 3")
    assert logs[3]["pods-deleted"] == 1


@pytest.mark.looptime(start=1)
async def test_what_would_be_deleted_is_logged_once_and_not_with_each_pass() -> None:
    place = Place()
    await place.pod("a", ttl="1h")
    await place.pod("b", ttl="10h1m30s")
    with capture_logs() as logs:
        async with running(Janitor(place.client, JanitorSettings(interval=60), clock())):
            await asyncio.sleep(245)
    assert [log.get("object", log["event"]) for log in logs] == [
        "pods/team/a", "pass", "pass", "pods/team/b", "pass", "pass", "pass"
    ]  # fmt: skip


@pytest.mark.looptime(start=1)
async def test_what_was_done_for_an_idle_policy_is_logged_by_the_pass_that_has_looked() -> None:
    at = Cluster()
    await at.policy()
    await at.gpus("p")
    with capture_logs() as logs:
        janitor = Janitor(
            at.client, JanitorSettings(JanitorMode.ENFORCE, interval=60), clock(), sources=Sources(at.asked)
        )
        async with running(janitor):
            await asyncio.sleep(185)
    assert [log.get("object", log["event"]) for log in logs] == ["pods/team/p", "pass", "pass", "pass", "pass"]


@pytest.mark.looptime(start=1)
async def test_a_replica_that_leads_again_looks_at_idle_policies_at_once() -> None:
    at = Cluster()
    await at.policy()
    await at.gpus("p")
    janitor = Janitor(at.client, JanitorSettings(interval=60), clock(), sources=Sources(at.asked))
    looked = []
    for _ in range(2):
        async with running(janitor):
            await asyncio.sleep(70)
        looked.append(sum(path.endswith("/idlepolicies") for _, path, *_ in at.transport.asked))
    assert looked == [1, 2], "what another has told owners meanwhile is not known; else once in ten minutes"


@pytest.mark.looptime(start=1)
async def test_it_is_ready_while_passes_end_or_another_replica_makes_them() -> None:
    place, leads = Place(), [True]
    place.server.faults.refuse(500, times=1000)
    janitor = Janitor(place.client, JanitorSettings(interval=60), clock(), lambda: leads[0])
    async with running(janitor):
        await asyncio.sleep(170)
        assert janitor.ready()
        await asyncio.sleep(20)
        assert not janitor.ready()
        leads[0] = False
        assert janitor.ready()


@pytest.mark.looptime(start=1)
async def test_a_replica_that_leads_no_more_writes_nothing() -> None:
    place = Place()
    await place.pod("a", ttl="1h")
    await place.pod("b", ttl="90")
    report = await Janitor(place.client, JanitorSettings(JanitorMode.ENFORCE), clock(), lambda: False).once()
    assert report.problems == ["the pass ended early: another replica leads"]
    assert report.totals[JanitorOutcome.DELETED] == 0
    assert place.writes() == []


@pytest.mark.looptime(start=1)
async def test_of_two_replicas_one_makes_the_passes() -> None:
    place = Place()
    await place.space("ours")
    made = []
    async with asyncio.TaskGroup() as group:
        tasks = []
        for name in ("one", "two"):
            elector = Elector(place.client, "remediator-janitor", "ours", name, clock())
            janitor = Janitor(place.client, JanitorSettings(interval=60), clock(), lambda it=elector: it.is_leader)  # type: ignore[misc]
            made.append(janitor)
            tasks.append(group.create_task(elector.run(janitor.run)))
        await asyncio.sleep(30)
        for task in tasks:
            task.cancel()
    assert [janitor.last is not None for janitor in made].count(True) == 1


async def test_the_report_of_the_last_pass_is_served() -> None:
    place = Place()
    await place.pod("a", ttl="1h")
    janitor = Janitor(place.client, JanitorSettings(), Clock(lambda: NOW, asyncio.get_running_loop().time))
    async with page.endpoint(janitor).served("127.0.0.1:0") as port, aiohttp.ClientSession() as session:

        async def asked(path: str) -> tuple[int, str]:
            async with session.get(f"http://127.0.0.1:{port}{path}") as answer:
                return answer.status, await answer.text()

        assert await asked("/report") == (503, "no pass has ended yet, or another replica makes them\n")
        await janitor.once()
        status, text = await asked("/report")
        assert status == 200
        assert (
            "would delete  pods/team/a  TimeToLiveExpired  janitor/ttl: 1h; over since 2026-01-09T15:00:00Z\n" in text
        )
        assert janitor.last is not None
        janitor.last.problems.append("lost\ndeleted  pods/team-b/p\x1b[2J")
        assert "problem: lost deleted  pods/team-b/p [2J\n" in (await asked("/report"))[1]
        assert (await asked("/readyz"))[0] == 200
        deleted = '{mode="DryRun",reason="TimeToLiveExpired",result="delete"}'
        assert f"remediator_janitor_objects_total{deleted}" in (await asked("/metrics"))[1]
