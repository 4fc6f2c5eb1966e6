"""What happens to a node while it is tested: it falls ill, work comes, a user takes it, the leader dies."""

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from remediator.kube.wire import errors
from remediator_sim.kubelet.node import GPU
from remediator_sim.plain import PODS
from remediator_sim.simulation.clock import now, until
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps import edits, nodes, replicas, users, wires
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

PATIENCE, LOOK = 900.0, 1.0  # seconds for which a test is waited for, and between two looks
OURS = "remediator-operations"
PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
EACH = "5 or 6 in one of 9 seeds"


def _draw_take(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(fleet.nodes), seconds=chance.choice((60, 600)))


async def _take_gpus(world: "World", step: Step) -> None:
    """Work comes that wants all GPUs of a node: the scheduler preempts the test there, and then gives it the node."""
    with suppress(errors.ApiError):
        for name in _tests(world, step.target):
            status = {"status": {"conditions": [PREEMPTED]}}
            await world.client.patch(PODS, name, status, namespace=OURS, subresource="status")
            await world.delete_pod(name)
        await until(lambda: world.ended or not _tests(world, step.target), LOOK)
        work = f"work-{step.target}-{step.at:.0f}"
        meta = {"name": work, "annotations": {"remediator.dev/evict": "true"}}
        container = {"name": "main", "image": "train", "resources": {"limits": {GPU: "8"}}}
        spec = {"nodeName": step.target, "containers": [container]}
        await world.client.create(PODS, {"metadata": meta, "spec": spec}, namespace="default")
        await asyncio.sleep(step["seconds"])
        await world.client.delete(PODS, work, namespace="default")


def _tests(world: "World", node: str) -> list[str]:
    return [name for tested, name in world.running_tests() if tested == node]


TAKE = StepKind("take-gpus", 0, _draw_take, _take_gpus, each="some of `in-test` are one")
# What comes between, besides.
OTHERS = {
    *("fault", "down", "dies", "stuck", "gone", "cordon", "exclude", "pause", "mode"),
    *("crash", "freeze", "stale", "free-lease", "silence", "cut", "lag", "lost", "storm", "apart"),
}
_KNOWN = {kind.name: kind for part in (nodes, users, edits, replicas, wires) for kind in part.KINDS}
AMID = {name: kind for name, kind in _KNOWN.items() if name in OTHERS} | {TAKE.name: TAKE}


def _draw_in_test(chance: Random, fleet: Fleet) -> Drawn:
    """In one of three somebody takes the GPUs or the node; else anything of these."""
    kind = AMID[chance.choice(("take-gpus", "fault", "cordon") if chance.random() < 1 / 3 else sorted(AMID))]
    target, words = kind.draw(chance, fleet)
    return drawn("" if target in fleet.nodes else target, kind=kind.name, words=words)


async def _in_test(world: "World", step: Step) -> None:
    """Something happens to the first node that is seen to be tested, or beside that."""
    patience = now() + PATIENCE
    await until(lambda: world.ended or now() > patience or bool(world.running_tests()), LOOK)
    if tests := world.running_tests():
        inner = Step(step.at, step["kind"], step.target or tests[0][0], step["words"])
        world.note("plan", str(inner))
        await AMID[inner.kind].perform(world, inner)


IN_TEST = StepKind("in-test", 0, _draw_in_test, _in_test, EACH)
KINDS = (TAKE, IN_TEST)
