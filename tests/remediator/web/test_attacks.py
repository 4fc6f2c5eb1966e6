"""Whoever may not ask, or asks for too much, harms nobody else: over sockets, counted in bytes and connections."""

import asyncio
import gc
import gzip
import json
import random
import ssl
import tracemalloc
import weakref
from asyncio import sslproto
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from remediator.metrics import REGISTRY
from remediator.scheduler import protocol
from remediator.scheduler.extender import KINDS, SHAPES, STRANGERS, WANTS
from remediator.scheduler.protocol import OBJECTS
from remediator.scheduler.responses import ExtenderAnswers
from remediator.scheduler.turns import in_turns
from remediator.web import extender as page
from remediator.web import probes
from remediator.web.body import Bodies
from remediator.web.caller import Callers
from remediator.web.endpoints import KUBE_SCHEDULER, PROBES
from remediator.web.listener import ConnectionLimits, Endpoint, ServedConnection
from remediator.web.stranger import PIECE_BYTES
from tests.cluster.control_plane import HOST
from tests.harness import endpoints
from tests.harness.endpoints import ELSEWHERE, Talk, caller_context, connected, server_context
from tests.harness.scheduler import GPU, SchedulerHarness, names_body, node, nodes_body, scheduler_harness
from tests.harness.waiting import until

pytestmark = pytest.mark.sampled("attacks")

MIB = 2**20
SHORT = ConnectionLimits(connections=24, strangers=8, first_seconds=0.3, idle_seconds=0.6)
# Where the time that a stranger is given is not what is tried: a busy machine gives the callers their turn late.
PATIENT = ConnectionLimits(connections=24, strangers=8, first_seconds=600)
TOKEN = "Authorization: Bearer right\r\n"
ASKED = names_body(["n1"])


def head(more: str = "", path: str = "filter", token: str = TOKEN) -> bytes:
    """The head of a request."""
    return f"POST /scheduler/{path} HTTP/1.1\r\nHost: h\r\n{token}{more}\r\n".encode()


WHOLE = head(f"Content-Length: {len(ASKED)}\r\n") + ASKED


class Door:
    """An extender with one node, to which the bearer of "right" and kube-scheduler's certificate are let in."""

    def __init__(self, harness: SchedulerHarness, endpoint: Endpoint, port: int, bodies: Bodies) -> None:
        self.harness, self.endpoint, self.port, self.bodies = harness, endpoint, port, bodies

    async def connect(self, sent: bytes = b"") -> Talk:
        return await connected(self.port, sent)

    async def answers(self) -> None:
        """A caller that comes now is served."""
        url, headers = f"http://{HOST}:{self.port}/scheduler/filter", {"Authorization": "Bearer right"}
        async with aiohttp.ClientSession() as session, session.post(url, data=ASKED, headers=headers) as reply:
            assert (await reply.json())["Error"] == ""


@asynccontextmanager
async def door(
    limits: ConnectionLimits = SHORT, most: int = 4 * MIB, room: int = 16 * MIB, seconds: float = 0.3
) -> AsyncIterator[Door]:
    bodies = Bodies("extender", most, room, seconds)
    async with scheduler_harness() as harness:
        await harness.add_node("n1", GpuLost="False")
        routes, callers = page.routes(harness.extender, bodies), Callers(KUBE_SCHEDULER, lambda: "right")
        async with endpoints.served(routes, limits=limits, callers=callers) as (endpoint, port):
            yield Door(harness, endpoint, port, bodies)


def refused(why: str) -> float:
    labels = {"endpoint": "extender", "reason": why}
    return REGISTRY.get_sample_value("remediator_refused_calls_total", labels) or 0


# --- before a body is read -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["gzip", "br", "gzip, GZIP"])
async def test_a_bomb_is_refused_unopened(encoding: str) -> None:
    bomb = gzip.compress(bytes(8 * MIB), 1)
    async with door() as found:
        sent = await found.connect(head(f"Content-Encoding: {encoding}\r\nContent-Length: {len(bomb)}\r\n") + bomb)
        assert (await sent.ended()).startswith(b"HTTP/1.1 415 ")
        assert found.bodies.held == 0
        await found.answers()


