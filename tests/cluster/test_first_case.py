"""From nothing to the first held case, by the commands of docs/tutorial-cluster.md, on a real API server.

No kubelet runs here: hooks.py plays the Jobs of the chart, and one replica of its Deployment is a process with the
command, the environment and the account of the Deployment. Images are not built, and no Pod needs one.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deploy.images.programs import binary
from remediator.clock import SYSTEM
from remediator.core.names import SYSTEM_NAMESPACE
from remediator.kube.wire import times
from tests.cluster.hooks import Jobs, playing, written_chart
from tests.contract.docs.pages import ROOT, blocks
from tests.harness.waiting import PATIENCE

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
FIVE_MINUTES = 300  # in which a user is to have a first case
PAGE = "docs/tutorial-cluster.md"
NODE = "gpu-17"
GPUS = {"nvidia.com/gpu": "8"}


class Typist:
    """A user in an empty folder, with kubectl, helm and remediator at hand."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        self.folder = folder
        tools = folder / "bin"
        tools.mkdir()
        for name in ("kubectl", "helm"):
            (tools / name).symlink_to(binary(name))
        here = f"{tools}:{Path(sys.executable).parent}"
        self._environment = os.environ | {"PATH": f"{here}:{os.environ['PATH']}", "KUBECONFIG": str(kubeconfig)}

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def types(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=FIVE_MINUTES * PATIENCE,
            check=False,
        )

    def sees(self, command: str) -> str:
        done = self.types(command)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def sees_at_last(self, command: str, words: str) -> str:
        """As a user who asks again until it is so."""
        end = time.monotonic() + FIVE_MINUTES * PATIENCE
        while True:
            done = self.types(command)
            if done.returncode == 0 and re.search(words, done.stdout):
                return done.stdout
            assert time.monotonic() < end, f"{command}: {done.stdout}{done.stderr}"
            time.sleep(1)


def written(language: str, page: str = PAGE) -> list[list[str]]:
    """The blocks of a page in a language, each as lines."""
    found = blocks(page, (ROOT / page).read_text())
    return [block.text.splitlines() for block in found if block.language == language]


@contextmanager
def replica(jobs: Jobs, name: str) -> Iterator[None]:
    """The only container of the Deployment as its kubelet would start it, on ports of loopback."""
    found = jobs.kubectl("get", "deployment", "remediator", "-n", SYSTEM_NAMESPACE, "-o", "json")
    spec = json.loads(found)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    words = (*container["command"], *container.get("args", ()))
    command = [re.sub(r"^0\.0\.0\.0:\d+$", "127.0.0.1:0", word) for word in words]
    kubeconfig = jobs.kubeconfig_of(spec["serviceAccountName"])
    started = [sys.executable, "-m", *command, "--kubeconfig", str(kubeconfig)]
    with (jobs.folder / "replica.log").open("w") as log:
        program = subprocess.Popen(started, env=os.environ | given(container, name), stdout=log, stderr=log)
        try:
            yield
        finally:
            program.terminate()
            assert program.wait(30) == 0


def given(container: dict[str, Any], name: str) -> dict[str, str]:
    """The environment of a container, with what the kubelet fills in."""
    fields = {"metadata.name": name, "metadata.namespace": SYSTEM_NAMESPACE}
    return {
        each["name"]: each["value"] if "value" in each else fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
        for each in container["env"]
    }


def join(jobs: Jobs, name: str, **more: dict[str, str]) -> None:
    """A kubelet registers its node and reports it ready."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": more.get("labels", {})}}
    jobs.kubectl("create", "-f", "-", stdin=json.dumps(node))
    report(jobs, name, condition("Ready", "KubeletReady"), capacity=more.get("capacity", {}))


def report(jobs: Jobs, node: str, reported: dict[str, str], **status: Any) -> None:
    """One condition of a node, as its kubelet or node-problem-detector writes it."""
    words = ("--subresource=status", "-p", json.dumps({"status": {"conditions": [reported], **status}}))
    jobs.kubectl("patch", "node", node, *words)


def condition(kind: str, reason: str) -> dict[str, str]:
    now = times.stamp(SYSTEM.now())
    spoken = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    return {"type": kind, "status": "True", "reason": reason, "message": reason, **spoken}


def installs(page: str) -> list[str]:
    """The lines of a page that install by Helm."""
    return [line for block in written("sh", page) for line in block if re.match("make chart|helm install", line)]


def test_the_readme_installs_by_the_same_commands_as_the_tutorial() -> None:
    assert installs("README.md") == installs(PAGE)
    assert [line.split()[0] for line in installs(PAGE)] == ["make", "helm"]


def test_the_commands_of_the_tutorial_lead_from_nothing_to_a_first_held_case_within_five_minutes(
    tmp_path: Path,
) -> None:
    """The images and the chart are made before."""
    (values,), (images, install, look, case, decide) = written("yaml"), written("sh")
    assert [line.split()[:2] for line in (*images, *install)] == [
        *(["make", "images"], ["make", "chart"], ["helm", "install"], ["helm", "test"])
    ]
    with playing(tmp_path) as jobs:
        user = Typist(tmp_path, jobs.plane.kubeconfig)
        user.write("values.yaml", "\n".join(values))
        written_chart(tmp_path / "build/chart")
        began = time.monotonic()
        user.sees(install[1])
        join(jobs, "system-1")
        join(jobs, NODE, labels={"nvidia.com/gpu.present": "true"}, capacity=GPUS)
        with replica(jobs, "remediator-1"):
            user.sees_at_last(install[2], "Succeeded")
            ready = time.monotonic() - began
            assert "DryRun" in "".join(map(user.sees, look))
            report(jobs, NODE, condition("GpuLost", "GpusMissing"))
            assert NODE in user.sees_at_last(case[0], rf"{NODE}.*Held")
            told = user.sees_at_last(case[1].replace("NODE", NODE), "held: DryRun")
            assert "reboot" in told
            held = time.monotonic() - began
            assert "patched" in user.sees(decide[0])
    assert held < FIVE_MINUTES * PATIENCE
    print(f"a replica leads {ready:.0f} s after helm install was typed, the first case is held after {held:.0f} s")
