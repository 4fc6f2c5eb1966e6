"""Every planned fault is what a client would see of a sick server, over memory and over HTTPS."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from remediator.kube.wire.errors import Unavailable
from remediator.kube.wire.http import HttpTransport
from remediator_sim.apiserver import EmbeddedServer
from tests.remediator_sim.apiserver.asking import NODES, WATCH, events, label, make_node


@pytest.fixture
def server():
    return EmbeddedServer()


@asynccontextmanager
async def connected(server, way):
    if way == "memory":
        yield server.transport()
        return
    async with server.serve() as endpoint:
        transport = await HttpTransport.from_kubeconfig(endpoint.kubeconfig)
        yield transport
        await transport.close()


@pytest.fixture(params=["memory", "http"])
async def transport(server, request):
    async with connected(server, request.param) as transport:
        yield transport


async def test_a_refusal_hits_only_the_next_matching_requests_and_does_nothing(server, transport):
    server.faults.refuse(503, times=2, when=lambda asked: asked.method == "POST")
    assert (await transport.request("GET", NODES)).status == 200
    assert [(await make_node(transport, "a")).status for _ in range(3)] == [503, 503, 201]


async def test_a_refusal_can_ask_to_come_back_later(server, transport):
    server.faults.refuse(429, after=7)
    reply = await transport.request("GET", NODES)
    assert (reply.status, reply.headers["retry-after"]) == (429, "7")
    assert json.loads(reply.body)["reason"] == "TooManyRequests"


async def test_a_lost_answer_leaves_its_write_done(server, transport):
    server.faults.lose(when=lambda asked: asked.method == "POST")
    with pytest.raises(Unavailable):
        await make_node(transport, "a")
    assert (await transport.request("GET", f"{NODES}/a")).status == 200


async def test_a_delay_longer_than_the_timeout_is_no_answer(server, transport):
    server.faults.delay(5.0)
    with pytest.raises(Unavailable):
        await transport.request("GET", NODES, timeout=0.05)
    assert (await transport.request("GET", NODES, timeout=5.0)).status == 200


async def test_a_cut_watch_breaks_after_what_it_said(server, transport):
    await make_node(transport, "a")
    async with transport.stream(NODES, query=WATCH) as stream:
        chunks = aiter(stream)
        assert events(await anext(chunks))[0]["type"] == "ADDED"
        server.faults.cut_watches()
        with pytest.raises(Unavailable):
            await anext(chunks)


async def test_a_silent_watch_stays_open_and_speaks_when_it_may_again(server, transport):
    async with transport.stream(NODES, query=WATCH, idle_timeout=5.0) as stream:
        chunks = aiter(stream)
        server.faults.silence()
        await make_node(transport, "a")
        heard = asyncio.ensure_future(anext(chunks))
        done, _ = await asyncio.wait([heard], timeout=0.1)
        assert not done
        server.faults.silence(silent=False)
        assert events(await heard)[0]["object"]["metadata"]["name"] == "a"


async def test_silence_longer_than_a_reader_bears_is_unavailable(server, transport):
    # It limits the wait for the answer's head, too.
    async with transport.stream(NODES, query=WATCH, idle_timeout=1.0) as stream:
        with pytest.raises(Unavailable):
            await anext(aiter(stream))


async def test_after_history_is_dropped_an_old_version_is_gone(server, transport):
    version = json.loads((await make_node(transport, "a")).body)["metadata"]["resourceVersion"]
    await label(transport, "a", "1")
    server.faults.drop_history()
    async with transport.stream(NODES, query=[*WATCH, ("resourceVersion", version)]) as stream:
        event = events(await anext(aiter(stream)))[0]
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_cleared_faults_are_over(server, transport):
    server.faults.refuse(500, times=100)
    server.faults.silence()
    server.faults.clear()
    await make_node(transport, "a")
    async with transport.stream(NODES, query=WATCH) as stream:
        assert events(await anext(aiter(stream)))[0]["type"] == "ADDED"
