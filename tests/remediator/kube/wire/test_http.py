"""The transport against real sockets: what goes out, what comes back, and every way of getting no answer."""

import asyncio
import json
import socket
import stat
import sys
import traceback
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress

import pytest
import yaml
from aiohttp import web
from structlog.testing import capture_logs

from remediator.kube.wire import http, kubeconfig_plugin, service_account
from remediator.kube.wire.client import Client
from remediator.kube.wire.errors import Expired, Forbidden, TooManyRequests, Unavailable
from remediator.kube.wire.http import HttpTransport
from remediator.kube.wire.transport import MERGE_PATCH
from remediator_sim.apiserver.patch import JSON_PATCH
from tests.harness.certificates import self_signed
from tests.harness.kinds import NODES

pytestmark = pytest.mark.sampled("http")

PROXIES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")


def write_kubeconfig(path, server, user):
    """A kubeconfig of one context, with or without a user."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "users": [{"name": "it", "user": user}] if user else [],
    }
    path.write_text(yaml.safe_dump(config))
    return path


@asynccontextmanager
async def connected(path):
    transport = await HttpTransport.from_kubeconfig(path)
    try:
        yield transport
    finally:
        await transport.close()


@pytest.fixture
def no_proxy(monkeypatch):
    """The environment names no proxy."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def proxy(no_proxy):
    """A proxy that answers each request with an object without fields: its host and port, and the heads it was sent."""
    heads = []

    def answer(head):
        heads.append(head)
        return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"

    async with proxy_that_says(answer) as address:
        yield address, heads


