"""Probes say whether the loop turns and the caches are fresh; metrics are what Prometheus reads."""

import re
from contextlib import AbstractAsyncContextManager

import aiohttp
import pytest
from aiohttp import web

from remediator import metrics
from remediator.metrics import REGISTRY
from remediator.web import probes
from remediator.web.endpoints import PROBES
from remediator.web.listener import Endpoint


async def _get(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, await answer.text()


def served(app: web.Application, listen: str = "127.0.0.1:0") -> AbstractAsyncContextManager[int]:
    return Endpoint("probes", app, PROBES).served(listen)


async def nothing() -> None:
    """There is nothing to measure."""


def series(text: str) -> set[str]:
    """The names of all samples, with their labels."""
    return {line.partition(" ")[0] for line in text.splitlines() if not line.startswith("#")}


@pytest.mark.parametrize(("ready", "status"), [(True, 200), (False, 503)], ids=["fresh caches", "caches not fresh"])
async def test_a_replica_is_alive_in_any_case_and_ready_only_with_fresh_caches(ready: bool, status: int) -> None:
    async with served(probes.application({"extender": lambda: ready}, nothing)) as port:
        assert (await _get(port, "/healthz"))[0] == 200
        assert (await _get(port, "/readyz"))[0] == status


async def test_a_replica_that_may_not_lead_is_ready_and_says_why() -> None:
    app = probes.application({}, nothing, lambda: "not leading")
    async with served(app) as port:
        assert await _get(port, "/readyz") == (200, "ok\nnot leading\n")


async def test_each_function_is_ready_by_itself_and_all_of_them_together() -> None:
    app = probes.application({"extender": lambda: True, "tickets": lambda: False}, nothing)
    async with served(app) as port:
        assert await _get(port, "/readyz/extender") == (200, "ok\n")
        assert await _get(port, "/readyz/tickets") == (503, "caches are not fresh\n")
        assert await _get(port, "/readyz") == (503, "tickets: caches are not fresh\n")
        assert (await _get(port, "/readyz/controller"))[0] == 404


async def test_a_scrape_measures_first_and_shows_our_series() -> None:
    measured: list[str] = []

    async def measure() -> None:
        measured.append("now")

    app = probes.application({}, measure)
    async with served(app) as port:
        status, text = await _get(port, "/metrics")
    assert (status, measured) == (200, ["now"])
    assert "remediator_onset_to_claim_seconds_bucket" in text


async def test_an_address_that_is_taken_is_an_error_at_once() -> None:
    app = probes.application({}, nothing)
    async with served(app) as port:
        with pytest.raises(OSError, match="address already in use"):
            async with served(probes.application({}, nothing), f"127.0.0.1:{port}"):
                pass


async def test_prometheus_keeps_its_connection_as_long_as_it_asks_and_no_longer() -> None:
    endpoint = Endpoint("probes", probes.application({}, nothing), PROBES)
    late = {"endpoint": "probes", "reason": "too-slow"}
    before = REGISTRY.get_sample_value("remediator_refused_calls_total", late) or 0
    async with endpoint.served("127.0.0.1:0") as port, aiohttp.ClientSession() as session:
        for _ in range(3):
            async with session.get(f"http://127.0.0.1:{port}/healthz") as answer:
                assert answer.status == 200
            [connection] = endpoint._open.values()
            endpoint.late(connection)
            assert endpoint.connections == 1
        assert (REGISTRY.get_sample_value("remediator_refused_calls_total", late) or 0) == before
        endpoint.late(connection)
        assert endpoint.connections == 0
    assert REGISTRY.get_sample_value("remediator_refused_calls_total", late) == before + 1


async def test_who_asks_for_open_metrics_gets_the_same_samples_with_the_case_of_a_long_wait_beside_them() -> None:
    """As Prometheus 3 asks. A name that is too long for an exemplar is left out, never the observation."""
    metrics.CLAIM_SECONDS.observe(3000, metrics.of_case("gpu-17-gpu-lost-1"))
    metrics.CLAIM_SECONDS.observe(9000, metrics.of_case("a" * 125))
    asked = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.4"
    async with served(probes.application({}, nothing)) as port, aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{port}/metrics", headers={"Accept": asked}) as answer:
            kind, text = answer.headers["Content-Type"], await answer.text()
        _, plain = await _get(port, "/metrics")
    assert kind.startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")
    (shown,) = re.findall(
        r'^remediator_onset_to_claim_seconds_bucket\{le="3600\.0"\} .* # (\{.*\}) 3000\.0', text, re.M
    )
    assert shown == '{case="gpu-17-gpu-lost-1"}'
    assert 'case="aaa' not in text
    assert " # {" not in plain
    assert series(text) == series(plain)
