"""The page of a node or a case over HTTP, while somebody follows it."""

import asyncio
import gc
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from remediator.web.page import followed, snapshots, stream
from remediator.web.page.entry import Door
from remediator.web.page.readers import Entry
from tests.harness.controller import ControllerHarness, controller_harness, running, until
from tests.harness.kinds import CASES, NODES
from tests.harness.page import ServedPage, page_served

GOOD = {"Authorization": "Bearer good"}


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot each 0.05 s where something changes: no test waits for two. Nothing is sent because it grows old."""
    monkeypatch.setattr(snapshots, "EVERY", 0.05)
    monkeypatch.setattr(followed, "RENEWED", 3600.0)


class Reader:
    """One who follows."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def any(self) -> tuple[str, Any]:
        """The name of the next event, and its data."""
        async with asyncio.timeout(60):
            while not (line := await self._answer.content.readline()).startswith(b"event: "):
                assert line, "the stream has ended"
            data = json.loads((await self._answer.content.readline()).removeprefix(b"data: "))
        return line[7:].decode().strip(), data

    async def next(self) -> tuple[str, str]:
        """The name of the next event that is no sign of life, and its page."""
        while (told := await self.any())[0] == "alive":
            pass
        return told[0], told[1] if isinstance(told[1], str) else ""

    async def until(self, text: str) -> str:
        """The first page that has this text."""
        while text not in (page := (await self.next())[1]):
            pass
        return page


@asynccontextmanager
async def following(page: ServedPage, path: str) -> AsyncIterator[Reader]:
    """What is loaded first, and then what a browser does with it."""
    shown = re.search('data-events="([^"]+)" data-of="([^"]+)"', (await page.get(path))[1])
    assert shown is not None
    async with page.session.get(f"{page.url}{shown[1]}?of={shown[2]}", headers=GOOD) as answer:
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream")
        yield Reader(answer)


async def sick(harness: ControllerHarness) -> str:
    """gpu-1 has a case that waits for a person; gives its name."""
    await harness.policy(approval="Required")
    await harness.node("gpu-1", "True")
    await until(lambda: "ApprovalNeeded" in harness.reasons("gpu-1"))
    name: str = harness.cases("gpu-1")[0]["metadata"]["name"]
    return name


async def test_a_case_and_its_node_that_are_followed_show_each_change_and_how_the_case_ends() -> None:
    async with controller_harness() as harness, running(harness), page_served(harness) as page:
        name = await sick(harness)
        async with following(page, f"/cases/{name}") as of_case, following(page, "/nodes/gpu-1") as of_node:
            await harness.edit_case("gpu-1", approved=True)
            assert "Claimed" in await of_case.until("<b>Claimed</b>")
            await of_node.until("in repair")
            await until(lambda: harness.ended("gpu-1", "Recovered"))
            over = await of_case.until("<dt>stands</dt><dd>Recovered after ")
            await of_node.until('data-news="in service"')
    assert 'data-news="Recovered after ' in over
    assert "waits for" not in over


async def test_a_node_that_is_removed_is_told_and_so_is_that_it_is_there_again() -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        await harness.node("gpu-1")
        async with following(page, "/nodes/gpu-1") as reader:
            await harness.client.delete(NODES, "gpu-1")
            assert await reader.next() == ("gone", "")
            await harness.node("gpu-1")
            assert "in service" in (await reader.next())[1]


async def test_a_case_that_is_deleted_is_told_and_its_node_says_that_it_has_none() -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        async with running(harness):
            name = await sick(harness)
        await until(lambda: page.page._source.case_facts(name) != (None,))
        async with following(page, f"/cases/{name}") as of_case, following(page, "/nodes/gpu-1") as of_node:
            await harness.client.patch(CASES, name, {"metadata": {"finalizers": None}})
            await harness.client.delete(CASES, name)
            while (await of_case.next())[0] != "gone":
                pass
            await of_node.until("No case is kept.")