async def test_who_has_no_token_is_answered_before_the_body_has_come_and_the_connection_ends() -> None:
    async with door() as found:
        wrong = await found.connect(head("Content-Length: 4000000\r\n", token="Authorization: Bearer wrong\r\n"))
        assert (await wrong.ended()).startswith(b"HTTP/1.1 401 ")
        assert found.bodies.held == 0


async def test_what_is_announced_as_too_large_is_answered_in_the_words_of_the_protocol_and_not_read() -> None:
    async with door() as found:
        sent = await found.connect(head(f"Content-Length: {4 * MIB + 1}\r\n"))
        answer = await sent.ended()
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"larger than 4 MiB" in answer
        assert found.bodies.held == 0


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes turns of the loop have given to the handlers of requests, one after the other."""
    given, received = [], RequestHandler.data_received

    def data_received(handler: RequestHandler, data: bytes) -> None:
        if data:  # aiohttp itself says that a body may go on
            given.append(len(data))
        received(handler, data)

    monkeypatch.setattr(RequestHandler, "data_received", data_received)
    return given


BYTE_BY_BYTE = head("Transfer-Encoding: chunked\r\n", token="") + b"1\r\nx\r\n" * 100_000


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
async def test_of_a_stranger_little_is_read_however_much_it_sends_and_in_pieces_of_2_kib(
    secure: bool, turns: list[int]
) -> None:
    """600 KB in chunks of one byte: without a bound, one turn of the loop reads 256 KiB of them, and nobody else."""
    tls, context = (caller_context(), server_context(token=True)) if secure else (None, None)
    callers = Callers(KUBE_SCHEDULER, lambda: "right")
    made = (lambda: context) if secure else None
    async with endpoints.served([], limits=SHORT, callers=callers, tls=made) as (endpoint, port):
        sent = await connected(port, BYTE_BY_BYTE, tls)
        await sent.ended()
        await until(lambda: endpoint.connections == 0)
    assert max(turns) <= PIECE_BYTES
    assert sum(turns) <= 8 * PIECE_BYTES


async def test_a_head_that_does_not_end_is_cut_off_at_64_kib_and_others_have_a_turn_between_two_pieces(
    turns: list[int],
) -> None:
    """16 names and values of 8 KB each are a head that aiohttp would keep; 8 strangers send theirs at once."""
    lines = b"".join(b"X-%d: " % number + b"y" * 8000 + b"\r\n" for number in range(60))
    async with door(PATIENT) as found:
        ours, before = 0, refused("unauthorized")
        held = [await connected(found.port, head("", token="")[:-2] + lines, at=ELSEWHERE) for _ in range(8)]
        ended = asyncio.ensure_future(asyncio.wait([asyncio.ensure_future(each.ended()) for each in held]))
        while not ended.done():
            ours += 1
            await asyncio.sleep(0)
        assert refused("unauthorized") - before == 8
        assert (max(turns), sum(turns)) == (PIECE_BYTES, 8 * 2**16)
        assert ours >= 2**16 / PIECE_BYTES
        await found.answers()


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
async def test_what_a_caller_sends_after_its_head_is_read_as_fast_as_it_comes(secure: bool, turns: list[int]) -> None:
    async def length(request: web.Request) -> web.Response:
        return web.Response(text=str(len(await request.read())))

    tls, context = (caller_context(), server_context(token=True)) if secure else (None, None)
    routes, callers = [web.post("/", length)], Callers(KUBE_SCHEDULER, lambda: "right")
    made = (lambda: context) if secure else None
    async with endpoints.served(routes, callers=callers, tls=made) as (endpoint, port):
        url, headers = f"http{'s' * secure}://{HOST}:{port}/", {"Authorization": "Bearer right"}
        async with aiohttp.ClientSession() as session:
            for _ in range(2):
                async with session.post(url, data=bytes(MIB - 1), headers=headers, ssl=tls or True) as answer:
                    assert await answer.text() == str(MIB - 1)
            assert endpoint.connections == 1
    assert turns[0] <= PIECE_BYTES
    assert len(turns) < 2 * MIB / 2**15, "32 KiB and more in most turns"


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
async def test_whoever_shows_a_wrong_token_reads_that_also_where_the_body_is_sent_along(secure: bool) -> None:
    """900 KiB, of which we look at nothing: if they stayed unread, the answer would be lost with the connection."""
    tls, context = (caller_context(), server_context(token=True)) if secure else (None, None)
    callers, made = Callers(KUBE_SCHEDULER, lambda: "right"), (lambda: context) if secure else None
    body = bytes(900 * 1024)
    async with endpoints.served([], callers=callers, tls=made) as (_, port):
        sent = await connected(port, head(f"Content-Length: {len(body)}\r\n", token="") + body, tls)
        assert (await sent.ended()).startswith(b"HTTP/1.1 401 ")


# --- while a body is read --------------------------------------------------------------------------------------------


async def test_chunks_without_end_are_cut_off_at_the_limit() -> None:
    chunk = b"10000\r\n" + bytes(2**16) + b"\r\n"
    async with door(most=MIB) as found:
        sent = await found.connect(head("Transfer-Encoding: chunked\r\n") + chunk * 17)
        assert b"larger than" in await sent.ended()
        assert found.bodies.held == 0


async def test_a_body_that_does_not_come_takes_no_room_and_is_answered_after_its_seconds() -> None:
    async with door(room=10) as found:
        waiting = [await found.connect(head("Content-Length: 4000000\r\n")) for _ in range(6)]
        room = await found.connect(head("Content-Length: 2\r\n") + b"{}")
        assert b"not ExtenderArgs" in await room.reader.readuntil(b"to an extender")
        for one in waiting:
            assert b"not there after 0.3 s" in await one.ended()
        room.end()


async def test_bodies_together_take_no_more_than_their_room_and_the_next_one_is_told_at_once() -> None:
    part = bytes(100_000)
    async with door(most=200_000, room=200_000) as found:
        holding = [await found.connect(head("Content-Length: 150000\r\n") + part) for _ in range(2)]
        await until(lambda: found.bodies.held == 200_000)
        sent = await found.connect(head("Content-Length: 2\r\n", "prioritize") + b"{}")
        assert (await sent.ended()).endswith(b"[]")
        for one in holding:
            await one.ended()
        assert found.bodies.held == 0
        await found.answers()


def whole_nodes(count: int, kib: int) -> bytes:
    """A request with so many whole Nodes of this size."""
    return nodes_body([node(f"n{at}") | {"spec": {"note": "x" * kib * 1024}} for at in range(count)])


async def test_whole_nodes_go_back_in_parts_that_are_never_there_together() -> None:
    body = whole_nodes(100, 4)
    async with door() as found:
        made = found.harness.extender.filter_in_parts(body)
        assert not isinstance(made, bytes)
        assert max(len(part) for part in made) < len(body) / 5
        url, headers = f"http://{HOST}:{found.port}/scheduler/filter", {"Authorization": "Bearer right"}
        async with aiohttp.ClientSession() as session, session.post(url, data=body, headers=headers) as reply:
            answer = await reply.json()
        assert answer == json.loads(found.harness.extender.filter(body))
        assert len(answer["Nodes"]["items"]) == 100
        await until(lambda: found.bodies.held == 0)


@pytest.mark.parametrize("call", ["filtering", "prioritizing"])
async def test_others_are_answered_while_whole_nodes_are_read(call: str) -> None:
    """4 MiB are looked at 1 MiB at a time, and 1,000 names are read 128 at a time."""
    body = whole_nodes(1000, 4)
    async with door() as found:
        asked, answered = asyncio.ensure_future(in_turns(getattr(found.harness.extender, call)(body))), 0
        while not asked.done():
            assert b'"n1"' in found.harness.extender.filter(names_body(["n1"]))
            answered += 1
            await asyncio.sleep(0)
        made = asked.result()
        assert b"n999" in (made if isinstance(made, bytes) else b"".join(made))
    assert answered >= 4 + 8


async def test_whoever_takes_an_answer_in_parts_too_slowly_gets_no_end_of_it_and_gives_its_room_back() -> None:
    def endless(body: bytes) -> Iterator[bytes]:
        while True:
            yield bytes(2**10)

    taken = Bodies("extender", MIB, MIB, 0.3)
    routes = [web.post("/scheduler/filter", page.handler("filter", endless, protocol.error, taken))]
    async with endpoints.served(routes, callers=Callers(KUBE_SCHEDULER, lambda: "right")) as (endpoint, port):
        slow = await connected(port, WHOLE)
        with suppress(ConnectionError):
            async with asyncio.timeout(30):
                while await slow.reader.read(2**16):
                    pass
        await until(lambda: taken.held == 0 and endpoint.connections == 0)
        slow.end()


async def test_whoever_goes_away_in_the_middle_of_a_body_leaves_nothing_behind() -> None:
    async with door() as found:
        sent = await found.connect(head("Content-Length: 4000000\r\n") + bytes(1000))
        await until(lambda: found.bodies.held == 1000)
        sent.end()
        await until(lambda: found.bodies.held == 0 and found.endpoint.connections == 0)


# --- connections -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent", [b"", b"POST /sched", head("X: y")[:-2]], ids=["nothing", "half a line", "half a head"]
)
async def test_strangers_that_say_nothing_are_few_and_keep_nobody_out(sent: bytes) -> None:
    async with door() as found:
        held = [await connected(found.port, sent, at=ELSEWHERE) for _ in range(40)]
        await found.answers()
        assert found.endpoint.connections <= SHORT.strangers + 1
        before = refused("too-slow")
        await until(lambda: found.endpoint.connections == 0)
        assert refused("too-slow") >= before
        for one in held:
            assert await one.ended() == b""


async def test_a_caller_keeps_its_connection_while_strangers_come_and_go() -> None:
    async with door() as found:
        caller = await found.connect(WHOLE)
        await caller.reader.readuntil(b'"Error":""}')
        strangers = [await found.connect() for _ in range(40)]
        caller.writer.write(WHOLE)
        assert await caller.reader.readuntil(b'"Error":""}')
        for one in (caller, *strangers):
            one.end()


async def test_a_caller_that_stops_in_the_middle_of_a_head_is_ended_when_idle_connections_are() -> None:
    async with door() as found:
        caller = await found.connect(WHOLE + head()[:-2])
        assert (await caller.ended()).count(b"HTTP/1.1 200") == 1


async def test_a_stranger_is_not_driven_out_by_many_from_elsewhere_who_come_after_it() -> None:
    async with door(ConnectionLimits(connections=24, strangers=8)) as found:
        early = await found.connect(WHOLE[:40])
        crowd = [await connected(found.port, at=ELSEWHERE) for _ in range(100)]
        early.writer.write(WHOLE[40:])
        assert await early.reader.readuntil(b'"Error":""}')
        for one in (early, *crowd):
            one.end()


async def test_callers_together_hold_no_more_connections_than_there_may_be() -> None:
    async with door(ConnectionLimits(connections=6, strangers=4)) as found:
        callers = []
        for _ in range(6):
            callers.append(await found.connect(WHOLE))
            await callers[-1].reader.readuntil(b'"Error":""}')
        assert await (await found.connect(WHOLE)).ended() == b""
        callers[0].end()
        await until(lambda: found.endpoint.connections == 5)
        await found.answers()
        for one in callers:
            one.end()


async def test_probes_have_no_callers_so_that_whoever_holds_their_connections_keeps_nobody_out() -> None:
    async def nothing() -> None:
        """There is nothing to measure."""

    endpoint = Endpoint("probes", probes.application({}, nothing), PROBES)
    async with endpoint.served(f"{HOST}:0") as port:
        asked = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"
        held = [await connected(port, asked) for _ in range(50)]
        async with aiohttp.ClientSession() as session, session.get(f"http://{HOST}:{port}/healthz") as answer:
            assert answer.status == 200
        assert endpoint.connections <= PROBES.strangers
        for one in held:
            one.end()


async def test_where_everybody_may_ask_no_body_comes_in_chunks_which_may_have_one_byte_each() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    app = web.Application()
    app.add_routes([web.post("/", handler)])
    async with Endpoint("extender", app, SHORT).served(f"{HOST}:0") as port:
        chunks = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 1000
        answer = await (await connected(port, chunks)).ended()
        assert answer.startswith(b"HTTP/1.1 411")
        assert answer.endswith(b"send the body with Content-Length, not in chunks\n")


async def test_where_everybody_may_ask_a_turn_reads_8_kib_of_a_connection() -> None:
    read: list[int] = []

    class Reader(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            read.append(len(data))

    endpoint = Endpoint("extender", web.Application(), SHORT)
    async with endpoint.served(f"{HOST}:0") as port:
        endpoint.handlers = Reader
        sent = await connected(port, bytes(MIB))
        await until(lambda: sum(read) == MIB)
        assert max(read) == 2**13
        sent.end()


# --- TLS -------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def secured(*, token: bool = False, limits: ConnectionLimits = SHORT) -> AsyncIterator[Callable[..., Any]]:
    """An extender behind TLS; ask(context) gives the status, or raises what a caller sees."""
    context = server_context(token=token)
    callers = Callers(KUBE_SCHEDULER, (lambda: "right") if token else None)
    async with scheduler_harness() as harness:
        routes = page.routes(harness.extender, page.bodies(False))
        async with endpoints.served(routes, limits=limits, callers=callers, tls=lambda: context) as (_, port):

            async def ask(tls: ssl.SSLContext, bearer: str = "") -> int:
                headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
                url = f"https://{HOST}:{port}/scheduler/filter"
                async with aiohttp.ClientSession() as session:  # noqa: SIM117
                    async with session.post(url, data=ASKED, headers=headers, ssl=tls) as reply:
                        return reply.status

            ask.port = port  # type: ignore[attr-defined]
            yield ask


async def test_kube_schedulers_certificate_is_let_in_and_those_of_others_are_not() -> None:
    async with secured(limits=PATIENT) as ask:
        assert await ask(caller_context(KUBE_SCHEDULER)) == 200
        assert await ask(caller_context("alertmanager")) == 401
        for tls in (caller_context(), endpoints.context_of_another(KUBE_SCHEDULER), endpoints.server_as_caller()):
            with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
                await ask(tls)


async def test_where_a_token_is_configured_either_is_enough() -> None:
    async with secured(token=True, limits=PATIENT) as ask:
        assert await ask(caller_context(KUBE_SCHEDULER)) == 200
        assert await ask(caller_context(), "right") == 200
        assert await ask(caller_context(), "wrong") == 401
        assert await ask(caller_context()) == 401
        with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
            await ask(endpoints.context_of_another(KUBE_SCHEDULER), "right")


async def test_handshakes_that_nobody_ends_keep_nobody_out() -> None:
    async with secured() as ask:
        held = [await connected(ask.port, sent) for sent in (b"", b"\x16\x03\x01\x02\x00", WHOLE) for _ in range(14)]
        assert await ask(caller_context(KUBE_SCHEDULER)) == 200
        for one in held:
            assert WHOLE not in await one.ended()


async def test_a_handshake_that_fails_leaves_nothing_for_the_collector() -> None:
    """A TLS connection holds 40 KB beside its Python objects, which the collector of Python does not know of."""
    async with secured() as ask:
        gc.collect()
        gc.disable()
        try:
            assert tls_connections() == 0
            for _ in range(5):
                assert b"HTTP" not in await (await connected(ask.port, WHOLE)).ended()
                (await connected(ask.port, b"\x16\x03\x01\x02\x00")).end()
            await until(lambda: tls_connections() == 0)
        finally:
            gc.enable()


@pytest.mark.parametrize("answered", [False, True], ids=["its body", "the answer"])
async def test_who_goes_away_in_the_middle_of_its_body_or_of_the_answer_leaves_nothing_behind(answered: bool) -> None:
    """Three callers with whole Nodes of 12 MiB, and less than 2 MiB stay while Python's collector does not run."""
    body = whole_nodes(1000, 12)
    sent = head(f"Content-Length: {len(body)}\r\n") + (body if answered else body[:-1])
    async with door(limits=PATIENT, most=16 * MIB, seconds=600) as found:
        await found.answers()
        gc.collect()
        gc.disable()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            for _ in range(3):
                talk = await found.connect(sent)
                if answered:
                    await talk.reader.readexactly(100)
                else:
                    await until(lambda: found.bodies.held == len(body) - 1)
                talk.end()
                del talk
                await until(lambda: found.bodies.held == 0)
            await until(lambda: tracemalloc.get_traced_memory()[0] - before < 2 * MIB, 5)
        finally:
            tracemalloc.stop()
            gc.enable()


