"""An answer of Prometheus is a verdict only when it is whole, fresh and without warnings; all else has its own name."""

import asyncio
import json
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from remediator.clock import SYSTEM
from remediator.prometheus.connection import LARGEST
from remediator.prometheus.metrics import QUERIES
from remediator.prometheus.prometheus import Prometheus
from remediator.prometheus.reading import CannotTell, Doubt, Sample, of_answer
from remediator.prometheus.source import AT_ONCE
from remediator_sim.prometheus import PrometheusReply, failure, success
from tests.harness.certificates import self_signed
from tests.harness.prometheus import FakePrometheus, fake_prometheus
from tests.harness.waiting import until

pytestmark = pytest.mark.sampled("prometheus")

WITHIN = timedelta(minutes=4)
QUERY = 'max(DCGM_FI_DEV_XID_ERRORS{node="gpu-1"})'


@pytest.fixture
def fake() -> Iterator[FakePrometheus]:
    with fake_prometheus() as served:
        yield served


async def ask(fake: FakePrometheus, **settings: Any) -> Any:
    """What one question comes to."""
    prometheus = Prometheus(fake.url, SYSTEM, **{"patience": 5.0, **settings})
    try:
        return await prometheus.instant(QUERY, WITHIN)
    finally:
        await prometheus.aclose()


def vector(*values: str, ago: float = 0.0, **more: Any) -> PrometheusReply:
    """An answer with these values, of a time that is so many seconds ago."""
    result = [{"metric": {"gpu": str(n)}, "value": [time.time() - ago, value]} for n, value in enumerate(values)]
    return success({"resultType": "vector", "result": result}, **more)


def slowly(handler: BaseHTTPRequestHandler) -> None:
    """A byte now and then, for ever."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.1)


def drip(handler: BaseHTTPRequestHandler, start: bytes) -> None:
    """A start of an answer, and a byte now and then for 6 s: each wait for a byte is short, all together are long."""
    handler.wfile.write(start)
    for _ in range(120):
        handler.wfile.write(b"a")
        handler.wfile.flush()
        time.sleep(0.05)


def dripping_headers(handler: BaseHTTPRequestHandler) -> None:
    """A header without end."""
    drip(handler, b"HTTP/1.1 200 OK\r\nX-Long: ")


def dripping_chunk(handler: BaseHTTPRequestHandler) -> None:
    """The size of a piece without end."""
    drip(handler, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;")


def dripping_to_the_end(handler: BaseHTTPRequestHandler) -> None:
    """A body that is over when the connection is."""
    drip(handler, b'HTTP/1.0 200 OK\r\n\r\n{"status": "')


def never(handler: BaseHTTPRequestHandler) -> None:
    """No answer at all."""
    time.sleep(2.0)


def hanging_up(handler: BaseHTTPRequestHandler) -> None:
    """Half an answer."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"status":')


