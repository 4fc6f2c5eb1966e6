"""What a replica serves at /metrics while it repairs: read over HTTP, as Prometheus does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import aiohttp
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from remediator.app import Replica
from remediator.clock import SYSTEM
from remediator.core.breaker import Breaker
from remediator.metrics import REGISTRY
from remediator.settings import Settings
from remediator_sim.ports import free_ports
from tests.harness.controller import RUNS, ControllerHarness, controller_harness, until
from tests.harness.kinds import BUDGETS, CASES, CRDS
from tests.harness.replica import at_work

pytestmark = pytest.mark.sampled("metrics")

Sample = tuple[str, tuple[tuple[str, str], ...]]


@pytest.fixture
async def harness() -> AsyncIterator[ControllerHarness]:
    async with controller_harness() as made:
        yield made


class Scrape:
    """All samples of one replica, by name and labels; what others in this process have counted before is taken off."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/metrics"
        self._before = samples(generate_latest(REGISTRY).decode())

    async def value(self, name: str, **labels: str) -> float:
        """A gauge as it is now."""
        return (await self._read()).get((name, tuple(sorted(labels.items()))), 0.0)

    async def grown(self, name: str, **labels: str) -> float:
        """How much a counter has grown."""
        return await self.value(name, **labels) - self._before.get((name, tuple(sorted(labels.items()))), 0.0)

    async def exemplars(self, name: str) -> set[str]:
        """The metrics that name this case beside a bucket."""
        asked = {"Accept": "application/openmetrics-text;version=1.0.0"}
        async with aiohttp.ClientSession() as session, session.get(self._url, headers=asked) as answer:
            lines = (await answer.text()).splitlines()
        return {line.partition("_bucket{")[0] for line in lines if f' # {{case="{name}"}} ' in line}

    async def _read(self) -> dict[Sample, float]:
        async with aiohttp.ClientSession() as session, session.get(self._url) as answer:
            return samples(await answer.text())


def samples(text: str) -> dict[Sample, float]:
    """What a page of metrics says."""
    found = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in found}


@asynccontextmanager
async def scraped(harness: ControllerHarness, breaker: Breaker | None = None) -> AsyncIterator[Scrape]:
    """A replica at work."""
    (port,) = free_ports(1)
    settings = Settings(identity="one", listen=f"127.0.0.1:{port}", breaker=breaker or Breaker(starts=100))
    scrape, made = Scrape(port), Replica(harness.client, settings, SYSTEM)
    async with at_work(made.run()):
        await until(lambda: made.ready() and made.leader.is_leader)
        yield scrape


async def test_a_node_that_is_repaired_twice_shows_its_phases_its_recovery_and_the_time_between_its_faults(
    harness: ControllerHarness,
) -> None:
    async with scraped(harness) as scrape:
        await harness.policy()
        await harness.node("gpu-1", "True")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        for phase in ("New", "Draining", "Operating", "Verifying"):
            assert await scrape.grown("remediator_case_phase_seconds_count", phase=phase) >= 1, phase
        for drain in ("included", "excluded"):
            assert await scrape.grown("remediator_recovery_seconds_count", drain=drain) == 1
        drained = await scrape.grown("remediator_recovery_seconds_sum", drain="included")
        assert drained >= await scrape.grown("remediator_recovery_seconds_sum", drain="excluded")
        assert await scrape.exemplars(harness.cases("gpu-1")[0]["metadata"]["name"]) == {
            *("remediator_onset_to_claim_seconds", "remediator_case_phase_seconds", "remediator_recovery_seconds"),
        }
        assert await scrape.grown("remediator_between_faults_seconds_count") == 0
        await asyncio.sleep(1.1)  # a fault of the same second is the same fault
        await harness.condition("gpu-1", "True")
        await until(lambda: len(harness.cases("gpu-1")) == 2)
        assert await scrape.grown("remediator_between_faults_seconds_count") == 1
        assert await scrape.grown("remediator_requeues_total", queue="controller", reason="later") > 0
        assert await scrape.value("remediator_leader") == 1
        assert await scrape.grown("remediator_loop_lag_seconds_count") > 0


async def test_a_full_budget_and_an_open_breaker_are_seen_and_for_how_long_they_hold(
    harness: ControllerHarness,
) -> None:
    async with scraped(harness, Breaker(1, timedelta(minutes=10))) as scrape:
        await harness.policy()
        await harness.budget("all", 1)
        harness.answer("reboot", RUNS)
        await harness.node("gpu-1", "True")
        await until(lambda: harness.claims() == ["gpu-1"])
        await harness.node("gpu-2", "True")
        await until(lambda: harness.reasons("gpu-2") == ["BreakerOpen"])
        counts = [await scrape.value("remediator_budget_nodes", budget="all", count=count) for count in COUNTS]
        assert dict(zip(COUNTS, counts, strict=True)) == {
            "total": 2,
            "most": 1,
            "unavailable": 1,
            "claimed": 1,
        }
        assert await scrape.value("remediator_fleet_breaker_open") == 1
        assert await scrape.value("remediator_fleet_breaker_starts") == 1
        await asyncio.sleep(1.1)
        assert await scrape.value("remediator_oldest_hold_seconds", reason="BreakerOpen") >= 1
        assert await scrape.value("remediator_held_cases", reason="BreakerOpen") == 1
        await harness.client.delete(BUDGETS, "all")
        await harness.budget("other", 1)

        async def renamed() -> bool:
            gone = await scrape.value("remediator_budget_nodes", budget="all", count="total")
            return gone == 0 and await scrape.value("remediator_budget_nodes", budget="other", count="total") == 2

        await until(renamed)


COUNTS = ("total", "most", "unavailable", "claimed")


async def test_a_write_that_is_refused_is_counted_by_the_kind_of_refusal(harness: ControllerHarness) -> None:
    async with scraped(harness) as scrape:
        harness.server.faults.refuse(403, when=lambda asked: asked.method == "POST" and asked.path == CASES.path())
        await harness.policy()
        await harness.node("gpu-1", "True")

        async def refused() -> bool:
            return await scrape.grown("remediator_gave_up_total", effect="Create", reason="Forbidden") == 1

        await until(refused)


async def test_an_object_that_cannot_be_read_is_counted_until_it_can(harness: ControllerHarness) -> None:
    """A phase that only a newer version knows: its schema has it, and we do not."""
    async with scraped(harness) as scrape:
        await harness.policy()
        await harness.node("gpu-1", "True")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        name = harness.cases("gpu-1")[0]["metadata"]["name"]
        definition = f"{CASES.plural}.{CASES.group}"
        spec = (await harness.client.get(CRDS, definition))["spec"]
        del spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["phase"]["enum"]
        await harness.client.patch(CRDS, definition, {"spec": spec})
        assert await scrape.value("remediator_unreadable_objects", kind="cases") == 0
        for phase, count in (("Pondering", 1), ("Recovered", 0)):
            await harness.client.patch(CASES, name, {"status": {"phase": phase}}, subresource="status")

            async def counted(count: int = count) -> bool:
                return await scrape.value("remediator_unreadable_objects", kind="cases") == count

            await until(counted)


async def test_gaining_and_losing_the_lease_is_counted(harness: ControllerHarness) -> None:
    async with scraped(harness) as scrape:
        assert await scrape.grown("remediator_leader_changes_total", change="gained") == 1
        lost = await scrape.value("remediator_leader_changes_total", change="lost")
    async with scraped(harness) as scrape:
        assert await scrape.value("remediator_leader_changes_total", change="lost") == lost + 1
