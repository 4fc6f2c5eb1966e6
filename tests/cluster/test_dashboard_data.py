"""Each query of a dashboard, and each metric of an alert, has data in a real Prometheus that scrapes a replica."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import REGISTRY

from remediator.app import Replica
from remediator.clock import SYSTEM
from remediator.core.breaker import Breaker
from remediator.settings import Settings
from remediator_sim.ports import free_port
from tests.cluster.prometheus import Missing, RealPrometheus, real_prometheus
from tests.contract import alerts
from tests.contract.monitoring import SELECTOR, labels
from tests.contract.test_dashboards import QUERIES
from tests.harness.controller import ControllerHarness, controller_harness, until
from tests.harness.replica import at_work

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
LONGEST = 180  # seconds that any step may take on a machine with much else to do
RECOVERED_AGAIN = "sum(increase(remediator_recovery_seconds_count[1h])) > 0"
NVIDIA = {"resource": "nvidia_com_gpu", "unit": "integer"}
TRAIN, BATCH = {"namespace": "team", "pod": "train-0"}, {"namespace": "team", "pod": "batch-0"}
# What programs say that run in no test here, as each of them names it; the values are not judged.
PLAYED: Mapping[str, tuple[tuple[str, float, Mapping[str, str]], ...]] = {
    "kube-state-metrics": (
        *(
            (f"kube_node_status_{kind}", 8, {"node": node, **NVIDIA})
            for kind in ("capacity", "allocatable")
            for node in ("gpu-1", "gpu-2", "gpu-3")
        ),
        ("kube_node_spec_unschedulable", 1, {"node": "gpu-3"}),
        ("kube_pod_container_resource_requests", 4, {**TRAIN, "container": "a", "node": "gpu-1", **NVIDIA}),
        ("kube_pod_container_resource_requests", 8, {**BATCH, "container": "a", "node": "gpu-2", **NVIDIA}),
        ("kube_pod_status_phase", 1, {**TRAIN, "phase": "Running"}),
        ("kube_pod_status_phase", 0, {**BATCH, "phase": "Running"}),
        ("kube_pod_status_phase", 1, {**BATCH, "phase": "Succeeded"}),
    ),
    "dcgm-exporter": (("DCGM_FI_DEV_GPU_UTIL", 0, {"node": "gpu-1", "UUID": "GPU-1", **TRAIN}),),
}


OF_A_BUSY_MACHINE = {"remediator_refused_calls_total"}  # a caller that is slow there is refused
# What a replica says only once somebody has called it, or something went wrong; each is played, too.
ABSENT: Mapping[str, str] = {
    "remediator_extender_answers_total": "no kube-scheduler asks",
    "remediator_extender_seconds_bucket": "no kube-scheduler asks",
    "remediator_extender_refused_nodes_total": "no kube-scheduler asks",
    "remediator_extender_gang_answers_total": "no kube-scheduler asks",
    "remediator_extender_only_scores": "health refuses nodes",
    "remediator_refused_calls_total": "every call is taken",
    "remediator_alert_deliveries_total": "no Alertmanager posts",
    "remediator_alerts_received_total": "no Alertmanager posts",
    "remediator_alertmanager_lists_total": "no Alertmanager is named",
    "remediator_prometheus_queries_total": "no policy asks Prometheus",
    "remediator_tickets": "there are no routes",
    "remediator_issue_calls_total": "there are no routes",
    "remediator_comment_commands_total": "there are no routes",
    "remediator_gave_up_total": "the API server refuses nothing",
    "remediator_contained_failures_total": "nothing fails",
    "remediator_unknown_nodes": "the Conditions of all nodes are known",
    "remediator_budget_breaker_open": "no budget has a breaker",
    "remediator_definition_missing_fields": "the definitions have every field",
    "remediator_criterion_muted": "no policy asks for what is new",
    "remediator_janitor_idle_gpus": "the janitor is a process of its own",
    "remediator_janitor_objects_total": "the janitor is a process of its own",
}


@pytest.fixture(autouse=True)
def metrics_of_nobody() -> None:
    """What earlier tests of the process have counted is gone: metrics belong to the process."""
    for collector in {*REGISTRY._collector_to_names}:
        if getattr(collector, "_labelnames", ()):
            collector.clear()


@asynccontextmanager
async def at_rest(folder: Path) -> AsyncIterator[RealPrometheus]:
    """A Prometheus that scrapes a replica which has repaired one node twice, and the exporters that are played."""
    # The kernel's choice for the extender: a kube-scheduler of another test may still ask at one of our ports.
    listening = {"listen": f"127.0.0.1:{free_port()}", "listen_extender": "127.0.0.1:0"}
    with real_prometheus(folder, targets=[listening["listen"]], every="2s") as prometheus:
        for name, value, labels in (series for played in PLAYED.values() for series in played):
            prometheus.write(name, value, **labels)
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
    """A sample of each that is absent, as counters grow."""
    for metric in ABSENT:
        given = {label: "+Inf" if label == "le" else "played" for label in labels()[metric]}
        prometheus.write(metric, value, **given)


async def test_each_query_and_each_alert_has_data_or_a_reason_why_a_replica_at_rest_has_none(tmp_path: Path) -> None:
    asked = set().union(*(metrics(row["expr"]) for row in alerts.rows().values()))
    queries = [expr for *_, expr in QUERIES]
    try:
        async with at_rest(tmp_path) as prometheus:
            await until(
                lambda: all_have(prometheus, ["sum(increase(remediator_recovery_seconds_count[1h])) > 0"]), LONGEST
            )
            found = {expr: metrics(expr) for expr in await empty(prometheus, queries)}
            unknown = await empty(prometheus, asked)
            play(prometheus, 1)
            await until(lambda: all_have(prometheus, ABSENT), LONGEST)
            play(prometheus, 2)
            await until(lambda: all_have(prometheus, queries), LONGEST)
    except Missing as why:
        pytest.skip(str(why))
    assert {expr: asks for expr, asks in found.items() if not asks & ABSENT.keys()} == {}
    assert unknown <= ABSENT.keys()
    needless = ABSENT.keys() - set().union(unknown, *found.values())
    assert needless <= OF_A_BUSY_MACHINE, "what is there needs no reason"


async def all_have(prometheus: RealPrometheus, queries: Iterable[str]) -> bool:
    """Whether each is answered with data."""
    return not await empty(prometheus, queries)
