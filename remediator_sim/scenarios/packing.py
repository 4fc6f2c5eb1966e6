"""Two nodes of two GPUs, and Pods of 1, 1 and 2 GPUs: all run where GPUs are packed, and the last waits where not."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from remediator.kube.wire.client import Client
from remediator_sim.extender import HttpExtender
from remediator_sim.kubelet.binder import Advice, Bind, choose, full, gpus
from remediator_sim.plain import NODES, PODS, Object
from remediator_sim.scenarios.fleet import PACKED, POOL
from remediator_sim.scenarios.jobs import SPACE, Job, Jobs, pod

NAMES, SIZES = ("first", "second", "third"), (1, 1, 2)  # of the Pods, in the order in which they come; GPUs
WAITS = ""
PROBE = pod(Job("probe", 1, pool=POOL), "probe")
Until = Callable[[Callable[[], Awaitable[bool]], str], Awaitable[None]]  # until something holds; what, for a person


class Packing(NamedTuple):
    """The node of each Pod, in their order; WAITS where it has none. `alone`: by the scheduler without advice."""

    placed: tuple[str, ...]
    alone: tuple[str, ...]

    def wrong(self) -> list[str]:
        """What is not as it should be, a sentence each."""
        sentences = (
            (WAITS in self.placed, f"pods of 1, 1 and 2 GPUs are on {self.placed}, and one waits"),
            (self.alone[-1] != WAITS, f"without advice they would be on {self.alone}, and none would wait"),
        )
        return [sentence for holds, sentence in sentences if holds]

    def __str__(self) -> str:
        return (
            f"pods of 1, 1 and 2 GPUs all run on two nodes of two ({', '.join(self.placed)});"
            " the scheduler alone would spread the first two, and the last one would wait"
        )


def spread(pods: Sequence[Object], nodes: Sequence[Object]) -> tuple[str, ...]:
    """Where the scheduler of this simulator places Pods alone: each where the fewest are."""
    load: Counter[str] = Counter()
    used: Counter[str] = Counter()
    placed = []
    for each in pods:
        chosen = choose(each, nodes, load, Advice(full(each, nodes, used)))
        placed.append(chosen.node if isinstance(chosen, Bind) else WAITS)
        load[placed[-1]] += 1
        used[placed[-1]] += gpus(each)
    return tuple(placed)


async def pack(client: Client, jobs: Jobs, extender: HttpExtender, until: Until) -> Packing:
    """Let the Pods come, each when the extender knows of the one before."""
    pods: dict[str, Object] = {}
    placed: list[str] = []

    async def bound() -> bool:
        pods[name] = await client.get(PODS, name, namespace=SPACE)
        return bool(pods[name]["spec"].get("nodeName"))

    async def known() -> bool:
        """It scores all nodes, and those higher on which the Pods so far are."""
        scores = (await extender(PROBE, PACKED)).scores
        best = max(scores.values(), default=0)
        return len(scores) == len(PACKED) and {node for node in scores if scores[node] == best} == set(placed or PACKED)

    for number, size in enumerate(SIZES, 1):
        if number < len(SIZES):
            await until(known, f"the extender knows {' and '.join(placed) or 'both nodes'}")
        name = NAMES[number - 1]
        await jobs.add(Job(name, size, pool=POOL))
        await until(bound, f"{name} has a node")
        placed.append(pods[name]["spec"]["nodeName"])
    nodes = [node for node in await client.list_all(NODES) if node["metadata"]["name"] in PACKED]
    return Packing(tuple(placed), spread([*map(_waiting, pods.values())], nodes))


def _waiting(placed: Object) -> Object:
    return {**placed, "spec": {key: value for key, value in placed["spec"].items() if key != "nodeName"}}
