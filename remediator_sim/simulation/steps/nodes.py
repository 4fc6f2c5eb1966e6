"""What happens to nodes: they fall ill, get well by themselves, go down."""

import asyncio
from random import Random
from typing import TYPE_CHECKING

from remediator_sim.simulation import facts
from remediator_sim.simulation.clock import now, until
from remediator_sim.simulation.fault import ACTING, KNOWN, Fault
from remediator_sim.simulation.moments import moment
from remediator_sim.simulation.node import ADDRESS, FOR_EVER
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

# What a machine may show besides its fault, in the words of facts.py.
HINDERS = (
    facts.GPU_LOST,
    facts.GPU_WRONG,
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
    facts.BMC_SILENT,
    facts.BMC_LIES,
    facts.POWER_STAYS,
)

FAULTS = "10, in one of 17 seeds 13 to 20 within five minutes, and up to 8 more of what only some plans have"
# For so many seconds a kubelet that reports no status goes on to renew its Lease, and how often.
RENEWS, RENEWAL = (0, 0, 300, 900, 2400), 20.0
CLAIMED_WITHIN, BOOTS_FOR, PROVEN_WITHIN = 900.0, 60.0, 480.0  # seconds
MOVES = "1, where faults come back and policies say what is done about it: in one of 14 seeds"

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World


def _draw_fault(chance: Random, fleet: Fleet) -> Drawn:
    known = KNOWN[chance.choice(fleet.policies)]
    cures = known.cures[chance.randrange(len(known.cures) + 1) :] if chance.random() < 0.5 else known.cures
    words = {"condition": known.condition, "cures": cures, "tries": chance.choice((1, 1, 2))}
    if known.status:
        words |= {"status": known.status, "renews": chance.choice(RENEWS), "volumes": chance.choice((0, 1))}
    return drawn(chance.choice(fleet.nodes), **words)


async def _fault(world: "World", step: Step) -> None:
    if node := world.nodes.get(step.target):
        words = dict(step.words)
        message = "broken by the plan"
        if step["condition"].startswith(("Gpu", "Pcie")):
            message = f"{ADDRESS} is {message}"
        back = {word: words[word] for word in ("returns", "after") if word in words}
        fault = Fault(step["condition"], step["cures"], step["tries"], words.get("status", ""), message, **back)
        node.break_down(fault)
        if words.get("volumes"):
            await world.attach_volume(step.target)
        until_then = now() + words.get("renews", 0)
        while now() < until_then and node.faults.get(fault.condition) is fault and node.alive:
            await world.renew_lease(step.target)
            await asyncio.sleep(RENEWAL)


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


def _draw_move(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(fleet.sick or fleet.nodes), to=chance.choice(fleet.nodes))


async def _move_board(world: "World", step: Step) -> None:
    """A user puts the GPU board of a node into another one, and its board there; faults of GPUs move with them."""
    node, other = world.nodes[step.target], world.nodes[step["to"]]
    if node is other:
        return
    node.board, other.board = other.board, node.board
    for fault in [fault for name, fault in node.faults.items() if name.startswith("Gpu")]:
        node.recover(fault.condition)
        other.break_down(fault)


def _draw_flap(chance: Random, fleet: Fleet) -> Drawn:
    acting = sorted({ACTING[name].condition for name in fleet.policies if name in ACTING} - {"Ready"})
    return drawn(chance.choice(fleet.nodes), condition=chance.choice(acting), times=4)


async def _flap(world: "World", step: Step) -> None:
    """A node falls ill, and boots by itself as soon as it is taken, again and again: its fault goes, and comes back."""
    node = world.nodes[step.target]
    for _ in range(step["times"]):
        node.break_down(Fault(step["condition"]))
        if not await moment(world, step.target, "claim", CLAIMED_WITHIN):
            return
        node.recover(step["condition"])
        if node.alive:
            await node.go_down(BOOTS_FOR)
        await asyncio.sleep(PROVEN_WITHIN)


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


def _draw_installed(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(fleet.nodes), seconds=chance.choice((60, 300)))


async def _installed(world: "World", step: Step) -> None:
    """A machine is installed anew: its Node stays, and it comes up with another machine-id."""
    node = world.nodes[step.target]
    if node.alive:
        node.machine += 1
        await node.go_down(step["seconds"])


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


def _draw_fewer(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(fleet.sick or fleet.nodes), seconds=chance.choice((300, 1800, 7200)))


async def _fewer(world: "World", step: Step) -> None:
    """A GPU falls off the bus, and its kubelet counts one less; later it is back."""
    node = world.nodes[step.target]
    node.devices -= 1
    node.speak()
    await asyncio.sleep(step["seconds"])
    node.devices += 1
    node.speak()


KINDS = (
    StepKind("fault", 0, _draw_fault, _fault, each=FAULTS),
    StepKind("hinder", 2, _draw_hinder, _hinder),
    StepKind("heal", 2, _draw_heal, _heal),
    StepKind("down", 2, _draw_down, _down),
    StepKind("dies", 1, _draw_dies, _dies),
    StepKind("fewer", 1, _draw_fewer, _fewer),
    StepKind("blind", 1, _draw_blind, _blind),
    StepKind("flap", 0, _draw_flap, _flap, each=MOVES),
    StepKind("move-board", 0, _draw_move, _move_board, each=MOVES),
    StepKind("stuck", 1, _draw_stuck, _stuck),
    StepKind("preempt", 1, _draw_preempt, _preempt),
    StepKind("gone", 1, _draw_gone, _gone),
    StepKind("install", 0, _draw_installed, _installed, each="3 in one of 17 seeds"),
)
