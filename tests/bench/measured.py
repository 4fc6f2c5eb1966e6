"""Everything that runs while a benchmark measures: control plane, nodes with heartbeats, controller, floor."""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from remediator.kube.wire.client import Client
from remediator.kube.wire.http import HttpTransport
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator_sim.controller import ANY_PORT, COMMAND, run_command
from tests.bench import cluster, features
from tests.bench.numbers import stamp
from tests.cluster.control_plane import ControlPlane
from tests.cluster.processes import Child
from tests.harness.kinds import NODES
from tests.harness.waiting import until

LEASE_SECONDS = 200  # of the nodes, not of the controller
HEARTBEAT_SECONDS = 150  # kubelet and node-problem-detector each speak every five minutes
LATE_SECONDS = 1.0  # what a server that was busy meanwhile has missed of them is not made up for
START_SECONDS = 60.0


class Measured(NamedTuple):
    """What is up. The processes are the controller's and the floor's."""

    client: Client
    controller: Child
    floor: Child
    nodes: list[str]


@asynccontextmanager
async def running(nodes: int) -> AsyncIterator[Measured]:
    """A control plane with that many nodes; the controller leads, the floor watches, heartbeats come."""
    async with fleet(nodes) as (plane, client, names):
        with controller(plane, ["--starts", "1000000"]) as ours, floor(plane, "tests.bench.floor") as bare:
            await until(lambda: cluster.works(client), START_SECONDS)
            yield Measured(client, ours, bare, names)


@asynccontextmanager
async def fleet(nodes: int) -> AsyncIterator[tuple[ControlPlane, Client, list[str]]]:
    """A control plane with that many nodes, their names, and heartbeats."""
    with ControlPlane(controllers=False, scheduler=False, lease_seconds=LEASE_SECONDS) as plane:
        cluster.apply(plane)
        transport = await HttpTransport.from_kubeconfig(plane.kubeconfig)
        client = Client(transport)
        try:
            names = await cluster.populate(client, nodes)
            async with heartbeats(client, names):
                yield plane, client, names
        finally:
            await transport.close()


@contextmanager
def controller(plane: ControlPlane, options: Sequence[str]) -> Iterator[Child]:
    """The controller as it is shipped, with its own roles, its lease, and tickets that nothing asks for.

    It asks a Prometheus and an Alertmanager that have nothing to say.
    """
    with (
        features.answered() as url,
        replica(plane, ["--prometheus-url", url, "--alertmanager-url", url, *options]) as child,
    ):
        yield child


def replica(plane: ControlPlane, options: Sequence[str]) -> AbstractContextManager[Child]:
    """Beside a real API server it is called as in a Pod, without a kubeconfig."""
    folder = plane.kubeconfig.parent
    routes, token = folder / "routes.yaml", folder / "github-token"
    routes.write_text("default: {repository: example/gpus}\n")
    token.write_text("none")
    tickets = ["--routes", str(routes), "--github-token-file", str(token)]
    if isinstance(plane, ControlPlane):
        command = [*COMMAND, "run", "--listen", ANY_PORT, *tickets, *options]
        return _child("remediator", command, cluster.in_pod(plane, folder / "account"))
    kubeconfig = plane.kubeconfig_for(cluster.CONTROLLER, cluster.ACCOUNTS)
    return _child("remediator", run_command(kubeconfig, [*tickets, *options]))


def floor(plane: ControlPlane, module: str, *arguments: str) -> AbstractContextManager[Child]:
    """One of the programs that the controller is compared with."""
    kubeconfig = plane.kubeconfig_for("bench-floor")
    return _child("floor", [sys.executable, "-m", module, str(kubeconfig), *arguments])


@contextmanager
def _child(name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> Iterator[Child]:
    """A process; where what is done with it fails, its log is told."""
    with tempfile.TemporaryDirectory(prefix="bench-") as logs:
        child = Child(list(command), Path(logs) / f"{name}.log", environment=environment)
        try:
            yield child
        except BaseException:
            print(f"--- {child.log.name}\n{child.tail()}", file=sys.stderr)
            raise
        finally:
            child.stop()


@asynccontextmanager
async def heartbeats(client: Client, nodes: Sequence[str]) -> AsyncIterator[None]:
    """Each node says in turn that it is still Ready, as often as a real one would; KWOK's speak every ten minutes."""

    async def beat() -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        for node in cycle(nodes):
            body = {"status": {"conditions": [{"type": "Ready", "lastHeartbeatTime": stamp()}]}}
            await client.patch(NODES, node, body, subresource="status", content_type=STRATEGIC_PATCH)
            due = max(due + HEARTBEAT_SECONDS / len(nodes), loop.time() - LATE_SECONDS)
            await asyncio.sleep(due - loop.time())

    beats = asyncio.create_task(beat())
    try:
        yield
    finally:
        beats.cancel()
        with suppress(asyncio.CancelledError):
            await beats