MATRIX = {"resultType": "matrix", "result": [{"metric": {}, "values": [[1, "1"]]}]}
HISTOGRAM = {"resultType": "vector", "result": [{"metric": {}, "histogram": [1, {"count": "1"}]}]}
BAD: dict[str, tuple[Callable[[Any], Any], Doubt, str]] = {
    "a warning": (lambda _: vector("1", warnings=["store 10.0.0.7 unavailable"]), Doubt.WARNED, "store 10.0.0.7"),
    "an info that leaves samples out": (
        lambda _: vector("1", infos=["PromQL info: ignored histograms in max aggregation"]),
        Doubt.WARNED,
        "ignored histograms",
    ),
    "a partial answer of VictoriaMetrics": (lambda _: vector("1", isPartial=True), Doubt.PARTIAL, "did not answer"),
    "a partial answer of Thanos": (lambda _: vector("1", partialResponse=True), Doubt.PARTIAL, "did not answer"),
    "no series": (lambda _: vector(), Doubt.EMPTY, "empty"),
    "NaN": (lambda _: vector("1", "NaN"), Doubt.NOT_A_NUMBER, "NaN"),
    "an infinity": (lambda _: vector("+Inf"), Doubt.NOT_A_NUMBER, "+Inf"),
    "an old sample": (lambda _: vector("1", ago=300), Doubt.STALE, "older than 0:04:00"),
    "a sample of the future": (lambda _: vector("1", ago=-90), Doubt.AHEAD, "clocks"),
    "a matrix": (lambda _: success(MATRIX), Doubt.WRONG_TYPE, "instant vector"),
    "a string": (lambda _: success({"resultType": "string", "result": [1, "1"]}), Doubt.WRONG_TYPE, "instant vector"),
    "a scalar": (lambda _: success({"resultType": "scalar", "result": [1, "1"]}), Doubt.WRONG_TYPE, "instant vector"),
    "a histogram": (lambda _: success(HISTOGRAM), Doubt.WRONG_TYPE, "histogram"),
    "no data": (lambda _: success(None), Doubt.WRONG_TYPE, "instant vector"),
    "a query that does not parse": (lambda _: failure(400, "bad_data", "parse error"), Doubt.FAILED, "parse error"),
    "an error inside of a 200": (lambda _: failure(200, "internal", "oops"), Doubt.FAILED, "internal: oops"),
    "its own time-out": (lambda _: failure(503, "timeout", "query timed out"), Doubt.TIMED_OUT, "query timed out"),
    "a page of a proxy": (lambda _: PrometheusReply(502, b"<html>bad gateway"), Doubt.HTTP_ERROR, "HTTP 502"),
    "a page that says 200": (lambda _: PrometheusReply(200, b"<html>welcome"), Doubt.UNREADABLE, "--prometheus-url"),
    "another JSON": (
        lambda _: PrometheusReply(200, b'{"status": "success", "data": [1]}'),
        Doubt.UNREADABLE,
        "no answer",
    ),
    "brackets without end": (lambda _: PrometheusReply(200, b"[" * 100_000), Doubt.UNREADABLE, "no answer"),
    "a redirect": (
        lambda _: PrometheusReply(302, b"", {"Location": "http://169.254.169.254/"}),
        Doubt.REDIRECTED,
        "--prometheus-url",
    ),
    "401": (lambda _: PrometheusReply(401, b"no"), Doubt.UNAUTHORIZED, "--prometheus-token-file"),
    "403": (lambda _: PrometheusReply(403, b"no"), Doubt.UNAUTHORIZED, "--prometheus-token-file"),
    "more than 1 MiB": (lambda _: PrometheusReply(200, b" " * (LARGEST + 1)), Doubt.TOO_LARGE, "1 MiB"),
    "half an answer": (lambda _: hanging_up, Doubt.UNREADABLE, "breaks off"),
}


@pytest.mark.parametrize(("script", "doubt", "words"), BAD.values(), ids=BAD.keys())
async def test_each_bad_answer_is_no_verdict_under_its_own_name(
    fake: FakePrometheus, script: Any, doubt: Doubt, words: str
) -> None:
    fake.script = script
    answer = await ask(fake)
    assert isinstance(answer, CannotTell)
    assert (answer.doubt, words in answer.message) == (doubt, True), answer


KNOWN = st.sampled_from(["status", "data", "resultType", "result", "metric", "value", "warnings", "infos", "isPartial"])
TEXTS = st.sampled_from(["success", "error", "vector", "matrix"])


def objects(inner: Any) -> Any:
    return st.dictionaries(KNOWN | st.text(), inner | TEXTS)


ODD = st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner) | objects(inner))


@given(st.integers(100, 599), st.binary() | objects(ODD).map(lambda value: json.dumps(value).encode()))
def test_whatever_a_server_says_is_read_without_an_error_and_in_few_words(status: int, body: bytes) -> None:
    answer = of_answer(status, body, WITHIN, datetime.now(UTC))
    if isinstance(answer, CannotTell):
        assert len(answer.message) < 500
    else:
        assert answer
        assert all(math.isfinite(sample.value) for sample in answer)


DRIPS = [slowly, dripping_headers, dripping_chunk, dripping_to_the_end]
LATE = pytest.mark.parametrize("reply", [*DRIPS, never], ids=lambda reply: reply.__name__)


@LATE
async def test_an_answer_that_is_late_is_no_verdict_and_is_not_waited_for(fake: FakePrometheus, reply: Any) -> None:
    fake.script = lambda _: reply
    began = time.monotonic()
    assert (await ask(fake, patience=1.0)).doubt is Doubt.TIMED_OUT
    assert time.monotonic() - began < 1.8


