"""The simulated kubelets as a process of their own."""

import asyncio
import sys
from pathlib import Path

import pytest

from remediator_sim.plain import NODES
from tests.harness.waiting import gone, until

SLEEP = "import os, pathlib, time\npathlib.Path(os.environ['PROOF']).write_text(str(os.getpid()))\ntime.sleep(300)\n"
ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("end", ["terminate", "kill"])
async def test_it_plays_the_named_nodes_and_leaves_no_process_behind(play, server, end):
    state, proof = play.directory / "state", play.directory / "proof"
    words = ["--kubeconfig", server.kubeconfig, "--state", state, "--node", play.node, "--programs", play.programs]
    options = [str(word) for word in (*words, "--heartbeat", "0.2")]
    kubelet = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "remediator_sim.kubelet.kubelets", *options, cwd=ROOT, stderr=asyncio.subprocess.PIPE
    )
    try:
        await until(lambda: play.node_says("Ready", "True"), 30)
        assert (await play.client.get(NODES, play.node))["status"]["capacity"]["nvidia.com/gpu"] == "8"
        await play.pod(play.program(SLEEP), env=[{"name": "PROOF", "value": str(proof)}])
        pid = int(await until(lambda: proof.exists() and proof.read_text()))
    finally:
        getattr(kubelet, end)()
        _, said = await kubelet.communicate()
    await until(lambda: gone(pid))
    assert b"Traceback" not in said
    assert kubelet.returncode == (0 if end == "terminate" else -9)
