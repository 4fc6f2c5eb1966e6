"""Other systems that work on a node for a while and leave a sign on it, and detectors of others that fall silent."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from remediator.kube.wire import errors
from remediator.kube.wire.times import stamp
from remediator.kube.wire.transport import MERGE_PATCH, STRATEGIC_PATCH
from remediator_sim.plain import NODES, Object
from remediator_sim.simulation.clock import true_time
from remediator_sim.simulation.moments import moment
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

PATIENCE, AGAIN = 3000.0, 5.0  # seconds for which a moment is waited for, and between two tries to write


class ForeignSign(NamedTuple):
    """A key, of what, and its value while the other system works on the node."""

    part: str
    key: str
    value: str


SIGNS = (
    ForeignSign("taint", "ToBeDeletedByClusterAutoscaler", "1"),
    ForeignSign("taint", "medik8s.io/drain", ""),
    ForeignSign("label", "nvidia.com/gpu-driver-upgrade-state", "drain-required"),
    ForeignSign("label", "cloud.google.com/active-node-maintenance", "ONGOING"),
    ForeignSign("condition", "MaintenanceInProgress", "True"),
)


def _draw_maintain(chance: Random, fleet: Fleet) -> Drawn:
    when = chance.choice(("", "case", "claim", "drain", "drained"))
    words = {"sign": chance.randrange(len(SIGNS)), "moment": when, "seconds": chance.choice((120, 900, 2400))}
    return drawn(chance.choice(fleet.sick or fleet.nodes), **words)


async def _maintain(world: "World", step: Step) -> None:
    """Another system works on a node, from now on or from a moment of its repair on, and is done later."""
    if step["moment"] and not await moment(world, step.target, step["moment"], PATIENCE):
        return
    sign = SIGNS[step["sign"]]
    world.note("plan", f"another system works on {step.target}: {sign.part} {sign.key}")
    await _write(world, step.target, lambda node: WRITES[sign.part](node, sign, True))
    await asyncio.sleep(step["seconds"])
    world.note("plan", f"another system is done with {step.target}: {sign.part} {sign.key}")
    await _write(world, step.target, lambda node: WRITES[sign.part](node, sign, False))


async def _write(world: "World", name: str, change: Callable[[Object], Object]) -> None:
    """Write a change of a node as it is now, again until the server, which may be away, has taken it."""
    while not world.ended:
        body = change(world.look("nodes", name))
        how = {"subresource": "status", "content_type": STRATEGIC_PATCH} if "status" in body else {}
        try:
            await world.client.patch(NODES, name, body, **({"content_type": MERGE_PATCH} | how))
        except errors.NotFound:
            return
        except errors.ApiError:
            await asyncio.sleep(AGAIN)
        else:
            return


def _taint(node: Object, sign: ForeignSign, works: bool) -> Object:
    version = node["metadata"].get("resourceVersion")
    others = [taint for taint in node["spec"].get("taints") or () if taint["key"] != sign.key]
    ours = [{"key": sign.key, "value": sign.value, "effect": "NoSchedule"}] if works else []
    return {"metadata": {"resourceVersion": version}, "spec": {"taints": others + ours}}


def _label(node: Object, sign: ForeignSign, works: bool) -> Object:
    return {"metadata": {"labels": {sign.key: sign.value if works else None}}}


def _condition(node: Object, sign: ForeignSign, works: bool) -> Object:
    at = stamp(true_time())
    condition = {"type": sign.key, "status": sign.value if works else "False", "reason": "ByAnotherSystem"}
    return {"status": {"conditions": [condition | {"lastHeartbeatTime": at, "lastTransitionTime": at}]}}


WRITES = {"taint": _taint, "label": _label, "condition": _condition}


def _draw_quiet(chance: Random, fleet: Fleet) -> Drawn:
    when = chance.choice(("", "case", "claim", "drain", "drained"))
    return drawn(chance.choice(fleet.sick or fleet.nodes), moment=when, seconds=chance.choice((60, 600, 2400)))


async def _quiet(world: "World", step: Step) -> None:
    """The Pod that reports of a node is not Ready for a while, from now on or from a moment of its repair on."""
    if step["moment"] and not await moment(world, step.target, step["moment"], PATIENCE):
        return
    world.note("plan", f"the reporter on {step.target} falls silent")
    world.reporters.silent.add(step.target)
    await asyncio.sleep(step["seconds"])
    world.note("plan", f"the reporter on {step.target} is back")
    world.reporters.silent.discard(step.target)


MAINTAIN = StepKind("maintain", 0, _draw_maintain, _maintain, each="3 in one of 17 seeds")
QUIET = StepKind("quiet-reporter", 0, _draw_quiet, _quiet, each="up to 2 in one of 17 seeds")
KINDS = (MAINTAIN, QUIET)
