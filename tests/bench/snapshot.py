"""What the extender does when a node has changed: `python -m tests.bench.snapshot`.

From the decoded node of a watch until every answer that stands ready follows it, and beside it, in turn, the decoding
of the same node. No network, nothing else in the process, and processor time alone. Every change makes a node sick or
well; ten of them are one sample.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from remediator.core.node import Node
from remediator.kube.api import POLICY, decode
from remediator.kube.api.builtin import NODE
from remediator.kube.informers import Informers
from remediator.scheduler.extender import SHAPES, Extender
from tests.bench import fleet
from tests.bench.extender import Report, quantiles
from tests.harness.replica import an_extender

CHANGES = 10


class Sample(NamedTuple):
    """Seconds of processor time for one change: to decode the node, and to take it in."""

    decoding: float
    update: float


async def measure(nodes: int, samples: int) -> Report:
    """Microseconds of a change, while answers stand ready for one shape of Pod, and for as many as are kept."""
    names = fleet.names(nodes)
    extender, informers = standing(names)
    calls, lines = (extender.filter, extender.prioritize), changed(names)
    report: Report = {"nodes": nodes, "changes": samples * CHANGES, "shapes": {}}
    for shapes in (1, SHAPES):
        for gpus in range(1, shapes + 1):
            for call in calls:
                call(fleet.request(names, gpus))
        took = [sample(extender, informers, lines) for _ in range(samples)]
        report["shapes"][str(shapes)] = {
            "update_us": quantiles([1000 * each.update for each in took]),
            "decoding_us": quantiles([1000 * each.decoding for each in took]),
        }
    return report


def standing(names: list[str]) -> tuple[Extender, Informers]:
    """An extender that knows these nodes and the policy of the feed, and follows nothing."""
    extender, informers = an_extender()
    policy = decode.remediation_policy(msgspec.convert(fleet.POLICY, POLICY.type))
    informers.policies._reflector._keep(policy.name, policy)
    for name in names:
        take_in(informers, read(json.dumps(fleet.node(name, False)).encode()))
    extender._fleet.look()
    extender._fleet.complete.set()
    return extender, informers


def read(line: bytes) -> Node:
    """A node, decoded as a watch does it."""
    return decode.node(msgspec.json.decode(line, type=NODE.type))


def take_in(informers: Informers, node: Node) -> None:
    """As the watch does it."""
    informers.nodes._reflector._keep(node.name, node)


def changed(names: list[str]) -> Iterator[bytes]:
    """A twentieth of the nodes, one after the other: sick, and well in the next turn."""
    sick = True
    while True:
        for name in names[:: fleet.SICK_IN]:
            yield json.dumps(fleet.node(name, sick)).encode()
        sick = not sick


def sample(extender: Extender, informers: Informers, lines: Iterator[bytes]) -> Sample:
    """Ten changes, each taken in before the next one."""
    bodies = [next(lines) for _ in range(CHANGES)]
    began = time.thread_time()
    nodes = [read(body) for body in bodies]
    read_at = time.thread_time()
    for node in nodes:
        take_in(informers, node)
        extender._fleet.settle()
    return Sample((read_at - began) / CHANGES, (time.thread_time() - read_at) / CHANGES)


def main() -> None:
    """Measure; print one line of JSON to stdout."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.snapshot", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--samples", type=int, default=200)
    asked = parser.parse_args()
    print(json.dumps(asyncio.run(measure(asked.nodes, asked.samples))))


if __name__ == "__main__":
    main()