class Body(bytearray):
    """One that can be told of when it goes."""


async def test_what_an_error_was_made_of_keeps_no_body_either() -> None:
    """The first error keeps itself, as a future does whose exception is raised, and another one is raised from it."""
    seen = list[weakref.ref[Body]]()

    async def read() -> None:
        body = Body(MIB)
        seen.append(weakref.ref(body))
        broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        broken.set_exception(OSError("gone"))
        await broken

    async def handle(_: web.Request) -> web.StreamResponse:
        try:
            await read()
        except OSError:
            raise web.HTTPBadRequest from None
        return web.Response()

    async with endpoints.served([web.post("/", handle)]) as (_, port), aiohttp.ClientSession() as session:
        gc.disable()
        try:
            async with session.post(f"http://{HOST}:{port}/") as reply:
                assert reply.status == 400
            assert [body() for body in seen] == [None]
        finally:
            gc.enable()


async def test_an_exception_that_two_requests_await_ends_only_the_one_that_it_breaks_off() -> None:
    """The first waits before it lets it through, when the frames of the second, which goes on, are in it."""
    shared: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting, steps = list[str](), {"first": asyncio.Event(), "second": asyncio.Event()}

    async def first(_: web.Request) -> web.StreamResponse:
        waiting.append("first")
        try:
            await shared
        finally:
            waiting.append("first ends")
            await steps["first"].wait()
        return web.Response()

    async def second(_: web.Request) -> web.StreamResponse:
        waiting.append("second")
        try:
            await shared
        except OSError:
            waiting.append("second goes on")
            await steps["second"].wait()
        return web.Response(text="whole")

    routes = [web.get("/first", first), web.get("/second", second)]
    async with endpoints.served(routes) as (_, port), aiohttp.ClientSession(f"http://{HOST}:{port}") as session:
        broken = asyncio.ensure_future(session.get("/first"))
        await until(lambda: waiting == ["first"])
        whole = asyncio.ensure_future(session.get("/second"))
        await until(lambda: waiting == ["first", "second"])
        shared.set_exception(OSError("gone"))
        await until(lambda: waiting[2:] == ["first ends", "second goes on"])
        steps["first"].set()
        assert (await broken).status == 500
        steps["second"].set()
        assert await (await asyncio.wait_for(whole, 20)).text() == "whole"


