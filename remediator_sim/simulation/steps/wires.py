"""What goes wrong between a replica and the API server, and at the API server itself."""

import asyncio
from random import Random
from typing import TYPE_CHECKING

from remediator_sim.simulation.clock import now
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import REPLICAS, WATCHED, Drawn, Fleet, StepKind, drawn
from remediator_sim.simulation.wire import WireFault

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

WRITES = ("POST", "PATCH", "PUT", "DELETE")


def _draw_storm(chance: Random, fleet: Fleet) -> Drawn:
    code, share = chance.choice((409, 429, 500, 503, 504)), chance.choice((0.3, 0.7, 1.0))
    seconds, retry_after = chance.choice((20, 90, 300)), chance.choice((1, 30))
    return drawn(chance.choice(REPLICAS), code=code, seconds=seconds, share=share, retry_after=retry_after)


async def _storm(world: "World", step: Step) -> None:
    methods = WRITES if step["code"] == 409 else ()
    until = now() + step["seconds"]
    code, share, wait = step["code"], step["share"], step["retry_after"]
    world.fault(step.target, WireFault("refuse", 10**6, until, methods, code=code, share=share, seconds=wait))


def _draw_lost(chance: Random, fleet: Fleet) -> Drawn:
    what, seconds = chance.choice(("lose", "double", "late")), chance.choice((3.0, 8.0))
    return drawn(chance.choice(REPLICAS), what=what, count=chance.randint(1, 6), seconds=seconds)


async def _lost(world: "World", step: Step) -> None:
    """Some of the next writes, or of the requests that a plan written by hand names, come to no answer in time."""
    words = {"methods": WRITES, "part": ""} | dict(step.words)
    until, methods, part = now() + 1800, words["methods"], words["part"]
    world.fault(step.target, WireFault(step["what"], step["count"], until, methods, part, seconds=step["seconds"]))


def _draw_watch(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(REPLICAS), part=chance.choice(WATCHED))


async def _cut(world: "World", step: Step) -> None:
    if wire := world.wire(step.target):
        wire.cut_streams(step["part"])


async def _silence(world: "World", step: Step) -> None:
    if wire := world.wire(step.target):
        wire.silence(step["part"])


def _draw_lag(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(REPLICAS), part=chance.choice(WATCHED), seconds=chance.choice((1.0, 5.0, 20.0)))


async def _hold_back(world: "World", step: Step) -> None:
    if wire := world.wire(step.target):
        wire.hold_back(step["part"], step["seconds"])


def _draw_nothing(chance: Random, fleet: Fleet) -> Drawn:
    return drawn()


async def _compact(world: "World", step: Step) -> None:
    world.server.faults.drop_history()
    world.network.cut()


def _draw_away(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(seconds=chance.choice((5, 60, 1200)))


async def _away(world: "World", step: Step) -> None:
    world.network.leave()
    await asyncio.sleep(step["seconds"])
    world.network.away = False
    world.note("server", "is back")


def _draw_apart(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(REPLICAS), seconds=chance.choice((5, 20, 120)))


async def _apart(world: "World", step: Step) -> None:
    """One replica alone cannot reach the server."""
    if wire := world.wire(step.target):
        wire.part(away=True)
        await asyncio.sleep(step["seconds"])
        wire.part(away=False)


async def _unlisted(world: "World", step: Step) -> None:
    """The Pods of all namespaces cannot be listed."""
    world.fault(step.target, WireFault("refuse", 10**6, now() + step["seconds"], ("GET",), "/api/v1/pods", code=504))


def _draw_unlisted(chance: Random, fleet: Fleet) -> Drawn:
    return drawn("leader", seconds=chance.choice((90, 300)))


UNLISTED = StepKind(
    "unlisted", 0, _draw_unlisted, _unlisted, each="1 in most of the plans in which gangs are on three nodes"
)
KINDS = (
    StepKind("storm", 3, _draw_storm, _storm),
    StepKind("lost", 4, _draw_lost, _lost),
    StepKind("cut", 2, _draw_watch, _cut),
    StepKind("silence", 2, _draw_watch, _silence),
    StepKind("lag", 2, _draw_lag, _hold_back),
    StepKind("compact", 1, _draw_nothing, _compact),
    StepKind("away", 1, _draw_away, _away),
    StepKind("apart", 1, _draw_apart, _apart),
    UNLISTED,
)
