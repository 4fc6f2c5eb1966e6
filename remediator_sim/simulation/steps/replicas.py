"""What happens to the replicas: they are killed, at any request, effect or await, they freeze, and two lead."""

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from remediator.core import names
from remediator.kube.wire import errors
from remediator_sim.plain import LEASES
from remediator_sim.simulation.clock import now, until
from remediator_sim.simulation.moments import moment
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import REPLICAS, WATCHED, Drawn, Fleet, StepKind, drawn
from remediator_sim.simulation.steps.wires import WRITES
from remediator_sim.simulation.wire import Wire, WireFault

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

WAITED, TWO_FOR = 1800.0, 16.0  # seconds: for a case, and in which the leader hears nothing of its Lease
OF_WRITES = ("nodedisruptionbudgets", "noderemediations")  # the watches that tell of what was written
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
        world.armed_crashes += 1
        await until(lambda: model.wire is None or now() > latest, 1.0)
        world.armed_crashes -= 1
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


def _draw_stale(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(part=chance.choice(WATCHED), seconds=chance.choice((1, 10, 60)), back=chance.choice((1, 120)))


async def _stale(world: "World", step: Step) -> None:
    """Who leads next has not heard anything for a while."""
    if wire := world.wire("follower"):
        wire.silence(step["part"])
    await asyncio.sleep(step["seconds"])
    if model := world.replica("leader"):
        model.crash()
        await asyncio.sleep(step["back"])
        model.start()


def _draw_nothing(chance: Random, fleet: Fleet) -> Drawn:
    return drawn()


async def _free_lease(world: "World", step: Step) -> None:
    """A user frees the Lease: another replica takes it while the leader does not know of it yet."""
    with suppress(errors.ApiError):
        free = {"spec": {"holderIdentity": ""}}
        await world.client.patch(LEASES, "remediator", free, namespace=names.SYSTEM_NAMESPACE)


def _draw_two(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(fleet.sick or fleet.nodes))


async def _two_leaders(world: "World", step: Step) -> None:
    """The Lease is freed as soon as a node has a case, while the leader hears nothing of it, and late of what was
    written: for some seconds two lead.
    """
    world.armed_crashes += 1  # until one leads again: a Lease that lasted longer meanwhile would be no fault of theirs
    came = await moment(world, step.target, "case", WAITED)
    if came and (wire := world.wire("leader")):
        await _lead_twice(world, wire, step)
    world.armed_crashes -= 1


async def _lead_twice(world: "World", wire: Wire, step: Step) -> None:
    wire.faults.append(WireFault("late", 10**6, now() + TWO_FOR, part="/leases/", seconds=TWO_FOR))
    for part in OF_WRITES:
        wire.hold_back(part, TWO_FOR / 2)
    await _free_lease(world, step)
    await asyncio.sleep(TWO_FOR)
    for part in OF_WRITES:
        wire.hold_back(part, 0.0)


KINDS = (
    StepKind("crash", 3, _draw_crash, _crash),
    StepKind("freeze", 2, _draw_freeze, _freeze),
    StepKind("stale", 2, _draw_stale, _stale),
    StepKind("free-lease", 1, _draw_nothing, _free_lease),
    StepKind("two-leaders", 0, _draw_two, _two_leaders, each="1 in one of 17 seeds"),
)
