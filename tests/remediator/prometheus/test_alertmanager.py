"""A list of an Alertmanager counts only when it is whole; all else has its own name."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from remediator.clock import SYSTEM
from remediator.prometheus.alertmanager import LARGEST, Alertmanager
from remediator.prometheus.alerts import ListedAlert, of_answer
from remediator.prometheus.metrics import LISTS
from remediator.prometheus.reading import CannotTell, Doubt
from remediator_sim.prometheus import PrometheusReply
from tests.harness.prometheus import FakePrometheus, fake_prometheus

# As Alertmanager 0.25.0 answered.
BODY = b"""[{"annotations":{"summary":"XID 79"},"endsAt":"2026-11-26T00:20:00.000Z","fingerprint":"1fd2e1a5e3bd08f9",
"receivers":[{"name":"remediator"},{"name":"slack"}],"startsAt":"2026-11-26T00:15:00.000Z",
"status":{"inhibitedBy":[],"silencedBy":["4f3c"],"state":"suppressed"},"updatedAt":"2026-11-26T00:15:01.134Z",
"generatorURL":"http://prometheus/graph","labels":{"alertname":"NodeGpuXid","node":"gpu-17"}}]"""
ALERT = ListedAlert(
    "1fd2e1a5e3bd08f9",
    {"alertname": "NodeGpuXid", "node": "gpu-17"},
    {"summary": "XID 79"},
    datetime(2026, 11, 26, 0, 15, tzinfo=UTC),
    active=False,
    receivers=("remediator", "slack"),
)


@pytest.fixture
def fake() -> Iterator[FakePrometheus]:
    with fake_prometheus() as served:
        served.script = lambda _: PrometheusReply(200, BODY)
        yield served


async def ask(fake: FakePrometheus, **settings: Any) -> Any:
    """What one question comes to."""
    alertmanager = Alertmanager(fake.url + "/am/", SYSTEM, **{"patience": 5.0, **settings})
    try:
        return await alertmanager.alerts()
    finally:
        await alertmanager.aclose()


async def test_a_list_is_read_with_the_token_from_the_path_of_version_2(fake: FakePrometheus, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret")
    assert await ask(fake, token=tmp_path / "token") == (ALERT,)
    [(path, params, headers)] = fake.asked
    assert (path, params, headers["Authorization"]) == ("/am/api/v2/alerts", {}, "Bearer s3cret")


async def test_only_alerts_of_this_cluster_are_asked_for_where_a_matcher_says_so(fake: FakePrometheus) -> None:
    await ask(fake, matcher='cluster="a"')
    assert [params for _, params, _ in fake.asked] == [{"filter": 'cluster="a"'}]


def without(field: str) -> bytes:
    [alert] = json.loads(BODY)
    return json.dumps([json.loads(BODY)[0], {key: value for key, value in alert.items() if key != field}]).encode()


BAD = {
    "an object": (lambda _: PrometheusReply(200, b'{"alerts": []}'), Doubt.UNREADABLE, "--alertmanager-url"),
    "a page that says 200": (lambda _: PrometheusReply(200, b"<html>welcome"), Doubt.UNREADABLE, "--alertmanager-url"),
    "half a list": (lambda _: PrometheusReply(200, BODY[:-40]), Doubt.UNREADABLE, "no list"),
    "a second alert without fingerprint": (
        lambda _: PrometheusReply(200, without("fingerprint")),
        Doubt.UNREADABLE,
        "no list",
    ),
    "a second alert without status": (lambda _: PrometheusReply(200, without("status")), Doubt.UNREADABLE, "no list"),
    "brackets without end": (lambda _: PrometheusReply(200, b"[" * 100_000), Doubt.UNREADABLE, "no list"),
    "nothing": (lambda _: PrometheusReply(200, b""), Doubt.UNREADABLE, "no list"),
    "404": (lambda _: PrometheusReply(404, b"page not found"), Doubt.HTTP_ERROR, "HTTP 404"),
    "400": (lambda _: PrometheusReply(400, b"bad matcher format"), Doubt.HTTP_ERROR, "--alertmanager-matcher"),
    "503": (lambda _: PrometheusReply(503, b"[]"), Doubt.HTTP_ERROR, "HTTP 503"),
    "401": (lambda _: PrometheusReply(401, b"no"), Doubt.UNAUTHORIZED, "--alertmanager-token-file"),
    "a redirect": (
        lambda _: PrometheusReply(302, b"[]", {"Location": "http://169.254.169.254/"}),
        Doubt.REDIRECTED,
        "last",
    ),
    "more than 16 MiB": (lambda _: PrometheusReply(200, b" " * (LARGEST + 1)), Doubt.TOO_LARGE, "16 MiB"),
}


@pytest.mark.parametrize(("script", "doubt", "words"), BAD.values(), ids=BAD.keys())
async def test_each_bad_answer_is_no_list_under_its_own_name(
    fake: FakePrometheus, script: Any, doubt: Doubt, words: str
) -> None:
    fake.script = script
    before = LISTS.labels(doubt.value)._value.get()
    answer = await ask(fake)
    assert isinstance(answer, CannotTell)
    assert (answer.doubt, words in answer.message) == (doubt, True), answer
    assert LISTS.labels(doubt.value)._value.get() == before + 1


@given(st.binary() | st.recursive(st.none() | st.text(), st.lists).map(lambda value: json.dumps(value).encode()))
def test_whatever_a_server_says_is_read_without_an_error(body: bytes) -> None:
    assert of_answer(200, body) == () or isinstance(of_answer(200, body), CannotTell)


async def test_a_list_that_comes_byte_by_byte_is_not_waited_for(fake: FakePrometheus) -> None:
    def dripping(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n[")
        for _ in range(200):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.05)

    fake.script = lambda _: dripping
    assert (await ask(fake, patience=0.5)).doubt is Doubt.TIMED_OUT


async def test_that_it_cannot_be_reached_is_logged_once_with_its_address() -> None:
    with fake_prometheus() as gone:
        pass
    alertmanager = Alertmanager(gone.url, SYSTEM)
    with capture_logs() as lines:
        for _ in range(2):
            assert (await alertmanager.alerts()).doubt is Doubt.UNREACHABLE
    await alertmanager.aclose()
    assert [(line["event"], line["query"]) for line in lines] == [
        ("Alertmanager gives no verdict", f"{gone.url}/api/v2/alerts")
    ]
    assert "--alertmanager-url" in lines[0]["because"]