@asynccontextmanager
async def proxy_that_says(answer):
    """The host and port of a proxy that says to each head of a request what `answer` gives, and closes."""

    async def handle(reader, writer):
        writer.write(answer((await reader.readuntil(b"\r\n\r\n")).decode()).encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()


@asynccontextmanager
async def talking_to(tmp_path, handler, user=None, tls=None):
    """A transport whose server answers every request with `handler`; its address is `transport.url`."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    try:
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with connected(write_kubeconfig(tmp_path / "config", url, user)) as transport:
            yield transport
    finally:
        await runner.cleanup()


@asynccontextmanager
async def raw_server(tmp_path, handle, user=None):
    """A transport whose server is a bare socket: `handle(reader, writer)` gets each connection."""
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with connected(write_kubeconfig(tmp_path / "config", url, user)) as transport:
        yield transport, url
    server.close()


async def test_a_request_carries_everything_and_the_answer_comes_back_whole(tmp_path):
    """Method, path, query, body, content type and token go out; status, bytes and lower-case headers come back."""
    got = {}

    async def handler(request):
        got.update(method=request.method, path=request.path, query=list(request.query.items()))
        got.update(body=await request.read(), type=request.content_type, headers=request.headers)
        return web.Response(status=418, body=b"\x00raw", headers={"X-Thing": "Yes"})

    query = [("labelSelector", "a=b,c!=d,e in (f,g)"), ("continue", "x+/=&y%20"), ("dryRun", "All"), ("dryRun", "é")]
    async with talking_to(tmp_path, handler, {"token": "secret"}) as transport:
        body = '{"a":{"b":null,"ü":[1.5,12345678901234567890]}}'.encode()
        reply = await transport.request("PATCH", "/api/v1/x", query=query, body=body, content_type=MERGE_PATCH)
    assert (reply.status, reply.body, reply.headers["x-thing"]) == (418, b"\x00raw", "Yes")
    assert (got["method"], got["path"], got["type"]) == ("PATCH", "/api/v1/x", MERGE_PATCH)
    assert got["query"] == query
    assert json.loads(got["body"]) == json.loads(body)
    assert got["headers"]["authorization"] == "Bearer secret"
    assert got["headers"]["user-agent"] == "remediator"
    assert got["headers"]["accept"] == "application/json"


async def test_no_request_waits_for_a_thread(tmp_path, monkeypatch):
    """Neither for the proxies of the environment nor for ~/.netrc: ten requests, no work for another thread."""
    threaded = []

    async def handler(request):
        return web.Response(body=b"{}")

    async with talking_to(tmp_path, handler) as transport:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "run_in_executor", lambda executor, work, *args: threaded.append(work))
        for _ in range(10):
            assert (await transport.request("GET", "/api/v1/x")).status == 200
    assert threaded == []


@pytest.mark.parametrize(
    ("environment", "proxied"),
    [
        ({"HTTP_PROXY": "PROXY"}, True),
        ({"http_proxy": "PROXY"}, True),
        ({"HTTPS_PROXY": "PROXY"}, False),
        ({"HTTP_PROXY": "PROXY", "NO_PROXY": "api.example"}, False),
        ({"HTTP_PROXY": "PROXY", "NO_PROXY": "other.example"}, True),
    ],
)
async def test_the_proxy_of_the_environment_is_used_unless_it_excludes_the_server(
    tmp_path, monkeypatch, proxy, environment, proxied
):
    address, heads = proxy
    for name, value in environment.items():
        monkeypatch.setenv(name, value.replace("PROXY", f"http://{address}"))
    config = write_kubeconfig(tmp_path / "config", "http://api.example:1", None)
    async with connected(config) as transport:
        if proxied:
            assert (await transport.request("GET", "/api/v1/x")).status == 200
        else:
            with pytest.raises(Unavailable):
                await transport.request("GET", "/api/v1/x", timeout=5)
    asked = [head.splitlines()[0] for head in heads]
    asked = [line for line in asked if "api.example" in line]  # others may still look for who had this port before
    assert asked == (["GET http://api.example:1/api/v1/x HTTP/1.1"] if proxied else [])


@pytest.mark.parametrize(
    ("method", "body", "content_type"),
    [
        ("PATCH", b'[{"op":"add"}]', JSON_PATCH),
        ("DELETE", b"", "application/json"),
        ("POST", b"{}", "application/json"),
    ],
)
async def test_lists_and_empty_bodies_go_out_as_they_are(tmp_path, method, body, content_type):
    """A JSON patch stays a list of its own type; no body is no body; an empty object is an empty object."""
    got = {}

    async def handler(request):
        got.update(body=await request.read(), type=request.content_type)
        return web.Response()

    async with talking_to(tmp_path, handler) as transport:
        await transport.request(method, "/x", body=body, content_type=content_type)
    assert got["body"].replace(b" ", b"") == body
    assert got["type"] == content_type


async def listen(transport, got, **options):
    async with transport.stream("/watch", **options) as stream:
        async for chunk in stream:
            got.append(chunk)


@contextmanager
def closed_port():
    """A port at which nobody listens, and that no other test is given meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.mark.parametrize("how", ["request", "stream"])
async def test_a_refused_connection_names_the_server(tmp_path, how):
    """No listener: one error, with the URL for a person to check."""
    with closed_port() as port:
        url = f"http://127.0.0.1:{port}"
        async with connected(write_kubeconfig(tmp_path / "config", url, None)) as transport:
            call = transport.request("GET", "/version") if how == "request" else listen(transport, [])
            with pytest.raises(Unavailable) as caught:
                await call
    assert (caught.value.status, caught.value.reason) == (0, "Unreachable")
    assert url in caught.value.message


async def test_a_slow_answer_is_given_up_in_time(tmp_path):
    """The timeout covers the whole answer, also one that trickles."""

    async def handler(request):
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(100):
            await response.write(b"x")
            await asyncio.sleep(0.1)
        return response

    async with talking_to(tmp_path, handler) as transport, asyncio.timeout(5):
        with pytest.raises(Unavailable):
            await transport.request("GET", "/x", timeout=0.3)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("said", [b"", CHUNKED, CHUNKED + b"4\r\nline\r\n"], ids=["nothing", "headers", "a chunk"])
async def test_a_half_open_stream_is_given_up_after_the_idle_timeout(tmp_path, said):
    """A connection on which nothing comes any more, at whatever point, raises; what came before was delivered."""
    got, over = [], asyncio.Event()

    async def handle(reader, writer):
        writer.write(said)
        await over.wait()
        writer.close()

    async with raw_server(tmp_path, handle) as (transport, url), asyncio.timeout(5):
        with pytest.raises(Unavailable, match=url):
            await listen(transport, got, idle_timeout=0.3)
        over.set()
    assert b"".join(got) == (b"line" if said.endswith(b"line\r\n") else b"")


async def test_a_stream_that_speaks_now_and_then_is_never_given_up(tmp_path):
    """The idle timeout is for silence, not for the whole stream; and chunks come as they are sent."""
    got = []

    async def handler(request):
        response = web.StreamResponse()
        await response.prepare(request)
        for number in range(6):
            await asyncio.sleep(0.2)
            await response.write(b"%d" % number)
            await asyncio.wait_for(heard.acquire(), 5)
        return response

    heard = asyncio.Semaphore(0)
    async with talking_to(tmp_path, handler) as transport, transport.stream("/w", idle_timeout=0.8) as stream:
        assert stream.status == 200
        async for chunk in stream:
            got.append(chunk)
            heard.release()
    assert got == [b"0", b"1", b"2", b"3", b"4", b"5"]


async def test_a_stream_is_asked_for_as_it_is_and_a_whole_answer_may_come_compressed(tmp_path):
    """An API server of 1.37 compresses each event of a watch by itself wherever the client lets it."""
    asked = []

    async def handler(request):
        asked.append(request.headers["Accept-Encoding"])
        return web.Response(text="line")

    async with talking_to(tmp_path, handler) as transport:
        await listen(transport, [])
        await transport.request("GET", "/list")
    assert asked == ["identity", "gzip"]


async def test_a_stream_cut_in_the_middle_of_a_chunk_raises(tmp_path):
    """The peer closing without the end mark is not a clean end."""

    async def handle(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED + b"4\r\nline\r\n10\r\nha")
        await writer.drain()
        writer.close()

    got = []
    async with raw_server(tmp_path, handle) as (transport, _):
        with pytest.raises(Unavailable):
            await listen(transport, got)
    assert b"".join(got).startswith(b"line")


async def test_leaving_a_stream_closes_its_connection(tmp_path):
    """The server sees at once that nobody listens any more."""
    left = asyncio.Event()

    async def handle(reader, writer):
        writer.write(CHUNKED + b"4\r\nline\r\n")
        await reader.readuntil(b"\r\n\r\n")
        if await reader.read() == b"":
            left.set()
        writer.close()

    async with raw_server(tmp_path, handle) as (transport, _):
        async with transport.stream("/watch"):
            pass
        await asyncio.wait_for(left.wait(), 5)


async def test_refusals_come_through_the_client_as_errors(tmp_path):
    """410 is Expired; 429 carries the seconds that the server asks for; a refused stream shows status and body."""

    async def handler(request):
        body = {"kind": "Status", "reason": "Expired", "message": "too old"}
        if "watch" in request.query or "410" in request.path:
            return web.json_response(body, status=410)
        return web.json_response(body, status=429, headers={"Retry-After": "7"})

    async with talking_to(tmp_path, handler) as transport:
        with pytest.raises(Expired, match="too old"):
            await Client(transport).get(NODES, "410")
        with pytest.raises(TooManyRequests) as caught:
            await Client(transport).get(NODES, "n")
        assert caught.value.retry_after == 7
        async with transport.stream("/api/v1/nodes", query=[("watch", "1")]) as stream:
            assert stream.status == 410
            assert b"too old" in b"".join([chunk async for chunk in stream])


@pytest.mark.parametrize(
    "shown",
    [r"canary\u002Dof\u002dthe-api\/server", r"\u0063anary-of-the-api/server", "canary-of-the-api/server"],
)
async def test_a_refusal_that_quotes_our_token_in_escapes_of_json_comes_without_it(tmp_path, shown):
    """What is beside it says what it said; a backslash and u002d after an escaped one are no escape."""

    async def handler(request):
        return web.Response(text=rf'{{"message": "\u003c\"a\\u002db\" {shown}\n"}}', status=403)

    async with talking_to(tmp_path, handler, {"token": "canary-of-the-api/server"}) as transport:
        reply = await transport.request("GET", "/x")
    assert json.loads(reply.body) == {"message": '<"a\\u002db" [secret]\n'}


async def test_a_refusal_that_quotes_our_token_comes_without_it(tmp_path):
    """As a proxy before the server may, to a request and to a watch; what was asked for comes as it is."""

    async def handler(request):
        text = f"you sent {request.headers['authorization']}"
        return web.json_response({"message": text}, status=200 if request.path == "/taken" else 403)

    async with talking_to(tmp_path, handler, {"token": "canary-of-the-api-server"}) as transport:
        with pytest.raises(Forbidden) as caught:
            await Client(transport).get(NODES, "n")
        async with transport.stream("/api/v1/nodes", query=[("watch", "1")]) as stream:
            refused = b"".join([chunk async for chunk in stream])
        taken = await transport.request("GET", "/taken")
    assert str(caught.value) == "403 : you sent Bearer [secret]"
    assert json.loads(refused) == {"message": "you sent Bearer [secret]"}
    assert json.loads(taken.body) == {"message": "you sent Bearer canary-of-the-api-server"}


async def test_of_a_proxy_that_refuses_neither_its_password_nor_its_words_are_told(tmp_path):
    """It stands in the URL of the proxy, and the proxy may quote it."""

    def refusal(head):
        shown = next(line for line in head.splitlines() if line.startswith("Proxy-Authorization: "))
        return f"HTTP/1.1 407 you sent {shown}\r\nContent-Length: 0\r\n\r\n"

    config = write_kubeconfig(tmp_path / "config", "https://api.example:6443", {"token": "secret"})
    text = yaml.safe_load(config.read_text())
    async with proxy_that_says(refusal) as address:
        text["clusters"][0]["cluster"]["proxy-url"] = f"http://me:canary-of-the-proxy@{address}"
        config.write_text(yaml.safe_dump(text))
        async with connected(config) as transport:
            with pytest.raises(Unavailable) as caught:
                await transport.request("GET", "/api/v1/x", timeout=5)
    said = "no answer from https://api.example:6443: the proxy before it answers with 407"
    assert str(caught.value) == f"0 Unreachable: {said}"
    assert "canary" not in "".join(traceback.format_exception(caught.value))


TOKEN = b"canary-of-the-api-server"
LEFT = "it redirects to what is no URL of HTTP"
BROKEN = "its answer breaks off, or is not encoded as it says"
NO_HTTP = "what it answers is not HTTP"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"you sent Bearer %b\r\n\r\n", NO_HTTP),
        (b"HTTP/1.1 4x1 Bearer %b\r\n\r\n", NO_HTTP),
        (b"HTTP/1.1 200 OK\r\nyou sent Bearer %b\r\n\r\n", NO_HTTP),
        (CHUNKED + b"Bearer %b\r\n", NO_HTTP),
        (CHUNKED + b"4\r\nline\r\nBearer %b\r\n", NO_HTTP),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nBearer %b", BROKEN),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 24\r\n\r\n%b", BROKEN),
        (b"HTTP/1.1 302 Found\r\nLocation: http://[%b\r\nContent-Length: 0\r\n\r\n", LEFT),
        (b"HTTP/1.1 302 Found\r\nLocation: foo://x/%b\r\nContent-Length: 0\r\n\r\n", LEFT),
        (
            b"HTTP/1.1 302 Found\r\nLocation: /%b\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            "it redirects without end",
        ),
        (b"HTTP/1.1 200 OK\r\nX-Sent: %b\r\n", "it closed the connection"),
    ],
    ids=[
        "line",
        "status",
        "header",
        "first chunk",
        "chunk",
        "short",
        "gzip",
        "no url",
        "scheme",
        "circle",
        "half a head",
    ],
)
@pytest.mark.parametrize("how", ["request", "stream"])
async def test_an_answer_that_is_broken_is_never_repeated(tmp_path, how, answer, why):
    """It may quote our token, in the status line, a header, a chunk or the address that it redirects to."""

    async def handle(reader, writer):
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer % TOKEN)
            await writer.drain()
        writer.close()

    async with raw_server(tmp_path, handle, {"token": TOKEN.decode()}) as (transport, url):
        with pytest.raises(Unavailable) as caught:
            await (transport.request("GET", "/x") if how == "request" else listen(transport, []))
    assert str(caught.value) == f"0 Unreachable: no answer from {url}: {why}"
    assert "canary" not in "".join(traceback.format_exception(caught.value))


