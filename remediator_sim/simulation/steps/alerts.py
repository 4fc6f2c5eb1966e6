"""Alerts that fire, and end or do not; Events that repeat."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

from remediator.kube.api.builtin import EVENT
from remediator.kube.wire import errors
from remediator.kube.wire.times import stamp
from remediator_sim.plain import plain
from remediator_sim.simulation.clock import true_time
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

NAMES = ("NodeDown", "GpuHot")
FOR_EVER, MINUTE = 10**6, 60.0
EVENTS = plain(EVENT)


def _draw_alert(chance: Random, fleet: Fleet) -> Drawn:
    node = chance.choice((*(fleet.sick or fleet.nodes), ""))
    return drawn(node, name=chance.choice(NAMES), seconds=chance.choice((20, 300, 1500, FOR_EVER)))


async def _alert(world: "World", step: Step) -> None:
    """An alert about a node, or about none, which ends after so many seconds."""
    alert = world.alerts.fire(step["name"], step.target)
    await asyncio.sleep(step["seconds"])
    world.alerts.resolve(alert)


def _draw_events(chance: Random, fleet: Fleet) -> Drawn:
    seconds, back = chance.choice((300, 1500)), chance.choice((False, True))
    return drawn(chance.choice(fleet.nodes), reason="TaskHung", seconds=seconds, back=back)


async def _events(world: "World", step: Step) -> None:
    """A detector without a Condition tells of one thing again and again, by an Event that counts up each minute; with
    `back` the clock of its writer goes back a minute each time, and on again.
    """
    name, begin = f"{step.target}.{step['reason'].lower()}", true_time()
    about = {"kind": "Node", "name": step.target, "uid": step.target}
    first = {"involvedObject": about, "reason": step["reason"], "firstTimestamp": stamp(begin)}
    for count in range(1, 1 + int(step["seconds"] // MINUTE)):
        times = {"count": count, "lastTimestamp": stamp(true_time())}
        with suppress(errors.ApiError):
            if count == 1:
                await world.client.create(EVENTS, {"metadata": {"name": name}} | first | times, namespace="default")
            else:
                await world.client.patch(EVENTS, name, times, namespace="default")
        if step["back"]:
            await _go_back(world, name)
        await asyncio.sleep(MINUTE)


async def _go_back(world: "World", event: str) -> None:
    """The Event has the same count, with another time."""
    for ago in (MINUTE, 0.0):
        with suppress(errors.ApiError):
            times = {"lastTimestamp": stamp(true_time() - timedelta(seconds=ago))}
            await world.client.patch(EVENTS, event, times, namespace="default")


KINDS = (
    StepKind("alert", 0, _draw_alert, _alert, each="1 to 3 in a sixth of the seeds"),
    StepKind("events", 0, _draw_events, _events, each="none by chance; a plan of `test_features.py` has one"),
)
