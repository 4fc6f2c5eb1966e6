"""Nodes that fall silent: one by one, or a whole rack at once, whose machines go on to run."""

import asyncio
from random import Random
from typing import TYPE_CHECKING

from remediator_sim.simulation.fault import Fault
from remediator_sim.simulation.node import RACK, RACKS, rack
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

POLICY = "node-unreachable"
# So many nodes die; and in some of these plans a rack is cut off for so many seconds.
DEAD = 1, 3
CUT_OFF, SECONDS = 0.4, (300, 2400, 3600)


def _draw_cut_off(chance: Random, fleet: Fleet) -> Drawn:
    return drawn("", label=RACK, value=f"rack-{chance.randrange(RACKS)}", seconds=chance.choice(SECONDS))


async def _cut_off(world: "World", step: Step) -> None:
    """No node of a rack, or of a zone, reaches the API server; their machines run, and so does what works on them."""
    named = [name for name in world.plan.nodes if _label(world, name, step["label"]) == step["value"]]
    cut = [world.nodes[name] for name in named if world.nodes[name].alive]
    faults = [Fault("Ready", status="Unknown", message="Kubelet stopped posting node status.") for _ in cut]
    for node, fault in zip(cut, faults, strict=True):
        if "Ready" not in node.faults:
            node.break_down(fault)
    await asyncio.sleep(step["seconds"])
    for node, fault in zip(cut, faults, strict=True):
        if node.faults.get("Ready") is fault:
            node.recover("Ready")


def _label(world: "World", node: str, key: str) -> str:
    return rack(node) if key == RACK else world.nodes[node].labels.get(key, "")


def steps(chance: Random, fleet: Fleet, last: float) -> list[Step]:
    """What falls silent in a plan."""
    count = chance.randint(*DEAD)
    silent = [Step(round(chance.uniform(120.0, last), 3), "dies", name) for name in chance.sample(fleet.nodes, count)]
    if chance.random() < CUT_OFF:
        words = _draw_cut_off(chance, fleet).words
        silent.append(Step(round(chance.uniform(120.0, last), 3), "cut-off", "", words))
    volumes = [Step(step.at, "volume", step.target) for step in silent if step.kind == "dies" and chance.random() < 0.5]
    return [*volumes, *silent]


async def _volume(world: "World", step: Step) -> None:
    """A volume is attached to a node."""
    await world.attach_volume(step.target)


KINDS = (
    StepKind("cut-off", 0, _draw_cut_off, _cut_off, each="1 in a tenth of the seeds"),
    StepKind("volume", 0, lambda chance, fleet: drawn(), _volume, each="up to 3 in a twelfth of the seeds"),
)
