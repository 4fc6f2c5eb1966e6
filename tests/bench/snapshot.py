"""What the extender does when a node has changed: `python -m tests.bench.snapshot`.

From the decoded node of a watch until every answer that stands ready follows it, and beside it, in turn, the decoding
of the same node. No network, nothing else in the process, and processor time alone. Every change makes a node sick or
well; ten of them are one sample. Once with one policy, once with all that are shipped and nodes that have their
conditions.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from remediator.core.node import Node
from remediator.kube.api import POLICY, decode
from remediator.kube.api.builtin import NODE
from remediator.kube.informers import Informers
from remediator.scheduler.extender import SHAPES, Extender
from remediator_sim import manifests
from tests.bench import fleet, large
from tests.bench.extender import Report, quantiles
from tests.harness.replica import an_extender

CHANGES = 10
FAULT = ("gpu-lost", "GpuLost")


class Play(NamedTuple):
    """Nodes by their number, sick or well, and the policies that are asked about them."""

    names: list[str]
    node: Callable[[int, bool], dict[str, Any]]
    policies: list[dict[str, Any]]


def one_policy(nodes: int) -> Play:
    """The nodes and the policy of the feed."""
    names = fleet.names(nodes)
    return Play(names, lambda index, sick: fleet.node(names[index], sick), [fleet.POLICY])


def all_policies(nodes: int) -> Play:
    """Nodes with the conditions of the shipped policies, and these, as if they acted."""
    now = datetime.now(UTC)
    shipped = [large.enforced(document) for document in manifests.documents(("deploy/policies",))]
    policies = [document for document in shipped if document["kind"] == POLICY.name]
    names = [large.name(index) for index in range(nodes)]
    return Play(names, lambda index, sick: large.node(index, now, FAULT if sick else None, now), policies)


class Sample(NamedTuple):
    """Seconds of processor time for one change: to decode the node, and to take it in."""

    decoding: float
    update: float


async def measure(nodes: int, samples: int) -> Report:
    """Microseconds of a change, while answers stand ready for one shape of Pod, and for as many as are kept."""
    report: Report = {"nodes": nodes, "changes": samples * CHANGES}
    for title, play in (("one_policy", one_policy(nodes)), ("all_policies", all_policies(nodes))):
        extender, informers = standing(play)
        lines = changed(play)
        report[title] = {"policies": len(play.policies), "shapes": {}}
        for shapes in (1, SHAPES):
            ask(extender, play.names, shapes)
            took = [sample(extender, informers, lines) for _ in range(samples)]
            report[title]["shapes"][str(shapes)] = {
                "update_us": quantiles([1000 * each.update for each in took]),
                "decoding_us": quantiles([1000 * each.decoding for each in took]),
            }
    return report


def ask(extender: Extender, names: list[str], shapes: int) -> None:
    """About so many shapes of Pods: from then on answers for them stand ready."""
    for gpus in range(1, shapes + 1):
        for call in (extender.filter, extender.prioritize):
            call(fleet.request(names, gpus))


def standing(play: Play) -> tuple[Extender, Informers]:
    """An extender that knows these nodes and policies, and follows nothing."""
    extender, informers = an_extender()
    for document in play.policies:
        policy = decode.remediation_policy(msgspec.convert(document, POLICY.type))
        informers.policies._reflector._keep(policy.name, policy)
    for index in range(len(play.names)):
        take_in(informers, read(json.dumps(play.node(index, False)).encode()))
    extender._fleet.look()
    extender._fleet.complete.set()
    return extender, informers


def read(line: bytes) -> Node:
    """A node, decoded as a watch does it."""
    return decode.node(msgspec.json.decode(line, type=NODE.type))


def take_in(informers: Informers, node: Node) -> None:
    """As the watch does it."""
    informers.nodes._reflector._keep(node.name, node)


def changed(play: Play) -> Iterator[bytes]:
    """A twentieth of the nodes, one after the other: sick, and well in the next turn."""
    sick = True
    while True:
        for index in range(0, len(play.names), fleet.SICK_IN):
            yield json.dumps(play.node(index, sick)).encode()
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