async def test_a_silent_connection_takes_24_kib_of_asyncio_and_its_timer_keeps_nothing_of_it_that_has_ended() -> None:
    """Timers of ten minutes: what they kept, the collector would keep for a day."""
    gc.collect()
    before = alive(ServedConnection)
    async with secured(limits=PATIENT) as ask:
        tracemalloc.start()
        try:
            held = [await connected(ask.port, at=ELSEWHERE) for _ in range(8 * PATIENT.strangers)]
            await until(lambda: tls_connections() == PATIENT.strangers)
            of_tls = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, sslproto.__file__)])
        finally:
            tracemalloc.stop()
        assert sum(trace.size for trace in of_tls.traces) / PATIENT.strangers < 24 * 1024
        # Whoever comes next forgets the last one.
        await until(lambda: alive(ServedConnection) - before <= PATIENT.strangers + 1)
        for talk in held:
            talk.end()


def tls_connections() -> int:
    return alive(sslproto.SSLProtocol)


def alive(kind: type) -> int:
    return sum(isinstance(thing, kind) for thing in gc.get_objects())


async def test_tls_older_than_1_2_and_plain_text_are_not_spoken() -> None:
    async with secured() as ask:
        old = caller_context(KUBE_SCHEDULER, ssl.TLSVersion.TLSv1_1)
        with pytest.raises((aiohttp.ClientError, ssl.SSLError, ValueError)):
            await ask(old)
        assert b"HTTP" not in await (await connected(ask.port, WHOLE)).ended()


