"""Several simulated kubelets in one process, from the command line, until SIGTERM or Ctrl-C."""

import argparse
import asyncio
import contextlib
import logging
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kubernetes.aio.client import Configuration
from kubernetes.aio.config import load_kube_config

from remediator.kube.wire.client import Client
from remediator.kube.wire.http import HttpTransport
from remediator_sim.kubelet.host import SimulatedHost
from remediator_sim.kubelet.kubelet import SimulatedKubelet
from remediator_sim.kubelet.worker import ApiAddress
from remediator_sim.shipped import folder

GPUS = 8


class NodeChoice(NamedTuple):
    """One node to play, and how many GPUs it has."""

    name: str
    gpus: int


def node_choice(text: str) -> NodeChoice:
    """Read NAME or NAME=GPUS. Raises ValueError."""
    name, equals, gpus = text.partition("=")
    return NodeChoice(name, int(gpus) if equals else GPUS)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line; ends the program with a message where it is wrong."""
    parser = argparse.ArgumentParser(prog="python -m remediator_sim.kubelet.kubelets", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True, help="how to reach the API server")
    parser.add_argument("--state", type=Path, required=True, help="each node's machine lives in a folder of its name")
    parser.add_argument(
        "--node",
        type=node_choice,
        action="append",
        required=True,
        metavar="NAME[=GPUS]",
        dest="nodes",
        help=f"a node to play, {GPUS} GPUs if not said; may be repeated",
    )
    parser.add_argument("--programs", type=Path, default=folder(), help="folder with operations/ and detectors/")
    parser.add_argument("--heartbeat", type=float, default=10.0, metavar="SECONDS", help="between two heartbeats")
    parser.add_argument("--down-time", type=float, default=3.0, metavar="SECONDS", help="how long a reboot takes")
    return parser.parse_args(arguments)


async def endpoint_of(kubeconfig: Path) -> ApiAddress:
    """Where the kubeconfig's current context points to, and the file with its certificate authority."""
    configuration = Configuration()
    await load_kube_config(str(kubeconfig), None, configuration, persist_config=False)
    return ApiAddress(configuration.host, Path(configuration.ssl_ca_cert))


async def play(options: argparse.Namespace) -> None:
    """Play all nodes until cancelled."""
    transport = await HttpTransport.from_kubeconfig(options.kubeconfig)
    try:
        endpoint = await endpoint_of(options.kubeconfig)
        async with asyncio.TaskGroup() as group:
            for choice in options.nodes:
                host = SimulatedHost(options.state / choice.name, choice.name, down_time=options.down_time)
                kubelet = SimulatedKubelet(
                    Client(transport),
                    choice.name,
                    host=host,
                    programs=options.programs,
                    endpoint=endpoint,
                    gpus=choice.gpus,
                    heartbeat=options.heartbeat,
                )
                group.create_task(kubelet.run())
    finally:
        await transport.close()


async def _until_told(options: argparse.Namespace) -> None:
    task = asyncio.ensure_future(play(options))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


def main(arguments: Sequence[str] | None = None) -> None:
    """Play the nodes of the command line; returns after SIGTERM or SIGINT, when no container is left."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    asyncio.run(_until_told(parse(arguments)))


if __name__ == "__main__":
    main()