async def test_an_address_to_which_it_redirects_and_where_nobody_answers_is_not_told(tmp_path, monkeypatch):
    """Its queue of connections is full, and no other is taken."""
    monkeypatch.setattr(http, "CONNECT_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as waiting:
        for _ in range(4):
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())

        async def handler(request):
            left = f"http://127.0.0.1:{full.getsockname()[1]}/login?from={TOKEN.decode()}"
            return web.Response(status=302, headers={"Location": left})

        async with talking_to(tmp_path, handler, {"token": TOKEN.decode()}) as transport:
            with pytest.raises(Unavailable) as caught:
                await transport.request("GET", "/x", timeout=20)
            url = transport.connection.server
    assert str(caught.value) == f"0 Unreachable: no answer from {url}: no connection in time"
    assert "canary" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("status", [202, 203, 300, 401])
async def test_what_nobody_asked_for_comes_without_our_token(tmp_path, status):
    async def handle(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n%b" % (status, len(TOKEN), TOKEN))
        await writer.drain()
        writer.close()

    async with raw_server(tmp_path, handle, {"token": TOKEN.decode()}) as (transport, _):
        reply = await transport.request("GET", "/x")
    assert (reply.status, reply.body) == (status, b"[secret]")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http:/me:canary@127.0.0.1:9", "[secret]@127.0.0.1:9"),
        ("me:can/ary@127.0.0.1:9", "[secret]@127.0.0.1:9"),
        ("http://me:canary@127.0.0.1:99999", "http://[secret]@127.0.0.1:99999"),
        ("socks5://me:canary@127.0.0.1:9", "socks5://[secret]@127.0.0.1:9"),
        ("http://CORP\\me:canary@127.0.0.1:9", "http://[secret]@127.0.0.1:9"),
        ("http://me:canary@proxy..corp:9", "http://[secret]@proxy..corp:9"),
    ],
)
async def test_a_proxy_of_the_environment_that_is_no_url_is_refused_without_its_password(
    tmp_path, monkeypatch, no_proxy, address, shown
):
    monkeypatch.setenv("http_proxy", address)
    with pytest.raises(ValueError, match="HTTP_PROXY of the environment is") as caught:
        await HttpTransport.from_kubeconfig(write_kubeconfig(tmp_path / "config", "http://api.example:1", None))
    assert str(caught.value) == (
        f"HTTP_PROXY of the environment is {shown!r}: only http:// and https:// proxies, as http://HOST:PORT; "
        "correct or unset it, or put api.example into NO_PROXY"
    )


