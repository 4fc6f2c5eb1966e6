"""A cache that must have all that the API server has now, whatever its watch has told."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from remediator.clock import SYSTEM
from remediator.kube import api
from remediator.kube.api import decode
from remediator.kube.api.decode import careful
from remediator.kube.runtime.informer import RESTART_AFTER, Informer
from tests.harness.cluster import MemoryCluster
from tests.harness.kinds import CASES, NODES
from tests.harness.replica import at_work
from tests.harness.waiting import until

pytestmark = pytest.mark.sampled("caught up")


@pytest.fixture
async def cluster():
    made = MemoryCluster()
    for name in ("a", "b"):
        await case(made, name)
    return made


async def case(cluster, name):
    await cluster.make(CASES, name, nodeName="gpu-1", nodeUID="uid-1", policyName="gpu-lost")


@asynccontextmanager
async def following(cluster):
    informer = Informer(cluster.client, api.CASE, decode.remediation_case, SYSTEM, careful=careful.case)
    async with at_work(informer.run()):
        await informer.synced()
        yield informer


def half_open(cluster):
    """The watches that are open say nothing any more; those to come speak."""
    for stream in cluster.server.faults._streams:
        stream.silent = True
        stream.wake.set()


async def caught_up(informer):
    async with asyncio.timeout(5 * RESTART_AFTER):
        await informer.caught_up()


async def test_a_cache_with_all_that_there_is_has_caught_up_at_once(cluster):
    async with following(cluster) as informer:
        async with asyncio.timeout(RESTART_AFTER / 2):
            await informer.caught_up()


async def test_a_watch_that_is_half_open_is_opened_anew_and_tells_what_was_missed(cluster):
    async with following(cluster) as informer:
        half_open(cluster)
        await case(cluster, "c")
        await cluster.client.patch(CASES, "a", {"spec": {"hold": True}})
        await cluster.client.delete(CASES, "b")
        await caught_up(informer)
        assert sorted(informer.keys()) == ["a", "c"]
        assert informer.get("a").hold


async def test_an_object_that_cannot_be_read_is_caught_up_with_its_head(cluster):
    async with following(cluster) as informer:
        half_open(cluster)
        await cluster.newer(CASES, "a", "status", status={"phase": "Hibernating"})
        await caught_up(informer)
        assert informer.get("a").unreadable


async def test_what_goes_while_it_is_waited_for_is_waited_for_no_longer(cluster):
    async with following(cluster) as informer:
        half_open(cluster)
        await case(cluster, "c")
        waiting = asyncio.ensure_future(caught_up(informer))
        await asyncio.sleep(0.1)
        await cluster.client.delete(CASES, "c")
        await waiting
        assert sorted(informer.keys()) == ["a", "b"]


async def test_an_api_server_that_refuses_is_asked_again(cluster):
    async with following(cluster) as informer:
        cluster.server.faults.refuse(503, when=lambda asked: asked.method == "GET", times=1)
        await caught_up(informer)


async def test_a_server_that_takes_seconds_to_open_a_watch_is_given_the_time(cluster, monkeypatch):
    """To begin anew each second would never come to an end."""
    async with following(cluster) as informer:
        half_open(cluster)
        await case(cluster, "c")
        opened = informer._reflector._transport.stream

        @asynccontextmanager
        async def slow(*args, **more):
            await asyncio.sleep(1.5 * RESTART_AFTER)
            async with opened(*args, **more) as stream:
                yield stream

        monkeypatch.setattr(informer._reflector._transport, "stream", slow, raising=False)
        async with asyncio.timeout(10 * RESTART_AFTER):
            await informer.caught_up()
        assert sorted(informer.keys()) == ["a", "b", "c"]


async def test_a_cache_of_a_future_that_the_server_has_not_seen_is_read_anew(cluster):
    """A backup was restored: versions count from there again."""
    async with following(cluster) as informer:
        gone = replace(informer.get("a"), name="gone", version="999999")
        informer._reflector._keep("gone", gone)
        await caught_up(informer)
        assert sorted(informer.keys()) == ["a", "b"]


@pytest.mark.parametrize("jump", [0, 1000], ids=["versions go on from the backup's", "versions jump ahead"])
async def test_a_cache_of_a_history_that_was_taken_back_is_read_anew_though_the_server_is_further_by_now(cluster, jump):
    """A watch that stays open hides the restore: the server soon has versions beyond all that the cache knows."""
    backup = cluster.server.cluster.store.snapshot()
    async with following(cluster) as informer:
        await cluster.client.patch(CASES, "a", {"spec": {"hold": True}})
        await until(lambda: informer.get("a").hold)
        await restore(cluster, backup, jump, "def")
        await caught_up(informer)
        assert not informer.get("a").hold


async def test_a_write_of_ours_that_was_taken_back_is_believed_no_longer(cluster):
    backup = cluster.server.cluster.store.snapshot()
    async with following(cluster) as informer:
        half_open(cluster)
        held = await cluster.client.patch(CASES, "a", {"spec": {"hold": True}})
        informer.note("a", replace(informer.get("a"), hold=True, version=held["metadata"]["resourceVersion"]))
        await restore(cluster, backup, 0, "")
        await caught_up(informer)
        assert not informer.get("a").hold


async def test_what_a_restored_server_has_changed_before_it_came_as_far_as_the_watch_is_read_anew(cluster):
    """The watch goes on from where it was, and never tells of it."""
    backup = cluster.server.cluster.store.snapshot()
    async with following(cluster) as informer:
        await cluster.client.patch(CASES, "a", {"spec": {"hold": True}})
        await until(lambda: informer.get("a").hold)
        half_open(cluster)
        await restore(cluster, backup, 0, "")
        for name in ("b", "a"):
            await cluster.client.patch(CASES, name, {"spec": {"hold": True}})
        await caught_up(informer)
        assert informer.get("b").hold


async def test_a_watch_that_is_further_than_the_server_is_of_a_history_that_was_taken_back(cluster):
    """What it last told was a bookmark: no object that the cache knows has changed since the backup."""
    backup = cluster.server.cluster.store.snapshot()
    async with following(cluster) as informer:
        for name in "def":
            await cluster.make(NODES, name)
        informer._reflector._come_to(str(cluster.server.cluster.store.rv))
        await restore(cluster, backup, 0, "")
        half_open(cluster)
        informer._reflector.restart()
        await caught_up(informer)
        await cluster.client.patch(CASES, "a", {"spec": {"hold": True}})
        async with asyncio.timeout(5):
            await until(lambda: informer.get("a").hold)


async def restore(cluster, backup, jump, names):
    """Set the server back; its versions begin so far ahead, or where the backup ends. Then so many cases are made."""
    store = cluster.server.cluster.store
    store.restore(backup, store.rv + jump if jump else 0)
    for name in names:
        await case(cluster, name)
