"""deploy/log-monitors on a real node-problem-detector: a line of a log becomes a Condition, its policy opens a case.

The kernel's log cannot be written to by a test, so what is shipped for it reads a file here, in the form of syslog.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from deploy.images.programs import binary
from remediator.core import names
from remediator.kube.wire.times import parse
from remediator_sim.accounts import node_token
from remediator_sim.kubeconfig import write_kubeconfig
from remediator_sim.kubelet.program import RunningProgram
from tests.cluster.e2e.stage import ROOT, Stage
from tests.harness import yaml_files
from tests.harness.kinds import POLICIES
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]
NODE = "gpu-17"
NODES = [NODE]
FOLDER = ROOT / "deploy/log-monitors"
FATAL = "{1}[Hardware Error]: event severity: fatal"
START = "systemd[1]: Started kubelet.service - kubelet: The Kubernetes Node Agent."
SYSLOG = json.loads((FOLDER / "filelog/kubelet-starts.json").read_text())


class LogFile:
    """A log of the node as rsyslog writes it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "syslog"
        self.path.touch()

    def write(self, *lines: str) -> None:
        with self.path.open("a") as file:
            for line in lines:
                file.write(f"{datetime.now(UTC).isoformat()} {NODE} {line}\n")

    def monitor(self, shipped: str) -> Path:
        """The shipped file, which reads this log."""
        body = json.loads((FOLDER / shipped).read_text())
        own = {"plugin": "filelog", "pluginConfig": SYSLOG["pluginConfig"], "logPath": str(self.path)}
        path = self.path.parent / Path(shipped).name
        path.write_text(json.dumps(body | own))
        return path


@asynccontextmanager
async def reading(stage: Stage, log: LogFile, shipped: str) -> AsyncIterator[RunningProgram]:
    """A real node-problem-detector that has only this monitor, with the rights that ours has on this node."""
    granted = await node_token(stage.client, "node-problem-detector", names.SYSTEM_NAMESPACE, NODE)
    assert stage.server.ca_file
    kubeconfig = write_kubeconfig(log.path.parent, "log-monitor", stage.server.url, granted, stage.server.ca_file)
    command = [
        binary("node-problem-detector"),
        f"--hostname-override={NODE}",
        f"--apiserver-override={stage.server.url}?inClusterConfig=false&auth={kubeconfig}",
        f"--config.system-log-monitor={log.monitor(shipped)}",
        "--prometheus-port=0",
        "--port=0",
        "--k8s-exporter-heartbeat-period=1s",
    ]
    program = await RunningProgram.start(command, log.path.parent / "log-monitor.log", {"NODE_NAME": NODE})
    try:
        yield program
    finally:
        await program.kill()


@asynccontextmanager
async def policies(stage: Stage, folder: str) -> AsyncIterator[None]:
    """The policies of a folder, as they are shipped."""
    shipped = yaml_files.read_all(FOLDER / folder / "policies.yaml")
    for policy in shipped:
        await stage.client.create(POLICIES, policy)
    try:
        yield
    finally:
        for policy in shipped:
            await stage.client.delete(POLICIES, policy["metadata"]["name"])


async def beats(stage: Stage, kind: str, status: str, after: datetime) -> dict[str, Any] | None:
    """The Condition, once it has this status in a heartbeat of after a moment."""
    shown = await stage.condition(NODE, kind, status)
    return shown if shown and parse(shown["lastHeartbeatTime"]) > after else None


async def test_what_the_kernel_says_once_stands_over_a_restart_of_node_problem_detector_until_its_log_is_gone(
    stage: Stage, tmp_path: Path
) -> None:
    kind, shipped, log = "CperHardwareErrorFatal", "kernel/kernel-conditions.json", LogFile(tmp_path)
    async with policies(stage, "kernel"):
        await stage.start_controller()
        async with reading(stage, log, shipped):
            await until(lambda: stage.condition(NODE, kind, "False"), 60)
            log.write("EXT4-fs (sda1): mounted filesystem", FATAL)
            shown = await until(lambda: stage.condition(NODE, kind, "True"), 60)
            assert (shown["reason"], shown["message"]) == (kind, FATAL)
            case = await until(lambda: stage.case(NODE, "Held"), 60)
            assert case["spec"]["policyName"] == "log-hardware-error-fatal"
            assert [block["reason"] for block in case["status"]["blockedBy"]] == ["DryRun", "TicketOnly"]
        async with reading(stage, log, shipped):
            again = datetime.now(UTC)
            await until(lambda: beats(stage, kind, "True", again), 60)
            assert (await stage.case(NODE, "Held")) is not None
        log.path.write_text("")
        async with reading(stage, log, shipped):
            await until(lambda: stage.condition(NODE, kind, "False"), 60)
            await until(lambda: stage.over(NODE), 90)


async def test_five_starts_of_the_kubelet_in_20_minutes_open_a_case(stage: Stage, tmp_path: Path) -> None:
    log = LogFile(tmp_path)
    log.write(*[START] * 5)  # of before: they are told once only
    async with policies(stage, "starts"), reading(stage, log, "filelog/kubelet-starts.json") as program:
        await stage.start_controller()
        await until(lambda: "Start watching filelog" in program.written(), 60)
        log.write(*[START] * 4)
        log.write("systemd[1]: Stopping kubelet.service - kubelet: The Kubernetes Node Agent...", START)
        await until(lambda: stage.condition(NODE, "Event/KubeletStart/5-in-1200s", "True"), 90)
        case = await until(lambda: stage.case(NODE, "Held"), 60)
        assert case["spec"]["policyName"] == "log-kubelet-restarts"
