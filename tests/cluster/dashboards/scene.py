"""Work for a replica and a janitor, and a real Prometheus that scrapes both."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count, cycle
from pathlib import Path
from typing import Any

import aiohttp

from remediator.app import Replica
from remediator.clock import SYSTEM
from remediator.core.breaker import Breaker
from remediator.core.names import DOMAINS
from remediator.janitor.run import Janitor
from remediator.janitor.settings import JanitorSettings
from remediator.settings import Settings
from remediator_sim.github import FakeGitHub
from remediator_sim.ports import free_ports
from tests.cluster.prometheus import RealPrometheus, real_prometheus
from tests.harness.controller import Answer, ControllerHarness, controller_harness, reboot, reboot_in_vain
from tests.harness.kinds import CONFIG_MAPS, NAMESPACES
from tests.harness.kinds import NODES as NODE
from tests.harness.replica import at_work
from tests.harness.scheduler import names_body, pod
from tests.harness.waiting import until

REPOSITORY, TOKEN, POD = "org/gpu-hardware", "webhook", "remediator-0"
STUBBORN = "gpu-3"  # no reboot cures it: a person is called
KEPT = "gpu-4"  # excluded from repairs: its case is held
UNTOLD = "gpu-12"  # nobody can tell whether it is well
NODES = tuple(f"gpu-{number}" for number in range(1, 13))
BREAKS = tuple(node for node in NODES if node not in (STUBBORN, KEPT, UNTOLD))
EACH = 3.0  # seconds between two faults
NVIDIA = {"resource": "nvidia_com_gpu", "unit": "integer"}
# Pods of the made-up exporters: namespace and name → node, GPUs, rounds that it runs, and how busy its GPUs are.
PODS: Mapping[tuple[str, str], tuple[str, int, range, int]] = {
    ("vision", "train-0"): ("gpu-1", 8, range(90), 93),
    ("vision", "train-1"): ("gpu-2", 8, range(4, 90), 91),
    ("speech", "batch-7"): ("gpu-5", 4, range(8, 14), 64),
    ("speech", "notebook"): ("gpu-6", 1, range(90), 0),
}


@asynccontextmanager
async def scene(folder: Path, every: str = "1s") -> AsyncIterator[RealPrometheus]:
    """A Prometheus while all of it works, until the block is left. Raises Missing where there is none."""
    probes, extender, webhook = (f"127.0.0.1:{port}" for port in free_ports(3))
    with real_prometheus(folder, targets=[probes], every=every, pod=POD) as prometheus:
        async with controller_harness() as harness, FakeGitHub([REPOSITORY], ("alice",)) as github:
            settings = _settings(folder, github, listen=probes, listen_extender=extender, listen_webhook=webhook)
            made = Replica(harness.client, settings, SYSTEM)
            janitor = Janitor(harness.client, JanitorSettings(interval=EACH), SYSTEM)
            async with at_work(made.run()):
                await until(lambda: made.ready() and made.leader.is_leader, 180)
                await _furnish(harness)
                asking = (_asks(extender), _posts(webhook), _intrudes(webhook), _comments(github))
                async with at_work(_faults(harness), *asking, _exports(prometheus), janitor.run()):
                    yield prometheus


def _settings(folder: Path, github: FakeGitHub, **listening: str) -> Settings:
    for name, text in {
        "routes.yaml": f"cluster: prod\ndefault: {{repository: {REPOSITORY}, commands: true}}",
        "github": github.token,
        "webhook": TOKEN,
    }.items():
        (folder / name).write_text(text)
    return Settings(
        identity="one",
        breaker=Breaker(starts=100),
        no_tls=True,
        routes=folder / "routes.yaml",
        github_url=github.url,
        github_token_file=folder / "github",
        github_spacing=0.1,
        webhook_token_file=folder / "webhook",
        **listening,
    )


async def _furnish(harness: ControllerHarness) -> None:
    """Nodes with two budgets over them, and a policy that has a ticket for each case."""

    async def by_node(harness: ControllerHarness, node: str) -> None:
        await (reboot_in_vain if node == STUBBORN else reboot)(harness, node)

    harness.answer("reboot", Answer(exit=137, does=by_node))
    await harness.budget("all-gpus", 3)
    verify = {"settle": "1s", "fresh": "1s", "timeout": "5s"}
    await harness.policy(verify=verify, ticket={"when": "Always"})
    for node in NODES:
        await harness.node(node, **({"exclude": "true"} if node == KEPT else {}))
    for number, node in enumerate(NODES):
        await harness.change(NODE, node, metadata={"labels": {DOMAINS[1]: f"rack-{number // 4}"}})
    await harness.client.create(NAMESPACES, {"metadata": {"name": "team"}})
    expired = {"name": "report", "annotations": {"janitor/expires": "2020-01-01"}}
    await harness.client.create(CONFIG_MAPS, {"metadata": expired}, namespace="team")
    for node in (STUBBORN, KEPT):
        await harness.condition(node, "True")
    await harness.condition(UNTOLD, "Unknown")


async def _faults(harness: ControllerHarness) -> None:
    """Another node breaks every few seconds."""
    for node in cycle(BREAKS):
        await harness.condition(node, "True")
        await asyncio.sleep(EACH)


async def _asks(extender: str) -> None:
    """kube-scheduler asks for a Pod, and for one of a gang."""
    gang = pod("worker-0", 8)
    gang["metadata"]["labels"] = {"jobset.sigs.k8s.io/jobset-name": "train"}
    one, of_gang = names_body(list(NODES)), names_body(list(NODES), gang)
    calls = (("filter", one), ("prioritize", one), ("filter", of_gang), ("prioritize", of_gang))
    async with aiohttp.ClientSession() as session:
        for call, body in cycle(calls):
            async with session.post(f"http://{extender}/scheduler/{call}", data=body) as answer:
                answer.raise_for_status()
                await answer.read()
            await asyncio.sleep(EACH / 10)


async def _posts(webhook: str) -> None:
    """Alertmanager posts that an alert fires, and then that it has ended."""
    shown = {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession(headers=shown) as session:
        for status in cycle(("firing", "resolved")):
            body = json.dumps({"version": "4", "status": status, "alerts": [_alert(status)], "truncatedAlerts": 0})
            async with session.post(f"http://{webhook}/webhooks/alertmanager", data=body) as answer:
                answer.raise_for_status()
            await asyncio.sleep(EACH)


async def _intrudes(webhook: str) -> None:
    """Somebody posts without a token, and is refused."""
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.post(f"http://{webhook}/webhooks/alertmanager", data=b"{}") as answer:
                assert answer.status == 401
            await asyncio.sleep(EACH)


async def _comments(github: FakeGitHub) -> None:
    """Whoever an issue is assigned to asks why nothing happens, again and again."""
    issue, *_ = await until(lambda: github.issues(REPOSITORY), 180)
    while True:
        github.person("alice").comment(REPOSITORY, issue.number, "/why")
        await asyncio.sleep(5 * EACH)


def _alert(status: str) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat()
    return {
        "status": status,
        "labels": {"alertname": "GpuHot", "node": "gpu-9", "severity": "warning"},
        "annotations": {"summary": "A GPU of gpu-9 is at 91 °C"},
        "startsAt": now,
        "endsAt": now if status == "resolved" else "0001-01-01T00:00:00Z",
        "fingerprint": "hot-gpu-9",
    }


async def _exports(prometheus: RealPrometheus) -> None:
    """kube-state-metrics and dcgm-exporter are made up: nodes, and Pods that begin and end."""
    for node in NODES:
        for kind in ("capacity", "allocatable"):
            prometheus.write(f"kube_node_status_{kind}", 8, node=node, **NVIDIA)
    prometheus.write("kube_node_spec_unschedulable", 1, node=KEPT)
    for turn in count():
        for (namespace, name), (node, gpus, runs, busy) in PODS.items():
            of_pod, running = {"namespace": namespace, "pod": name}, turn in runs
            prometheus.write("kube_pod_container_resource_requests", gpus, **of_pod, container="a", node=node, **NVIDIA)
            prometheus.write("kube_pod_status_phase", running, **of_pod, phase="Running")
            prometheus.write("DCGM_FI_DEV_GPU_UTIL", busy * running, node=node, UUID=f"GPU-{node}", **of_pod)
        await asyncio.sleep(EACH)
