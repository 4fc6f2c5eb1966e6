"""What commands print, for docs/explain.md and docs/commands.md: the controller plays a story, in which they
are run.

`python -m tests.contract.docs.explained` writes the outputs of the pages anew.
"""

import asyncio
import re
import sys
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from typer.testing import CliRunner

from remediator.cli.every import app
from remediator.core.breaker import Breaker
from remediator.kube.wire.transport import STRATEGIC_PATCH
from tests.contract.docs.output import masked
from tests.contract.docs.pages import ROOT
from tests.harness.controller import RUNS, Answer, ControllerHarness, controller_harness, now, running, stamp, until
from tests.harness.kinds import NODES, PODS

PAGE, COMMANDS = ROOT / "docs" / "explain.md", ROOT / "docs" / "commands.md"
NODE_OF = {"escalated": "gpu-17", "held": "gpu-23", "healthy": "gpu-2"}
ESCALATED, HELD, HEALTHY, BUSY = *NODE_OF.values(), "gpu-5"
LOST = "0000:3b:00.0 (GPU-9f3c01ab-77aa-1234-0c55-5d1e0c0e6f10) is lost"
NOT_DOWN = "the node was asked to reboot and still runs after 780 s; the reboot may still come"
GPUS = {"nvidia.com/gpu": "8"}
OF_FLEET = {"status": ("status",), "history": ("history", ESCALATED)}
ORDERS = {  # in this order, after all that only look
    "hold": ("hold", ESCALATED, "--for", "2h", "--reason", "the PSU is changed"),
    "cancel": ("cancel", ESCALATED),
    "take-out": ("take-out", HEALTHY, "--for", "3d", "--reason", "OPS-17: new PSU", "--yes", "--no-follow"),
    "reboot": ("reboot", HEALTHY, "--yes", "--no-follow"),
}
LINT = ("my-policy.yaml", "--template", "reset-gpu", "--template", "reboot")


async def outputs(page: str) -> dict[str, str]:
    """What each command of both pages prints, by the name of its place; `page` is the one with the files of lint."""
    return await explained() | {f"lint {name}": await linted(shown(page, name)) for name in ("good", "bad")}


async def explained() -> dict[str, str]:
    """gpu-17 was rebooted twice in vain, gpu-5 is being rebooted, gpu-23 waits for it: what explain prints."""
    async with controller_harness() as harness:
        await harness.budget("training", 1)
        await harness.policy()
        for node in (ESCALATED, BUSY, HELD, HEALTHY):
            await _node(harness, node)
        async with running(harness, breaker=Breaker()):
            await _story(harness)
        await _job(harness, HEALTHY)
        # The controller is gone, or the reboot of gpu-5 would time out while a busy machine starts the commands.
        async with harness.server.serve() as endpoint:
            words = ("--kubeconfig", str(endpoint.kubeconfig))
            asked = {name: ("explain", node) for name, node in NODE_OF.items()} | OF_FLEET | ORDERS
            return {name: await asyncio.to_thread(told, *command, *words) for name, command in asked.items()}


def told(*words: str) -> str:
    """All that a command prints which asks this process: it runs here, in a thread, without a process of its own."""
    done = CliRunner().invoke(app, words, env={"COLUMNS": "1000", "TERM": "dumb"})
    return done.output.strip("\n")


async def _story(harness: ControllerHarness) -> None:
    harness.answer("reboot", Answer(exit=1, message=NOT_DOWN))
    await _lose_gpu(harness, ESCALATED)
    await until(lambda: harness.phase(ESCALATED) == "Escalated" and not harness.pods())
    harness.answer("reboot", RUNS)
    await _lose_gpu(harness, BUSY)
    await until(lambda: harness.phase(BUSY) == "Operating" and harness.pods("reboot"))
    await _lose_gpu(harness, HELD)
    await until(lambda: harness.reasons(HELD) == ["BudgetSpent"])
    await harness.quiet()


async def _node(harness: ControllerHarness, name: str) -> None:
    await harness.node(name)
    status = {"status": {"capacity": GPUS, "allocatable": GPUS}}
    await harness.client.patch(NODES, name, status, subresource="status", content_type=STRATEGIC_PATCH)


async def _job(harness: ControllerHarness, node: str) -> None:
    """A job has had all GPUs of the node for nearly three hours."""
    meta = {"name": "llm-0", "namespace": "default", "labels": {"jobset.sigs.k8s.io/jobset-name": "llm"}}
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "x", "resources": {"limits": GPUS}}]}
    await harness.client.create(PODS, {"metadata": meta, "spec": spec}, namespace="default")
    status = {"status": {"phase": "Running", "startTime": stamp(now() - timedelta(hours=2, minutes=55))}}
    await harness.client.patch(PODS, "llm-0", status, namespace="default", subresource="status")


async def _lose_gpu(harness: ControllerHarness, node: str) -> None:
    at = {"lastTransitionTime": stamp(now()), "lastHeartbeatTime": stamp(now())}
    lost = {"type": "GpuLost", "status": "True", "reason": "GpuIsLost", "message": LOST}
    status = {"status": {"conditions": [lost | at]}}
    await harness.client.patch(NODES, node, status, subresource="status", content_type=STRATEGIC_PATCH)


async def linted(text: str) -> str:
    """What lint prints of a file with this text."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / LINT[0]).write_text(text)
        return await printed("lint", *LINT, folder=folder)


async def printed(*words: str, folder: str = ".") -> str:
    """All that `remediator` with these words prints, on either stream."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "remediator", *words),
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "COLUMNS": "1000", "TERM": "dumb"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    return (await process.communicate())[0].decode().strip("\n")


def _place(name: str) -> re.Pattern[str]:
    """The block right below the mark of this name, as three groups: all before its text, its text, its end."""
    return re.compile(rf"(<!-- (?:printed|file): {name} -->\n```\w*\n)(.*?)(\n```$)", re.DOTALL | re.MULTILINE)


def shown(page: str, name: str) -> str:
    """The text of the block with this mark. ValueError: there is none."""
    place = _place(name).search(page)
    if place is None:
        raise ValueError(f"the page has no block below <!-- printed: {name} -->")
    return place[2]


def of_page(page: str, texts: Mapping[str, str]) -> dict[str, str]:
    """Those that have a place in this page."""
    return {name: text for name, text in texts.items() if _place(name).search(page)}


def changed(page: str, texts: Mapping[str, str]) -> dict[str, str]:
    """Those of `texts` that their blocks do not show, by name; times and hashes do not count."""
    return {name: text for name, text in texts.items() if _constant(shown(page, name)) != _constant(text)}


def _constant(text: str) -> list[str]:
    return [masked(line) for line in text.splitlines()]


def anew(page: str, texts: Mapping[str, str]) -> str:
    """The page with the outputs that have changed."""
    for name, text in changed(page, texts).items():
        page = _place(name).sub(lambda place, text=text: f"{place[1]}{text}{place[3]}", page)
    return page


if __name__ == "__main__":
    printed_now = asyncio.run(outputs(PAGE.read_text()))
    for path in (PAGE, COMMANDS):
        text = path.read_text()
        path.write_text(anew(text, of_page(text, printed_now)))