@LATE
async def test_four_late_answers_hold_the_fifth_question_no_longer_than_one_is_waited_for(
    fake: FakePrometheus, reply: Any
) -> None:
    fake.script = lambda params: reply if "late" in params["query"] else vector("1")
    prometheus = Prometheus(fake.url, SYSTEM, patience=1.0)
    late = [asyncio.ensure_future(prometheus.instant('late{node="gpu-1"}', WITHIN)) for _ in range(AT_ONCE)]
    await until(lambda: len(fake.asked) == AT_ONCE)
    began = time.monotonic()
    assert await prometheus.instant(QUERY, WITHIN) == (Sample(1.0, {"gpu": "0"}),)
    assert time.monotonic() - began < 1.8
    assert {(await each).doubt for each in late} == {Doubt.TIMED_OUT}
    await prometheus.aclose()


async def test_after_an_answer_the_connection_is_used_again_and_its_limit_begins_anew(fake: FakePrometheus) -> None:
    fake.script = lambda params: dripping_headers if "late" in params["query"] else vector("1")
    prometheus = Prometheus(fake.url, SYSTEM, patience=1.0, worker=ThreadPoolExecutor(1))
    for query in (QUERY, QUERY):
        assert await prometheus.instant(query, WITHIN) == (Sample(1.0, {"gpu": "0"}),)
    began = time.monotonic()
    assert (await prometheus.instant('late{node="gpu-1"}', WITHIN)).doubt is Doubt.TIMED_OUT
    assert time.monotonic() - began < 1.8
    assert await prometheus.instant(QUERY, WITHIN) == (Sample(1.0, {"gpu": "0"}),)
    assert len(fake.connections) == 2
    await prometheus.aclose()


async def test_a_tls_handshake_byte_by_byte_is_not_waited_for() -> None:
    """A record of TLS that says it is 16 KiB long."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=dripping_tls, args=(listening,), daemon=True).start()
        prometheus = Prometheus(f"https://127.0.0.1:{listening.getsockname()[1]}", SYSTEM, patience=1.0)
        began = time.monotonic()
        assert (await prometheus.instant(QUERY, WITHIN)).doubt is Doubt.TIMED_OUT
        assert time.monotonic() - began < 1.8
        await prometheus.aclose()


def dripping_tls(listening: socket.socket) -> None:
    connected, _ = listening.accept()
    with connected, suppress(OSError):
        connected.sendall(b"\x16\x03\x03\x40\x00")
        while True:
            connected.sendall(b"\x02")
            time.sleep(0.05)


async def test_a_server_that_is_away_is_no_verdict() -> None:
    with fake_prometheus() as gone:
        pass
    assert (await ask(gone)).doubt is Doubt.UNREACHABLE


async def test_a_name_server_that_does_not_answer_holds_no_thread_for_longer_than_an_answer_is_waited_for(
    fake: FakePrometheus, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Two questions in one thread. The name is asked for once, and has two addresses when it is told: one is away."""
    answered, names, resolve = threading.Event(), list[str](), socket.getaddrinfo

    def look_up(host: str, port: int, *more: Any, **how: Any) -> Any:
        if host != "prometheus.test":
            return resolve(host, port, *more, **how)
        names.append(host)
        answered.wait()
        return [*resolve("127.0.0.9", port, type=how["type"]), *resolve("127.0.0.1", port, type=how["type"])]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    request.addfinalizer(answered.set)  # no thread outlives a test that fails
    fake.script = lambda _: vector("1")
    url = fake.url.replace("127.0.0.1", "prometheus.test")
    prometheus = Prometheus(url, SYSTEM, patience=0.3, worker=ThreadPoolExecutor(1))
    for _ in range(2):
        late = await prometheus.instant(QUERY, WITHIN)
        assert isinstance(late, CannotTell)
        said = "nobody told its address within 0.3 s; look at the DNS of the controller"
        assert (late.doubt, late.message) == (Doubt.UNREACHABLE, said)
    assert len(names) == 1
    answered.set()
    patient = Prometheus(url, SYSTEM, patience=5.0)
    assert await patient.instant(QUERY, WITHIN) == (Sample(1.0, {"gpu": "0"}),)
    await prometheus.aclose()
    await patient.aclose()


