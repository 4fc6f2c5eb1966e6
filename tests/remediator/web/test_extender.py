"""The extender over HTTP: whatever comes, the answer is 200 and JSON, for the scheduler reads no other."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from remediator.metrics import REGISTRY
from remediator.scheduler.extender import Extender
from remediator.web import extender as page
from remediator.web.body import Bodies
from tests.harness import endpoints
from tests.harness.replica import an_extender
from tests.harness.scheduler import names_body, node, nodes_body, scheduler_harness
from tests.harness.waiting import until

EMPTY = {"Nodes": None, "NodeNames": None, "FailedNodes": {}, "FailedAndUnresolvableNodes": {}}


@asynccontextmanager
async def served(extender: Extender, taken: Bodies | None = None) -> AsyncIterator[str]:
    """The URL under which the extender answers everybody."""
    async with endpoints.served(page.routes(extender, taken or page.bodies(False))) as (_, port):
        yield f"http://127.0.0.1:{port}/scheduler"


async def ask(url: str, body: bytes) -> object:
    async with aiohttp.ClientSession() as session, session.post(url, data=body) as answer:
        assert answer.status == 200
        assert answer.content_type == "application/json"
        return await answer.json()


def cold() -> Extender:
    return an_extender()[0]


async def test_a_sick_node_is_refused_and_a_healthy_one_preferred_to_one_that_nobody_knows() -> None:
    async with scheduler_harness() as harness, served(harness.extender) as url:
        await harness.add_node("well", GpuLost="False")
        await harness.add_node("sick", GpuLost="True")
        await harness.sees("sick", "Unhealthy")
        body = names_body(["well", "sick", "nobody"])
        answer = await ask(f"{url}/filter", body)
        assert answer["NodeNames"] == ["well", "nobody"]
        assert list(answer["FailedAndUnresolvableNodes"]) == ["sick"]
        assert answer["Error"] == ""
        scores = {entry["Host"]: entry["Score"] for entry in await ask(f"{url}/prioritize", body)}
        assert scores["well"] > scores["nobody"] > scores["sick"] == 0


@pytest.mark.parametrize("body", [b"", b"garbage", b"[]", b"{}", b"\xff\xfe"])
async def test_garbage_is_answered_with_200_and_its_error(body: bytes) -> None:
    async with scheduler_harness() as harness, served(harness.extender) as url:
        answer = await ask(f"{url}/filter", body)
        assert answer["Error"].startswith("not ExtenderArgs: ")
        assert answer | {"Error": ""} == EMPTY | {"Error": ""}
        assert await ask(f"{url}/prioritize", body) == []


async def test_an_extender_that_is_cold_answers_200_and_says_so() -> None:
    async with served(cold()) as url:
        answer = await ask(f"{url}/filter", names_body(["n1"]))
        assert "has not read the cluster yet" in answer["Error"]
        assert await ask(f"{url}/prioritize", names_body(["n1"])) == []


async def test_whole_nodes_of_many_mebibytes_are_taken() -> None:
    nodes = [node(f"n{index}") | {"metadata": {"name": f"n{index}", "note": "x" * 100_000}} for index in range(50)]
    async with scheduler_harness() as harness, served(harness.extender, page.bodies(True)) as url:
        answer = await ask(f"{url}/filter", nodes_body(nodes))
        assert answer["Nodes"]["items"] == nodes


async def test_a_request_that_is_too_large_is_told_how_to_be_smaller_and_is_counted() -> None:
    labels = {"call": "filter", "result": "too-large"}
    before = REGISTRY.get_sample_value("remediator_extender_answers_total", labels) or 0
    async with served(cold(), Bodies("extender", 1000, 4000, 2.0)) as url:
        answer = await ask(f"{url}/filter", b"x" * 300_000)
        assert "set nodeCacheCapable: true" in answer["Error"]
        assert await ask(f"{url}/prioritize", b"x" * 1001) == []
        assert "has not read" in (await ask(f"{url}/filter", b"x" * 1000))["Error"]
    assert REGISTRY.get_sample_value("remediator_extender_answers_total", labels) == before + 1


async def test_answers_and_what_is_so_of_the_nodes_are_measured() -> None:
    def nodes(reason: str) -> float:
        return REGISTRY.get_sample_value("remediator_extender_nodes", {"reason": reason}) or 0

    def calls(call: str) -> float:
        return REGISTRY.get_sample_value("remediator_extender_seconds_count", {"call": call}) or 0

    sick, well, asked = nodes("Unhealthy"), nodes("Fit"), calls("prioritize")
    async with scheduler_harness() as harness, served(harness.extender) as url:
        await harness.add_node("n1", GpuLost="True")
        await until(lambda: nodes("Unhealthy") == sick + 1)
        await harness.condition("n1", "GpuLost", "False")
        await until(lambda: (nodes("Unhealthy"), nodes("Fit")) == (sick, well + 1))
        await ask(f"{url}/prioritize", names_body(["n1"]))
    assert calls("prioritize") == asked + 1