@pytest.mark.parametrize(
    ("user", "wrong"),
    [
        ("me:canary%E2%82%AC", "its user or its password has a character that is none of Latin-1"),
        ("m€:canary", "its user or its password has a character that is none of Latin-1"),
        ("m%3Ae:canary", "its user has a colon, which begins the password"),
    ],
)
async def test_a_proxy_that_cannot_be_shown_its_user_is_refused_once_and_without_the_password(
    tmp_path, monkeypatch, no_proxy, user, wrong
):
    """Each request would fail; a password may have a colon, and what is Latin-1."""
    config = write_kubeconfig(tmp_path / "config", "http://api.example:1", None)
    monkeypatch.setenv("http_proxy", f"http://{user}@127.0.0.1:9")
    with pytest.raises(ValueError, match="HTTP_PROXY of the environment is") as caught:
        await HttpTransport.from_kubeconfig(config)
    assert str(caught.value) == (
        f"HTTP_PROXY of the environment is 'http://[secret]@127.0.0.1:9': {wrong}; "
        "correct or unset it, or put api.example into NO_PROXY"
    )
    monkeypatch.setenv("http_proxy", "http://mé:can%3Aary%C3%A9@127.0.0.1:9")
    async with connected(config):
        pass


@pytest.mark.parametrize("port", ["", "/"])
async def test_a_proxy_of_the_environment_may_be_a_host_and_a_port(tmp_path, monkeypatch, proxy, port):
    """As curl and kubectl read it; its user and password are shown to it alone."""
    address, heads = proxy
    monkeypatch.setenv("http_proxy", f"me:canary@{address}{port}")
    async with connected(write_kubeconfig(tmp_path / "config", "http://api.example:1", None)) as transport:
        assert (await transport.request("GET", "/api/v1/x")).status == 200
    assert ["Basic bWU6Y2FuYXJ5" in head for head in heads] == [True]