async def test_whole_fresh_samples_are_a_verdict_with_their_labels(fake: FakePrometheus) -> None:
    harmless = ["PromQL info: metric might not be a counter, name does not end in _total: x"]
    fake.script = lambda _: vector("79", "0", infos=harmless)
    assert await ask(fake) == (Sample(79.0, {"gpu": "0"}), Sample(0.0, {"gpu": "1"}))


async def test_the_server_is_told_how_old_a_sample_may_be_and_that_it_may_leave_nothing_out(
    fake: FakePrometheus,
) -> None:
    """The samples of an instant query bear the time of the query: only the server knows how old they are."""
    fake.memory.write("DCGM_FI_DEV_XID_ERRORS", 79, at=time.time() - 250, node="gpu-1")
    assert (await ask(fake)).doubt is Doubt.EMPTY
    fake.memory.write("DCGM_FI_DEV_XID_ERRORS", 79, at=time.time() - 200, node="gpu-1")
    assert (await ask(fake)) == (Sample(79.0),)
    path, params, _ = fake.asked[0]
    asked = f'(\n{QUERY}\n) and on() (min(timestamp(DCGM_FI_DEV_XID_ERRORS{{node="gpu-1"}})) >= time() - 240)'
    wanted = {"query": asked, "lookback_delta": "240", "timeout": "5", "partial_response": "false"}
    assert (path, params) == ("/api/v1/query", {**wanted, "deny_partial_response": "1"})


async def test_the_library_alone_takes_a_partial_answer_for_a_whole_one(fake: FakePrometheus) -> None:
    """Why its session is used and not `custom_query`: it drops warnings, and raises KeyError for an error in a 200."""
    prometheus = Prometheus(fake.url, SYSTEM)
    fake.script = lambda _: vector("0", warnings=["2 of 3 stores did not answer"])
    assert [series["value"][1] for series in prometheus.connection.custom_query(QUERY)] == ["0"]
    fake.script = lambda _: failure(200, "internal", "oops")
    with pytest.raises(KeyError):
        prometheus.connection.custom_query(QUERY)
    await prometheus.aclose()


async def test_the_token_is_read_anew_for_each_question(fake: FakePrometheus, tmp_path: Path) -> None:
    file = tmp_path / "token"
    fake.script = lambda _: vector("1")
    for token in ("one", "two"):
        file.write_text(f"{token}\n")
        await ask(fake, token=file)
    assert [headers.get("Authorization") for _, _, headers in fake.asked] == ["Bearer one", "Bearer two"]


