"""Start a real control plane that stays: `python -m tests.cluster.up --nodes 100`."""

import argparse
import asyncio
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from deploy.images.programs import binary
from deploy.images.programs import main as build
from remediator.kube.wire.client import Client
from remediator.kube.wire.http import HttpTransport
from tests.cluster import record
from tests.cluster.control_plane import ControlPlane
from tests.cluster.nodes import create_nodes

CRDS = Path(__file__).parents[2] / "deploy" / "crds"


def main() -> int:
    """Start it, or say that it is up; the exit status. Standard output is fit for `eval`."""
    parser = argparse.ArgumentParser(prog="tests.cluster.up", description=__doc__)
    parser.add_argument("--nodes", type=int, default=100, help="simulated GPU nodes, played by KWOK (default 100)")
    nodes = parser.parse_args().nodes
    standing = record.load()
    if standing and standing.alive():
        print("the control plane is already up; end it with `python -m tests.cluster.down`", file=sys.stderr)
        print(f"export KUBECONFIG={standing.kubeconfig}")
        return 0
    if build():
        return 1
    stop = Stop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop.ask)
    try:
        print(f"export KUBECONFIG={_start(nodes, stop)}")
    except (RuntimeError, TimeoutError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


class Stop:
    """SIGTERM or Ctrl-C. Held back while programs are being started, lest one is started that nobody knows of."""

    def __init__(self) -> None:
        self.held, self.asked = True, False

    def ask(self, *_: object) -> None:
        """The signal has come."""
        self.asked = True
        if not self.held:
            sys.exit(1)

    def let(self) -> None:
        """From now on it may come; it may have."""
        self.held = False
        if self.asked:
            sys.exit(1)


def _start(nodes: int, stop: Stop) -> Path:
    """Start everything anew; nothing stays when that fails."""
    shutil.rmtree(record.folder(), ignore_errors=True)
    plane = ControlPlane(record.folder(), detached=True)
    plane.start()
    try:
        stop.let()
        _fill(plane.kubeconfig, nodes)
        record.save(record.Record(str(plane.kubeconfig), plane.running))
    except BaseException:
        plane.stop()
        raise
    return plane.kubeconfig


def _fill(kubeconfig: Path, nodes: int) -> None:
    """Our kinds, and the nodes."""
    if (CRDS / "kustomization.yaml").is_file():
        kubectl = [binary("kubectl"), "--kubeconfig", kubeconfig, "--cache-dir", kubeconfig.parent / "kubectl"]
        done = subprocess.run([*kubectl, "apply", "-k", CRDS], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the CRDs were refused: {done.stderr.strip()}")
    asyncio.run(_make_nodes(kubeconfig, nodes))


async def _make_nodes(kubeconfig: Path, count: int) -> None:
    transport = await HttpTransport.from_kubeconfig(kubeconfig)
    try:
        await create_nodes(Client(transport), count)
    finally:
        await transport.close()


if __name__ == "__main__":
    sys.exit(main())
