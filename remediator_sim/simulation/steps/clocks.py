"""Clocks that are wrong, and that are set."""

import asyncio
from random import Random
from typing import TYPE_CHECKING

from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

REPLICA_CLOCK = "replica-clock"
SMALL, LARGE = (-20, -3, 3, 20), (-3600, -600, 600, 3600)


def _draw_node_clock(chance: Random, fleet: Fleet) -> Drawn:
    ahead, seconds = chance.choice(SMALL + LARGE), chance.choice((300, 3600))
    return drawn(chance.choice(fleet.sick or fleet.nodes), ahead=ahead, seconds=seconds)


async def _node_clock(world: "World", step: Step) -> None:
    clock = world.nodes[step.target].clock
    clock.ahead = step["ahead"]
    await asyncio.sleep(step["seconds"])
    clock.ahead = 0.0


def _draw_replica_clock(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(("A", "B")), ahead=chance.choice(SMALL + LARGE), seconds=chance.choice((300, 3600)))


async def _replica_clock(world: "World", step: Step) -> None:
    clock = world.replicas[step.target].clock
    clock.ahead = step["ahead"]
    await asyncio.sleep(step["seconds"])
    clock.ahead = 0.0


def _draw_server_clock(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(ahead=chance.choice(SMALL + LARGE), seconds=chance.choice((60, 600)))


async def _server_clock(world: "World", step: Step) -> None:
    world.clock.ahead = step["ahead"]
    await asyncio.sleep(step["seconds"])
    world.clock.ahead = 0.0


KINDS = (
    StepKind("node-clock", 2, _draw_node_clock, _node_clock),
    StepKind(REPLICA_CLOCK, 2, _draw_replica_clock, _replica_clock),
    StepKind("server-clock", 1, _draw_server_clock, _server_clock),
)
