"""Each query of a dashboard has data in a real Prometheus that scrapes a replica and a janitor at work.

Each metric of an alert has some of a replica at rest, or a reason why there is none.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from multiprocessing import get_context
from pathlib import Path

import aiohttp
import pytest

from remediator.app import Replica
from remediator.clock import SYSTEM
from remediator.core.breaker import Breaker
from remediator.settings import Settings
from remediator_sim.ports import free_port
from tests.cluster.dashboards.scene import scene
from tests.cluster.prometheus import Missing, RealPrometheus, real_prometheus
from tests.contract import alerts
from tests.contract.monitoring import SELECTOR, labels
from tests.contract.test_dashboards import QUERIES
from tests.harness.controller import ControllerHarness, controller_harness, until
from tests.harness.replica import at_work

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
LONGEST = 180  # seconds that any step may take on a machine with much else to do
# What even a replica and a janitor at work do not say, for a while; it is played.
RARE: Mapping[str, str] = {
    "remediator_gave_up_total": "the API server refuses nothing",
    "remediator_extender_only_scores": "health refuses few nodes",
    "remediator_janitor_idle_gpus": "a Pod is idle after hours of samples",
}
OF_A_BUSY_MACHINE = {"remediator_refused_calls_total"}  # a caller that is slow there is refused
# What a replica says only once somebody has called it, or something went wrong.
ABSENT: Mapping[str, str] = {
    "remediator_extender_answers_total": "no kube-scheduler asks",
    "remediator_extender_seconds_bucket": "no kube-scheduler asks",
    "remediator_extender_only_scores": "health refuses nodes",
    "remediator_refused_calls_total": "every call is taken",
    "remediator_alert_deliveries_total": "no Alertmanager posts",
    "remediator_alertmanager_lists_total": "no Alertmanager is named",
    "remediator_prometheus_queries_total": "no policy asks Prometheus",
    "remediator_gave_up_total": "the API server refuses nothing",
    "remediator_contained_failures_total": "nothing fails",
    "remediator_unknown_nodes": "the Conditions of all nodes are known",
    "remediator_budget_breaker_open": "no budget has a breaker",
    "remediator_definition_missing_fields": "the definitions have every field",
    "remediator_criterion_muted": "no policy asks for what is new",
}


@asynccontextmanager
async def at_rest(folder: Path) -> AsyncIterator[RealPrometheus]:
    """A Prometheus that scrapes a replica which has repaired one node twice."""
    # The kernel's choice for the extender: a kube-scheduler of another test may still ask at one of our ports.
    listening = {"listen": f"127.0.0.1:{free_port()}", "listen_extender": "127.0.0.1:0"}
    with real_prometheus(folder, targets=[listening["listen"]], every="2s") as prometheus:
        async with controller_harness() as harness:
            made = Replica(harness.client, Settings(identity="one", breaker=Breaker(starts=100), **listening), SYSTEM)
            async with at_work(made.run()):
                await until(lambda: made.ready() and made.leader.is_leader, LONGEST)
                await repaired(harness, prometheus)
                yield prometheus


async def repaired(harness: ControllerHarness, prometheus: RealPrometheus) -> None:
    """A node is repaired twice, and another one is held. Both repairs are seen: what is seen once has not grown."""
    await harness.policy()
    await harness.node("gpu-2", "True", exclude="true")
    await until(lambda: harness.reasons("gpu-2") == ["OptedOut"], LONGEST)
    await harness.node("gpu-1", "True")
    await until(lambda: harness.ended("gpu-1", "Recovered"), LONGEST)
    await until(lambda: all_have(prometheus, ["remediator_recovery_seconds_count >= 1"]), LONGEST)
    await harness.condition("gpu-1", "True")
    await until(lambda: len(harness.cases("gpu-1")) == 2 and harness.ended("gpu-1", "Recovered"), LONGEST)


async def empty(prometheus: RealPrometheus, queries: Iterable[str]) -> set[str]:
    """Those that are answered without any data."""
    found = set()
    async with aiohttp.ClientSession() as session:
        for query in queries:
            async with session.get(f"{prometheus.url}/api/v1/query", params={"query": query}) as answer:
                told = await answer.json()
            assert told["status"] == "success", (query, told)
            if not told["data"]["result"]:
                found.add(query)
    return found


def metrics(expr: str) -> set[str]:
    """Those that an expression asks for."""
    return {metric for metric, _ in SELECTOR.findall(expr)}


def play(prometheus: RealPrometheus, value: int) -> None:
    """A sample of each that is rare, as counters grow."""
    for metric in RARE:
        given = {label: "+Inf" if label == "le" else "played" for label in labels()[metric]}
        prometheus.write(metric, value, **given)


ASKED = set[str]().union(*(metrics(row["expr"]) for row in alerts.rows().values()))


async def without_data(folder: Path) -> set[str]:
    """Metrics of alerts of which a replica at rest says nothing."""
    async with at_rest(folder) as prometheus:
        await until(lambda: all_have(prometheus, ASKED - ABSENT.keys()), LONGEST)
        return await empty(prometheus, ASKED)


def of_alerts(folder: Path) -> set[str]:
    """The same, where nothing else runs."""
    return asyncio.run(without_data(folder))


def test_each_metric_of_an_alert_has_data_or_a_reason_why_a_replica_at_rest_has_none(tmp_path: Path) -> None:
    """In a process of its own: metrics belong to the process, and other tests have theirs."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        try:
            unknown = process.submit(of_alerts, tmp_path).result()
        except Missing as why:
            pytest.skip(str(why))
    assert ABSENT.keys() - unknown <= OF_A_BUSY_MACHINE, "what is there needs no reason"


async def test_each_query_has_data_while_a_replica_and_a_janitor_work(tmp_path: Path) -> None:
    """kube-state-metrics and dcgm-exporter are made up; their metrics have the names that they have."""
    queries = [expr for *_, expr in QUERIES]
    rare = {expr for expr in queries if metrics(expr) & RARE.keys()}
    try:
        async with scene(tmp_path) as prometheus:
            await until(lambda: all_have(prometheus, set(queries) - rare), LONGEST)
            play(prometheus, 1)
            await until(lambda: all_have(prometheus, RARE), LONGEST)
            play(prometheus, 2)
            await until(lambda: all_have(prometheus, queries), LONGEST)
    except Missing as why:
        pytest.skip(str(why))


async def all_have(prometheus: RealPrometheus, queries: Iterable[str]) -> bool:
    """Whether each is answered with data."""
    return not await empty(prometheus, queries)
