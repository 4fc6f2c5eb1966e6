"""A fault's whole way to a person and back: its detector, node-problem-detector, Prometheus with the shipped rules,
Alertmanager and the controller are the real programs. GitHub, the machine and kube-state-metrics are played.
"""

import asyncio
import json
from base64 import b64decode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from deploy.images.programs import NotBuilt
from remediator.core import names
from remediator.kube.wire import errors
from remediator_sim import manifests
from remediator_sim.github import FakeGitHub
from remediator_sim.ports import free_port
from remediator_sim.tasks import TaskExitStack
from tests.cluster.alertmanager import real_alertmanager
from tests.cluster.e2e.stage import Stage
from tests.cluster.e2e.test_path import made_pods
from tests.cluster.prometheus import Missing, RealPrometheus, real_prometheus
from tests.cluster.test_alert_chain import rules
from tests.harness.kinds import SECRETS
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
LONGEST = 180  # seconds that any step may take on a machine with much else to do
NODE, REPO, PERSON = "gpu-17", "org/gpu", "ann"
NODES = [NODE]
TOKEN = "the-token-of-alertmanager"
ROUTES = f"default: {{repository: {REPO}, labels: [gpu], assignees: [{PERSON}]}}\n"
STATUSES = ("true", "false", "unknown")


async def state_metrics(stage: Stage, prometheus: RealPrometheus) -> None:
    """What kube-state-metrics says of the Conditions of nodes, twice a second, until cancelled."""
    while True:
        for condition in (await stage.node(NODE))["status"]["conditions"]:
            for status in STATUSES:
                about = {"node": NODE, "condition": condition["type"], "status": status}
                prometheus.write("kube_node_status_condition", condition["status"].lower() == status, **about)
        await asyncio.sleep(0.5)


def empty_secret() -> dict[str, Any]:
    """As it is shipped for what the controller serves with: the controller may fill it, and make none."""
    (secret,) = (one for one in manifests.documents(("deploy/endpoints.yaml",)) if one["kind"] == "Secret")
    return secret


async def authority(stage: Stage, folder: Path) -> Path:
    """Who signs what the webhook serves with, once the controller has made it."""

    async def made() -> str:
        with suppress(Exception):
            secret = await stage.client.get(SECRETS, names.SERVING_SECRET, namespace=names.SYSTEM_NAMESPACE)
            return str(secret["data"]["ca.crt"])
        return ""

    file = folder / "ca.crt"
    file.write_bytes(b64decode(await until(made, LONGEST)))
    return file


@asynccontextmanager
async def flow(stage: Stage, github: FakeGitHub, folder: Path) -> AsyncIterator[None]:
    """All programs between the Condition and the issue, until the block is left."""
    port = free_port()
    options: Mapping[str, object] = {
        "routes": ROUTES,
        "github-token-file": github.token,
        "webhook-token-file": TOKEN,
    }
    for name in ("alertmanager", "prometheus"):
        (folder / name).mkdir()
    for name, text in options.items():
        (folder / name).write_text(str(text))
    files = [f"--{name}={folder / name}" for name in options]
    where = [f"--listen-webhook=127.0.0.1:{port}", f"--github-url={github.url}", "--github-spacing=0"]
    # Both are started before the controller: until they answer, nothing here serves it.
    with (
        real_alertmanager(folder / "alertmanager") as alertmanager,
        real_prometheus(folder / "prometheus", rules(), alertmanager.url, every="5s") as prometheus,
    ):
        with suppress(errors.AlreadyExists):
            await stage.client.create(SECRETS, empty_secret(), namespace=names.SYSTEM_NAMESPACE)
        await stage.start_controller("--log-json", *files, *where)
        ca = await authority(stage, folder)
        alertmanager.reload(receivers=[receiver(f"https://127.0.0.1:{port}/webhooks/alertmanager", ca)])
        async with TaskExitStack() as ends:
            ends.run(state_metrics(stage, prometheus))
            yield


def receiver(url: str, ca: Path) -> dict[str, Any]:
    """As docs/tickets.md has it."""
    served = {"ca_file": str(ca), "server_name": "remediator-webhook.remediator-system.svc"}
    http = {"authorization": {"credentials": TOKEN}, "tls_config": served}
    return {"name": "remediator", "webhook_configs": [{"url": url, "send_resolved": True, "http_config": http}]}


async def test_a_condition_becomes_an_alert_an_issue_for_its_person_and_a_repair_and_is_closed_when_it_is_over(
    stage: Stage, tmp_path: Path
) -> None:
    machine, stage.lease = stage.machines[NODE], 15.0
    await stage.workloads[NODE].allow(0)
    folder = tmp_path / "flow"
    folder.mkdir()
    try:
        async with FakeGitHub([REPO], [PERSON]) as github, flow(stage, github, folder):
            machine.lose_gpu()
            await until(lambda: stage.condition(NODE, "GpuLost", "True"), LONGEST)
            (issue,) = await until(lambda: github.issues(REPO), LONGEST)
            assert issue.assignees == (PERSON,)
            assert NODE in issue.title
            await until(lambda: "NodeConditionTrue" in github.issues(REPO)[0].body, LONGEST)
            assert (await stage.case(NODE, "Draining"))["status"]["attempts"][0]["template"] == "reboot"
            assert machine.reboots() == []

            await stage.workloads[NODE].allow(len(stage.workloads[NODE].apps))
            case = await until(lambda: stage.over(NODE), LONGEST)
            assert case["status"]["phase"] == "Recovered"
            assert made_pods(stage) == ["collect-diagnostics", "drain", "reboot"]
            assert len(machine.reboots()) == 1
            await until(lambda: not github.issues(REPO)[0].open, LONGEST)
            (closed,) = github.issues(REPO)
            assert (closed.reason, closed.closed_by, closed.assignees) == ("completed", "remediator[bot]", (PERSON,))
            assert [one.method for one in github.requests if one.path.endswith("/issues")].count("POST") == 1
    except (Missing, NotBuilt) as why:
        pytest.skip(str(why))
    audited = [line for line in log(stage) if line["event"] == "audit" and line["resource"] == "nodes"]
    cordons = [
        change["after"] for line in audited for change in line["changes"] if change["field"] == "spec.unschedulable"
    ]
    assert cordons == [True, False]
    assert {(line["by"], line["who"], line["case"]) for line in audited} == {
        ("Policy", "gpu-lost", case["metadata"]["name"])
    }


def log(stage: Stage) -> list[dict[str, Any]]:
    """What the controller has said."""
    lines = (stage.directory / "replica-1.log").read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]