async def test_without_a_certificate_of_its_own_an_endpoint_lets_nobody_in() -> None:
    async with endpoints.served([], tls=lambda: None) as (_, port):
        assert await (await connected(port, WHOLE)).ended() == b""


# --- what is asked ---------------------------------------------------------------------------------------------------


async def test_five_hundred_shapes_of_pods_leave_no_more_answers_than_may_be_ready_not_even_for_the_collector() -> None:
    gc.collect()
    gc.unfreeze()  # what is frozen is in no list, until somebody thaws it
    before = alive(ExtenderAnswers)
    async with door() as found:
        gc.disable()
        try:
            for gpus in range(500):
                wanted = {"spec": {"containers": [{"resources": {"requests": {GPU: str(gpus)}}}]}}
                found.harness.extender.filter(names_body(["n1"], wanted))
            assert len(found.harness.extender._shapes) == SHAPES
            assert alive(ExtenderAnswers) == before + SHAPES
        finally:
            gc.enable()


def of(containers: list[dict[str, Any]], where: str = "containers") -> bytes:
    return names_body(["n1"], {"spec": {where: containers}})


def mig(number: int, **more: str) -> dict[str, Any]:
    return {"resources": {"requests": {f"nvidia.com/mig-{number}": "1"}}, **more}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(of([mig(n) for n in range(KINDS + 1)]), "kinds of GPUs", id="kinds of GPUs"),
        pytest.param(of([{}] * (WANTS + 1)), "containers", id="containers"),
        pytest.param(of([{}] * OBJECTS), "objects of JSON", id="objects"),
        pytest.param(of([mig(n, restartPolicy="Always") for n in range(3000)], "initContainers"), "", id="sidecars"),
        pytest.param(names_body(["a"] * (STRANGERS + 3)), "the most in a cluster", id="names"),
        pytest.param(b"[" * MIB, "Expected `object`", id="depth"),
        pytest.param(b'{"Pod":{},"NodeNames":["' + b"a" * MIB + b'"]}', "", id="a name of a mebibyte"),
    ],
)
async def test_what_no_scheduler_asks_is_refused_or_answered_before_it_costs_much(body: bytes, said: str) -> None:
    async with door() as found:
        assert said in json.loads(found.harness.extender.filter(body))["Error"]


async def test_garbage_ends_its_own_connection_only(caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(7)
    async with door() as found:
        for _ in range(20):
            sent = await found.connect(chance.randbytes(2000) + b"\r\n\r\n")
            assert b" 200 " not in await sent.ended()
        before = refused("malformed")
        for many in (b"X: y\r\n" * 200, b"X: " + b"y" * 9000 + b"\r\n"):
            sent = await found.connect(b"POST / HTTP/1.1\r\n" + many + b"\r\n")
            assert b" 400 " in await sent.ended()
        assert refused("malformed") == before + 2
        assert caplog.records == [], "strangers write no log"
        await found.answers()
