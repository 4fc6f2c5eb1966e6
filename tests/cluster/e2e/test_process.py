"""The controller as a process: how it starts without an API server, and how it ends."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remediator.kube.wire.client import Client
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.controller import run_command
from remediator_sim.kubeconfig import write_kubeconfig
from remediator_sim.kubelet.program import RunningProgram
from remediator_sim.manifests import deploy
from remediator_sim.ports import free_ports
from tests.cluster.e2e.stage import Stage, hurried
from tests.harness.waiting import PATIENCE, until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]
NODES: list[str] = []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_within_six_seconds_and_frees_the_lease(stage: Stage, number) -> None:
    replica = await stage.start_controller()
    await until(lambda: "lease acquired" in replica.program.written(), 30)
    assert await stage.leader() == replica.name
    replica.program.signal(number)
    began = time.monotonic()
    assert await replica.program.ended(10) == 0, replica.program.written()
    assert time.monotonic() - began < 6
    assert await stage.leader() == ""
    assert "Traceback" not in replica.program.written()


async def test_the_replica_that_waits_leads_within_two_seconds_of_a_sigterm_to_the_leader(stage: Stage) -> None:
    """Until its caches have what the API server has, and it works: the line that says so."""
    first, second = await stage.start_controller(), await stage.start_controller()
    await until(lambda: any(leads(each.program.written()) for each in (first, second)), 60)
    await until(lambda: all("synced" in each.program.written() for each in (first, second)), 60)
    leader, waits = (first, second) if await stage.leader() == first.name else (second, first)
    began = time.monotonic()
    leader.program.signal(signal.SIGTERM)
    await until(lambda: leads(waits.program.written()), 20)
    took = time.monotonic() - began
    print(f"the next replica leads {took:.2f} s after SIGTERM")
    assert took < 2 * PATIENCE
    assert await stage.leader() == waits.name


def leads(log: str) -> bool:
    """Whether the log of a replica says that it leads, with caches that have caught up."""
    return "caches_caught_up_in" in log


async def test_a_case_whose_only_controller_has_ended_is_not_waited_for(stage: Stage) -> None:
    replica = await stage.start_controller()
    await until(lambda: "lease acquired" in replica.program.written(), 30)
    assert await stage.over("gpu-17") is None
    replica.program.signal(signal.SIGTERM)
    await replica.program.ended(10)
    with pytest.raises(AssertionError, match="replica-1 ended by itself with 0: "):
        await stage.over("gpu-17")
    await stage.start_controller()
    assert await stage.over("gpu-17") is None


async def test_without_an_api_server_it_says_so_in_one_line_and_connects_once_there_is_one(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    # The certificate is made when the server starts, so nobody can know it yet.
    kubeconfig = write_kubeconfig(tmp_path, "later", f"https://127.0.0.1:{port}", "admin", None)
    program = await RunningProgram.start(run_command(kubeconfig), tmp_path / "log")
    try:
        async with hanging_up(port) as attempts:
            await until(lambda: len(attempts) >= 3, 30)
        (line,) = program.written().splitlines()
        assert f"no answer from https://127.0.0.1:{port}" in line
        server = EmbeddedServer()
        await deploy(Client(server.transport()), hurried)
        async with server.serve(port):
            await until(lambda: "lease acquired" in program.written(), 40)
            program.signal(signal.SIGTERM)
            assert await program.ended(10) == 0
    finally:
        await program.kill()


@asynccontextmanager
async def hanging_up(port: int) -> AsyncIterator[list[float]]:
    """Nobody is there but somebody who hangs up; gives when the calls came."""
    calls: list[float] = []

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls.append(time.monotonic())
        writer.transport.abort()

    async with await asyncio.start_server(hang_up, "127.0.0.1", port):
        yield calls
