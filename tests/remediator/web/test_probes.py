"""Probes say whether the loop turns and the caches are fresh; metrics are what Prometheus reads."""

import aiohttp
import pytest

from remediator.web import probes
from tests.cluster.control_plane import free_ports


async def _get(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, await answer.text()


async def nothing() -> None:
    """There is nothing to measure."""


@pytest.mark.parametrize(("ready", "status"), [(True, 200), (False, 503)], ids=["fresh caches", "caches not fresh"])
async def test_a_replica_is_alive_in_any_case_and_ready_only_with_fresh_caches(ready: bool, status: int) -> None:
    (port,) = free_ports(1)
    async with probes.served(probes.application({"extender": lambda: ready}, nothing), f"127.0.0.1:{port}"):
        assert (await _get(port, "/healthz"))[0] == 200
        assert (await _get(port, "/readyz"))[0] == status


async def test_a_replica_that_may_not_lead_is_ready_and_says_why() -> None:
    (port,) = free_ports(1)
    app = probes.application({}, nothing, lambda: "not leading")
    async with probes.served(app, f"127.0.0.1:{port}"):
        assert await _get(port, "/readyz") == (200, "ok\nnot leading\n")


async def test_each_function_is_ready_by_itself_and_all_of_them_together() -> None:
    (port,) = free_ports(1)
    app = probes.application({"extender": lambda: True, "tickets": lambda: False}, nothing)
    async with probes.served(app, f"127.0.0.1:{port}"):
        assert await _get(port, "/readyz/extender") == (200, "ok\n")
        assert await _get(port, "/readyz/tickets") == (503, "caches are not fresh\n")
        assert await _get(port, "/readyz") == (503, "tickets: caches are not fresh\n")
        assert (await _get(port, "/readyz/controller"))[0] == 404


async def test_a_scrape_measures_first_and_shows_our_series() -> None:
    (port,) = free_ports(1)
    measured: list[str] = []

    async def measure() -> None:
        measured.append("now")

    app = probes.application({}, measure)
    async with probes.served(app, f"127.0.0.1:{port}"):
        status, text = await _get(port, "/metrics")
    assert (status, measured) == (200, ["now"])
    assert "remediator_onset_to_claim_seconds_bucket" in text


async def test_an_address_that_is_taken_is_an_error_at_once() -> None:
    (port,) = free_ports(1)
    app = probes.application({}, nothing)
    async with probes.served(app, f"127.0.0.1:{port}"):
        with pytest.raises(OSError, match="address already in use"):
            async with probes.served(probes.application({}, nothing), f"127.0.0.1:{port}"):
                pass
