"""What runs on the nodes before the first step: Pods for themselves, and in some seeds gangs that want checkpoints."""

import asyncio
import contextvars
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.kube.wire.times import stamp
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.apiserver.store import Change, Listener
from remediator_sim.kubelet.node import GPU
from remediator_sim.plain import PODS, Object
from remediator_sim.simulation import variants
from remediator_sim.simulation.clock import true_time
from remediator_sim.simulation.programs.jobs import DONE, REQUESTED, WANTED, checkpoint_of, gang_of

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

DECLARED = {"remediator.dev/evict": "true"}  # bare Pods that their owner lets go
JOBSET = "jobset.sigs.k8s.io/jobset-name"
GANGS, SIZE = 0.6, (2, 4)  # of the nodes have a gang, of so many Pods
WISHES = ("", "", "2m", "10m", "soon", "9h")  # "": it wants no checkpoint
ANSWERS, TOO_LATE = 0.7, 0.15  # of those asked answer in time, and too late; the others never do


async def place_work(world: "World", node: str, count: int) -> None:
    """So many Pods for themselves on a node, on most the Pods of one gang, and in some seeds Pods that fill it."""
    named = [(f"train-{node}-{number}", "", "") for number in range(count)]
    chance = Random(f"jobs {world.plan.seed} {node}")
    if world.plan.jobs and chance.random() < GANGS:
        wishes = (chance.choice(WISHES) for _ in range(chance.randint(*SIZE)))
        gang = variants.gang(world.plan, node)
        named += [(f"job-{node}-{number}", gang, wish) for number, wish in enumerate(wishes)]
    sizes = variants.gpus_of_pods(world.plan, node, len(named))
    named += [(f"serve-{node}-{number}", "", "") for number in range(len(sizes) - len(named))]
    for (name, gang, wish), gpus in zip(named, sizes, strict=True):
        await _place(world, name, node, {JOBSET: gang} if gang else {}, {WANTED: wish} if wish else {}, gpus)


async def _place(
    world: "World", name: str, node: str, labels: dict[str, str], notes: dict[str, str], gpus: int
) -> None:
    container = {"name": "main", "image": "train"} | ({"resources": {"limits": {GPU: str(gpus)}}} if gpus else {})
    spec = {"nodeName": node, "containers": [container]}
    meta = {"name": name, "labels": labels, "annotations": DECLARED | notes}
    await world.client.create(PODS, {"metadata": meta, "spec": spec}, namespace="default")


class Trainers:
    """The programs in Pods that want a checkpoint: each answers once for each request, in time, too late, or never."""

    def __init__(self, server: EmbeddedServer, client: Client, seed: int) -> None:
        self._client, self._chance = client, Random(f"trainers {seed}")
        self._heard: set[tuple[str, str]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        server.cluster.store.collection("pods").listen(Listener(None, self._hear, lambda: None))

    def _hear(self, change: Change) -> None:
        pod = change.entry.obj
        asked = (pod["metadata"].get("annotations") or {}).get(REQUESTED)
        if not asked or change.type == "DELETED" or (pod["metadata"]["uid"], asked) in self._heard:
            return
        self._heard.add((pod["metadata"]["uid"], asked))
        if gang_of(pod) and checkpoint_of(pod):
            task = asyncio.get_running_loop().create_task(self._answer(pod), context=contextvars.Context())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, pod: Object) -> None:
        checkpoint, draw = checkpoint_of(pod), self._chance.random()
        if checkpoint is None or draw >= ANSWERS + TOO_LATE:
            return
        share = self._chance.uniform(0.02, 0.5) if draw < ANSWERS else 1.5
        await asyncio.sleep(min(checkpoint.wanted, timedelta(hours=1)).total_seconds() * share)
        body = {"metadata": {"uid": pod["metadata"]["uid"], "annotations": {DONE: stamp(true_time())}}}
        with suppress(errors.ApiError):
            await self._client.patch(PODS, pod["metadata"]["name"], body, namespace="default")
