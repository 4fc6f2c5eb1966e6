"""What comes between two writes of the product: something stops what a replica does not hear of, or while none runs."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from remediator.kube.wire import errors
from remediator_sim.invariants.contract import CASES
from remediator_sim.manifests import create
from remediator_sim.plain import NODES
from remediator_sim.simulation.clock import now
from remediator_sim.simulation.moments import moment
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps import edits, nodes, roles, users
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn
from remediator_sim.simulation.wire import WireFault

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

PATIENCE = 900.0  # seconds for which the moment is waited for
GUARDED, REFUSED, DEAD = 40.0, 35.0, 30.0  # seconds: a drain is held, Pods are refused, nobody runs
RACE = 0.06  # seconds within which a write of a user meets one of ours
SHORT, LONG = 120, 600  # seconds for which something stops a repair
FORGED = 99  # the number of an attempt that no case comes to
PERFORMED = {kind.name: kind.perform for part in (edits, nodes, roles, users) for kind in part.KINDS}
# The kinds of step that stop what is under way on a node, and the part of the path of the watch that tells of each.
STOPS = {
    "hold": "noderemediations",
    "delete-case": "noderemediations",
    "strip": "noderemediations",
    "exclude": "nodes",
    "join-control-plane": "nodes",
    "down": "nodes",
    "blind": "nodes",
    "heal": "nodes",
    "mode": "remediationpolicies",
    "pause": "namespaces?",
}


async def _stop(world: "World", step: Step) -> None:
    """Perform the step that stops what is under way on the node."""
    targets: Iterable[str] = [step.target]
    if step["stop"] == "mode":
        named = (world.look(CASES, name)["spec"].get("policyName", "") for name in world.open_cases(step.target))
        targets = sorted({name for name in named if name})
    mode = "Paused" if step["seconds"] == SHORT else "DryRun"
    words = (("seconds", step["seconds"]), ("mode", mode), ("role", roles.LABEL))
    for target in targets:
        await PERFORMED[step["stop"]](world, Step(step.at, step["stop"], target, words))


def _drawn(chance: Random, fleet: Fleet, stops: Iterable[str], *moments: str) -> Drawn:
    name, stop, seconds = chance.choice(moments), chance.choice(sorted(stops)), chance.choice((SHORT, LONG))
    return drawn(chance.choice(fleet.sick or fleet.nodes), moment=name, stop=stop, seconds=seconds)


def _draw_unheard(chance: Random, fleet: Fleet) -> Drawn:
    return _drawn(chance, fleet, STOPS, "claim", "drain", "intent")


async def _unheard(world: "World", step: Step) -> None:
    """Something stops what the leader does, whose watch of it has just fallen silent, and for a while no Pod is made.

    Where it comes during a drain, a budget of Pods holds that instead.
    """
    async with asyncio.TaskGroup() as group:
        if step["moment"] == "drain":
            held = Step(step.at, "guard", step.target, (("seconds", GUARDED),))
            group.create_task(PERFORMED["guard"](world, held))
        if not await moment(world, step.target, step["moment"], PATIENCE):
            return
        world.note("plan", f"{step['moment']} of {step.target}: {step['stop']}, which the leader does not hear of")
        if wire := world.wire("leader"):
            wire.silence(STOPS[step["stop"]])
        if step["moment"] != "drain":
            world.fault("leader", WireFault("refuse", 10**6, now() + REFUSED, ("POST",), "/pods"))
        await _stop(world, step)


def _draw_killed(chance: Random, fleet: Fleet) -> Drawn:
    return _drawn(chance, fleet, STOPS, "claim", "drained", "intent", "intent")


async def _killed_between(world: "World", step: Step) -> None:
    """All replicas die between two writes, and something stops what they did before one runs again."""
    world.armed_crashes += 1
    came = await moment(world, step.target, step["moment"], PATIENCE)
    world.armed_crashes -= 1
    if not came:
        return
    world.note("plan", f"{step['moment']} of {step.target}: {step['stop']}, and no replica runs")
    for model in world.replicas.values():
        model.crash()
    async with asyncio.TaskGroup() as group:
        group.create_task(_stop(world, step))
        await asyncio.sleep(DEAD)
        for model in world.replicas.values():
            model.start()


def _draw_mark(chance: Random, fleet: Fleet) -> Drawn:
    name = chance.choice(("case", "claim"))
    return drawn(chance.choice(fleet.sick or fleet.nodes), moment=name, after=round(chance.uniform(0.0, RACE), 4))


async def _mark(world: "World", step: Step) -> None:
    """A user taints and annotates a node at the moment at which we do."""
    if not await moment(world, step.target, step["moment"], PATIENCE):
        return
    await asyncio.sleep(step["after"])
    taint = {"key": f"example.com/rack-{round(step.at)}", "value": "7", "effect": "PreferNoSchedule"}
    notes = {f"example.com/seen-{round(step.at)}": "by ann"}
    for _ in range(5):
        node = world.look("nodes", step.target)
        meta = {"resourceVersion": node["metadata"].get("resourceVersion"), "annotations": notes}
        taints = [*(node["spec"].get("taints") or ()), taint]
        with suppress(errors.ApiError):
            await world.client.patch(NODES, step.target, {"metadata": meta, "spec": {"taints": taints}})
            world.judge.person(step.target, annotations=notes, taints=[taint])
            return


def _draw_forge(chance: Random, fleet: Fleet) -> Drawn:
    name = chance.choice(("claim", "drain", "intent"))
    return drawn(chance.choice(fleet.sick or fleet.nodes), moment=name, template=chance.choice(("reboot", "reset-gpu")))


async def _forge(world: "World", step: Step) -> None:
    """A user makes a NodeOperation beside the attempts of a case."""
    if not await moment(world, step.target, step["moment"], PATIENCE):
        return
    node = world.look("nodes", step.target)["metadata"].get("uid", "")
    for name in world.open_cases(step.target):
        spec = {"nodeName": step.target, "nodeUID": node, "caseUID": world.look(CASES, name)["metadata"]["uid"]}
        spec |= {"attempt": FORGED, "templateName": step["template"], "requestedBy": name}
        head = {"apiVersion": "remediator.dev/v1alpha1", "kind": "NodeOperation"}
        with suppress(errors.ApiError):
            await create(world.client, head | {"metadata": {"name": f"by-hand-{name}"}, "spec": spec})


KINDS = (
    StepKind("unheard", 0, _draw_unheard, _unheard, each="2 in a fifth of the seeds"),
    StepKind("killed-between", 0, _draw_killed, _killed_between, each="1 in a fifth of the seeds"),
    StepKind("mark", 0, _draw_mark, _mark, each="2 in a sixth of the seeds"),
    StepKind("forge", 0, _draw_forge, _forge, each="1 in a sixth of the seeds"),
)
