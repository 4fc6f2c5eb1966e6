"""What happens to nodes: they fall ill, get well by themselves, go down."""

import asyncio
from random import Random
from typing import TYPE_CHECKING

from remediator_sim.simulation import facts
from remediator_sim.simulation.clock import until
from remediator_sim.simulation.fault import KNOWN, Fault
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, Kind, drawn

# What a machine may show besides its fault, in the words of facts.py.
HINDERS = (
    facts.GPU_LOST,
    facts.GPU_COMPUTES,
    facts.GPU_HELD,
    facts.RESET_HANGS,
    facts.MODULE_STAYS,
    facts.SERVER_SILENT,
    facts.MOUNT_FAILS,
    facts.SERVICE_DIES,
    facts.REBOOT_REFUSED,
    facts.STAYS_UP,
    facts.GOES_DOWN_LATE,
)

FAULTS = "10 to 13, in a quarter of the seeds 14 to 18 within five minutes, and 2 more on nodes that have one"
FOR_EVER = 1e7  # seconds: longer than any seed

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World


def _draw_fault(chance: Random, fleet: Fleet) -> Drawn:
    known = KNOWN[chance.choice(fleet.policies)]
    cures = known.cures[chance.randrange(len(known.cures) + 1) :] if chance.random() < 0.5 else known.cures
    words = {"condition": known.condition, "cures": cures, "tries": chance.choice((1, 1, 2))}
    return drawn(chance.choice(fleet.nodes), **words, **({"status": known.status} if known.status else {}))


async def _fault(world: "World", step: Step) -> None:
    if node := world.nodes.get(step.target):
        status = dict(step.words).get("status", "")
        node.break_down(Fault(step["condition"], step["cures"], step["tries"], status))


def _draw_heal(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(fleet.sick or fleet.nodes))


async def _heal(world: "World", step: Step) -> None:
    node = world.nodes[step.target]
    for condition in list(node.faults):
        node.recover(condition)


def _draw_down(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(fleet.nodes), seconds=chance.choice((40, 200, 900)))


async def _down(world: "World", step: Step) -> None:
    node = world.nodes[step.target]
    if node.alive:
        await node.go_down(step["seconds"])


def _draw_dies(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(fleet.sick or fleet.nodes))


async def _dies(world: "World", step: Step) -> None:
    """A machine goes down and does not come up by itself; a power cycle may still wake it."""
    node = world.nodes[step.target]
    if node.alive:
        await node.go_down(FOR_EVER)


def _draw_stuck(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(fleet.sick or fleet.nodes), seconds=chance.choice((120, 1200)))


async def _stuck(world: "World", step: Step) -> None:
    world.pods.stuck.add(step.target)
    await asyncio.sleep(step["seconds"])
    world.pods.stuck.discard(step.target)


def _draw_preempt(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(count=chance.choice((1, 2, 4)))


async def _preempt(world: "World", step: Step) -> None:
    """Pods of higher priority take the place of the next drain Pods."""
    for _ in range(step["count"]):
        await until(lambda: bool(world.running_drains()) or world.ended, 2.0)
        for name in world.running_drains()[:1]:
            await world.delete_pod(name)
        await asyncio.sleep(30)


def _draw_gone(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(fleet.nodes), seconds=chance.choice((60, 900)))


async def _gone(world: "World", step: Step) -> None:
    """A node is taken out of the cluster, and another machine comes under its name."""
    await world.replace_machine(step.target, step["seconds"])


def _draw_hinder(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(
        chance.choice(fleet.sick or fleet.nodes), fact=chance.choice(HINDERS), seconds=chance.choice((300, 3600))
    )


async def _hinder(world: "World", step: Step) -> None:
    """Something is so of a machine that programs meet: they refuse, or fail."""
    world.nodes[step.target].facts.add(step["fact"])
    await asyncio.sleep(step["seconds"])
    world.nodes[step.target].facts.discard(step["fact"])


def _draw_blind(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(fleet.sick or fleet.nodes), seconds=chance.choice((60, 600, 2400)))


async def _blind(world: "World", step: Step) -> None:
    """The detectors of a node stop, so that what they have said last proves nothing."""
    world.nodes[step.target].break_down(Fault("DetectorStale"))
    await asyncio.sleep(step["seconds"])
    world.nodes[step.target].recover("DetectorStale")


KINDS = (
    Kind("fault", 0, _draw_fault, _fault, each=FAULTS),
    Kind("hinder", 2, _draw_hinder, _hinder),
    Kind("heal", 2, _draw_heal, _heal),
    Kind("down", 2, _draw_down, _down),
    Kind("dies", 1, _draw_dies, _dies),
    Kind("blind", 1, _draw_blind, _blind),
    Kind("stuck", 1, _draw_stuck, _stuck),
    Kind("preempt", 1, _draw_preempt, _preempt),
    Kind("gone", 1, _draw_gone, _gone),
)
