"""What happens to the replicas: they are killed, at any request, effect or await, and they freeze."""

import asyncio
from random import Random
from typing import TYPE_CHECKING

from remediator_sim.simulation.clock import now, until
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import REPLICAS, Drawn, Fleet, Kind, drawn
from remediator_sim.simulation.steps.wires import WRITES
from remediator_sim.simulation.wire import WireFault

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

PATIENCE = 240.0  # seconds after which a process dies though the request or turn at which it should die never came
TURNS = 3.5  # a process dies at most so many powers of ten of its turns after the step


def _draw_crash(chance: Random, fleet: Fleet) -> Drawn:
    how = chance.choice(("now", "turn", "die-before", "die-after"))
    turn = int(10 ** chance.uniform(0, TURNS))
    part = chance.choice(("", "nodes/", "noderemediations", "nodeoperations", "nodedisruptionbudgets", "/pods"))
    return drawn("leader", how=how, part=part, turn=turn, back=chance.choice((1, 20, 120)))


async def _crash(world: "World", step: Step) -> None:
    model = world.replica(step.target)
    if model is None:
        return
    if step["how"] == "now":
        model.crash()
    elif model.wire is not None:
        if step["how"] == "turn":
            model.crash_at(step["turn"])
        else:
            model.wire.faults.append(WireFault(step["how"], 1, methods=WRITES, part=step["part"]))
        latest = now() + PATIENCE
        world.armed += 1
        await until(lambda: model.wire is None or now() > latest, 1.0)
        world.armed -= 1
        model.crash()
    await asyncio.sleep(step["back"])
    model.start()


def _draw_freeze(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(REPLICAS), seconds=chance.choice((5, 12, 30, 90)))


async def _freeze(world: "World", step: Step) -> None:
    if model := world.replica(step.target):
        model.freeze()
        await asyncio.sleep(step["seconds"])
        model.thaw()


KINDS = (Kind("crash", 3, _draw_crash, _crash), Kind("freeze", 2, _draw_freeze, _freeze))