async def test_a_change_of_another_node_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "ALIVE_SECONDS", 3600.0)
    async with controller_harness() as harness, page_served(harness) as page:
        await harness.node("gpu-1")
        await harness.node("gpu-2")
        async with following(page, "/nodes/gpu-1") as reader, following(page, "/") as of_fleet:
            await harness.change(NODES, "gpu-2", spec={"unschedulable": True})
            assert (await of_fleet.next())[0] == "changed"
            await harness.change(NODES, "gpu-1", spec={"unschedulable": True})
            assert 'data-news="cordoned, no case"' in (await reader.next())[1]


async def test_of_a_quiet_node_signs_of_life_alone_come_and_say_of_when_the_page_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No replica leads, so nothing of the page ever changes; a moment is told to the second."""
    monkeypatch.setattr(stream, "ALIVE_SECONDS", 0.05)
    monkeypatch.setattr(snapshots, "STALE", 0.05)
    monkeypatch.setattr(followed, "RENEWED", 0.0)
    async with controller_harness() as harness, page_served(harness) as page:
        await harness.node("gpu-1")
        async with following(page, "/nodes/gpu-1") as reader:
            first = newest = await reader.any()
            while newest == first:
                newest = await reader.any()
    assert (first[0], newest[0]) == ("alive", "alive")
    assert first[1]["asOf"] < newest[1]["asOf"]


@pytest.mark.parametrize("path", ["/nodes/gpu-1", "/cases/none"])
async def test_a_right_that_is_taken_away_ends_this_stream_too(path: str) -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        await harness.node("gpu-1")
        async with page.session.get(f"{page.url}{path}/events?of=none", headers=GOOD) as answer, asyncio.timeout(60):
            while b"data: " not in await answer.content.readline():
                pass
            page.tokens["good"] = Entry.FORBIDDEN
            page.page._streams._ended.set()  # so that it has nothing to wait for
            assert b"data: " not in await answer.content.read()


async def test_a_reader_that_is_slow_gets_the_newest_view_alone_and_keeps_no_other_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two follow a node; one is asked about for so long that the node has changed 3 times meanwhile."""
    gate, waits, lets_in = asyncio.Event(), [], Door.lets_in

    async def slowly(self: Door, request: object) -> bool:
        if request.headers.get("X-Slow"):
            waits.append(True)
            await gate.wait()
        return await lets_in(self, request)

    monkeypatch.setattr(Door, "lets_in", slowly)
    async with controller_harness() as harness, page_served(harness) as page, asyncio.timeout(60):
        await harness.node("gpu-1")
        headers = GOOD | {"X-Slow": "yes"}
        slow = page.session.get(f"{page.url}/nodes/gpu-1/events?of=none", headers=headers)
        async with following(page, "/nodes/gpu-1") as reader, slow as answer:
            await until(lambda: waits)
            for pool in ("a", "b", "c"):
                await harness.change(NODES, "gpu-1", metadata={"labels": {"topology.kubernetes.io/rack": pool}})
                await reader.until(f"</span>{pool} ·")
            gate.set()
            late = Reader(answer)
            assert "</span>c ·" in (await late.next())[1]


async def test_readers_of_all_pages_together_are_as_many_as_may_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has gone is noticed with the next sign of life, and its view then goes without Python's collector."""
    monkeypatch.setattr(stream, "MOST", 2)
    monkeypatch.setattr(stream, "ALIVE_SECONDS", 0.05)
    async with controller_harness() as harness, page_served(harness) as page:
        await harness.node("gpu-1")
        async with following(page, "/"):
            async with following(page, "/nodes/gpu-1"):
                code, text = await page.get("/nodes/gpu-1/events")
                assert (code, "Too many readers" in text) == (503, True)
            gc.disable()
            try:
                await until(lambda: page.page._streams.room and not page.page._followed)
            finally:
                gc.enable()
            async with following(page, "/nodes/gpu-1"):
                pass


async def test_who_follows_a_node_is_let_go_when_the_replica_ends() -> None:
    async with controller_harness() as harness, page_served(harness) as page:
        await harness.node("gpu-1")
        async with (
            following(page, "/nodes/gpu-1"),
            page.session.get(f"{page.url}/nodes/gpu-1/events?of=none", headers=GOOD) as answer,
        ):
            await answer.content.readline()
            await page.page._streams.stop()
            assert b"event: page" in await answer.content.read()
        assert (await page.get("/nodes/gpu-1/events"))[0] == 503