@pytest.mark.parametrize(("pause", "most"), [(0.0, 2**16), (0.01, 0)], ids=["fast", "slow"])
async def test_a_refused_watch_that_never_ends_is_read_to_its_bound(tmp_path, monkeypatch, pause, most):
    """64 KiB and 10 seconds, here 0.3; of one that is slow nothing is said but its status."""
    monkeypatch.setattr(http, "REFUSED_SECONDS", 10.0 if most else 0.3)
    got = []

    async def handler(request):
        response = web.StreamResponse(status=403)
        await response.prepare(request)
        with suppress(ConnectionError):
            for _ in range(20000):
                await response.write(b"x" * (2**14 if most else 1))
                await asyncio.sleep(pause)
        return response

    async with talking_to(tmp_path, handler) as transport, asyncio.timeout(20):
        await listen(transport, got)
    assert len(b"".join(got)) == most


async def test_many_requests_go_out_at_once(tmp_path):
    """Sixty open watches leave room for requests."""
    waiting, all_here = 0, asyncio.Event()

    async def handler(request):
        nonlocal waiting
        waiting += 1
        if waiting == 64:
            all_here.set()
        await all_here.wait()
        return web.Response()

    async with talking_to(tmp_path, handler) as transport, asyncio.timeout(20):
        replies = await asyncio.gather(*[transport.request("GET", "/x") for _ in range(64)])
    assert [reply.status for reply in replies] == [200] * 64