@pytest.mark.parametrize("text", ["", "two words", None], ids=["empty", "two words", "no file"])
async def test_without_a_token_that_can_be_sent_nothing_is_asked(
    fake: FakePrometheus, tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "token"
    if text is not None:
        file.write_text(text)
    answer = await ask(fake, token=file)
    assert (answer.doubt, str(file) in answer.message, fake.asked) == (Doubt.NO_TOKEN, True, [])


async def test_no_message_holds_the_token(fake: FakePrometheus, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cr3t")
    fake.script = lambda _: failure(400, "bad_data", "you sent Bearer s3cr3t")
    assert "s3cr3t" not in (await ask(fake, token=tmp_path / "token")).message


@pytest.mark.parametrize("before", range(270, 301, 6))
@pytest.mark.parametrize("how", ["error", "warning", "info", "sample"])
async def test_no_message_that_is_cut_holds_half_of_the_token(
    fake: FakePrometheus, tmp_path: Path, how: str, before: int
) -> None:
    """A message has 300 letters, and the token stands at its end."""
    (tmp_path / "token").write_text("canary-of-prometheus")
    words = "x" * (before - len("HTTP 400: bad_data: ")) + "canary-of-prometheus"
    answers = {
        "error": lambda: failure(400, "bad_data", words),
        "warning": lambda: vector("1", warnings=[words]),
        "info": lambda: vector("1", infos=[words]),
        "sample": lambda: vector(words),
    }
    fake.script = lambda _: answers[how]()
    said = (await ask(fake, token=tmp_path / "token")).message
    assert "xxx" in said
    assert "can" not in said


async def test_a_netrc_does_not_replace_the_token(
    fake: FakePrometheus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login a password b\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    (tmp_path / "token").write_text("one")
    await ask(fake, token=tmp_path / "token")
    assert fake.asked[0][2]["Authorization"] == "Bearer one"


async def test_no_more_than_four_questions_are_under_way_and_none_holds_the_loop(fake: FakePrometheus) -> None:
    at_once: list[int] = []
    open_ = 0

    def script(_: Any) -> PrometheusReply:
        nonlocal open_
        open_ += 1
        at_once.append(open_)
        time.sleep(0.05)
        open_ -= 1
        return vector("1")

    fake.script = script
    prometheus = Prometheus(fake.url, SYSTEM)
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.005)
            turns += 1

    turning = asyncio.ensure_future(turn())
    await asyncio.gather(*(prometheus.instant(QUERY, WITHIN) for _ in range(12)))
    turning.cancel()
    await prometheus.aclose()
    assert max(at_once) <= AT_ONCE
    assert turns >= 10


async def test_tls_is_checked_against_the_file_that_was_given(tmp_path: Path) -> None:
    context, authority = self_signed(tmp_path)
    with fake_prometheus(lambda socket: context.wrap_socket(socket, server_side=True), "https") as fake:
        fake.script = lambda _: vector("1")
        answer = await ask(fake)
        assert (answer.doubt, "--prometheus-ca-file" in answer.message) == (Doubt.UNTRUSTED, True)
        assert await ask(fake, authority=authority) == (Sample(1.0, {"gpu": "0"}),)


class Ahead:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def wall(self) -> datetime:
        return SYSTEM.wall()

    def monotonic(self) -> float:
        return SYSTEM.monotonic() + self.seconds


async def logged(prometheus: Prometheus, query: str = QUERY) -> list[tuple[str, str]]:
    """The level and the reason of each line that one question makes."""
    with capture_logs() as lines:
        await prometheus.instant(query, WITHIN)
    return [(line["log_level"], line.get("reason", "")) for line in lines]


async def test_a_failure_is_logged_once_until_five_minutes_have_passed_without_it(fake: FakePrometheus) -> None:
    clock, replies = (
        Ahead(),
        {"answers": vector("1"), "fails": failure(503, "internal", "oops"), "away": PrometheusReply(502, b"")},
    )
    prometheus = Prometheus(fake.url, clock)

    async def lines(reply: str) -> list[tuple[str, str]]:
        fake.script = lambda _: replies[reply]
        return await logged(prometheus)

    assert await lines("answers") == []
    assert await lines("fails") == [("warning", "QueryFailed")]
    assert await lines("away") == [("warning", "HttpError")]
    assert [await lines(reply) for reply in ("fails", "away", "answers", "fails")] == [[], [], [], []]
    clock.seconds += 299
    assert await lines("fails") == []
    clock.seconds += 2
    assert await lines("answers") == []
    clock.seconds += 298
    assert await lines("answers") == [("info", "")]
    assert await lines("answers") == []
    assert await lines("fails") == [("warning", "QueryFailed")]
    await prometheus.aclose()


async def test_failures_with_ever_new_words_are_logged_eight_times_each(fake: FakePrometheus) -> None:
    prometheus, replies = Prometheus(fake.url, SYSTEM), iter(range(20))
    fake.script = lambda _: failure(400, "bad_data", f"parse error in the query about gpu-{next(replies)}")
    assert sum([len(await logged(prometheus)) for _ in range(20)]) == 8
    await prometheus.aclose()


async def test_the_log_says_which_query_and_what_the_connection_came_to_without_the_token(tmp_path: Path) -> None:
    with fake_prometheus() as gone:
        pass
    (tmp_path / "token").write_text("127.0.0.1")
    prometheus = Prometheus(gone.url, SYSTEM, token=tmp_path / "token")
    before = QUERIES.labels("Unreachable")._value.get()
    with capture_logs() as lines:
        await prometheus.instant(QUERY, WITHIN)
    await prometheus.aclose()
    assert [(line["reason"], line["query"]) for line in lines] == [("Unreachable", QUERY)]
    assert "--prometheus-url" in lines[0]["because"]
    assert "Connection refused" in lines[0]["detail"]
    assert "127.0.0.1" not in lines[0]["detail"]
    assert QUERIES.labels("Unreachable")._value.get() == before + 1