async def test_a_missing_kubeconfig_is_named(tmp_path):
    """The message says which file is missing."""
    with pytest.raises(FileNotFoundError, match="nowhere"):
        await HttpTransport.from_kubeconfig(tmp_path / "nowhere")


def token_plugin(tmp_path):
    """A credential plugin whose token is already old: it counts how often it was asked."""
    program = tmp_path / "plugin"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, pathlib\n"
        f"count = pathlib.Path({str(tmp_path / 'count')!r})\n"
        "number = int(count.read_text()) + 1 if count.exists() else 1\n"
        "count.write_text(str(number))\n"
        "status = {'token': f'token-{number}', 'expirationTimestamp': '2020-01-01T00:00:00Z'}\n"
        "print(json.dumps({'apiVersion': 'v1', 'kind': 'ExecCredential', 'status': status}))\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "v1", "command": str(program)}}


@pytest.mark.parametrize("stumbles", [False, True])
async def test_the_token_of_an_exec_plugin_is_renewed(tmp_path, monkeypatch, stumbles):
    """An expired token is replaced while we run, also after a renewal has failed."""
    monkeypatch.setattr(kubeconfig_plugin, "REFRESH_SECONDS", 0.05)
    real, failures = kubeconfig_plugin.config.refresh_token, [True] if stumbles else []

    async def refresh(*args, **options):
        if failures:
            raise RuntimeError(failures.pop())
        await real(*args, **options)

    monkeypatch.setattr(kubeconfig_plugin.config, "refresh_token", refresh)

    async def handler(request):
        return web.Response(text=request.headers["authorization"])

    async with talking_to(tmp_path, handler, token_plugin(tmp_path)) as transport, asyncio.timeout(20):
        tokens = [(await transport.request("GET", "/x")).body]
        while tokens[-1] == tokens[0]:
            tokens.append((await transport.request("GET", "/x")).body)
    assert tokens[0] == b"Bearer token-1"
    assert tokens[-1] == b"Bearer token-2"
    assert not failures


async def test_inside_a_cluster_the_service_account_is_used(tmp_path, monkeypatch):
    """Address, CA and token come from where Kubernetes puts them; a certificate of another CA is refused."""
    tls, _ = self_signed(tmp_path)
    (tmp_path / "token").write_text("account\n")
    monkeypatch.setattr(service_account, "MOUNTED", tmp_path)

    async def handler(request):
        return web.Response(text=request.headers["authorization"])

    async with talking_to(tmp_path, handler, tls=tls) as outside:
        host, port = outside.connection.server.removeprefix("http://").split(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
        inside = await HttpTransport.in_cluster()
        assert (await inside.request("GET", "/x")).body == b"Bearer account"
        (tmp_path / "token").write_text("renewed\n")
        assert (await inside.request("GET", "/x")).body == b"Bearer renewed"
        (tmp_path / "token").unlink()
        with capture_logs() as logs:
            for _ in range(2):
                assert (await inside.request("GET", "/x")).body == b"Bearer renewed"
        assert [entry["event"] for entry in logs] == ["token not read; the last one is shown"]
        await inside.close()
        (tmp_path / "other").mkdir()
        _, other = self_signed(tmp_path / "other")
        (other.parent / "token").write_text("account")
        monkeypatch.setattr(service_account, "MOUNTED", other.parent)
        stranger = await HttpTransport.in_cluster()
        with pytest.raises(Unavailable, match="certificate"):
            await stranger.request("GET", "/x")
        await stranger.close()
