"""What people do to what is ours: they edit and delete policies, budgets, cases and operations, and take marks off."""

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from remediator.core import names
from remediator.kube import api
from remediator.kube.wire import errors
from remediator_sim.apiserver.status import Obj
from remediator_sim.invariants.contract import BUDGETS
from remediator_sim.manifests import create
from remediator_sim.plain import NODES, plain
from remediator_sim.simulation.cluster import budget
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

CASE_KIND, OPERATION_KIND = plain(api.CASE), plain(api.OPERATION)
POLICY_KIND, BUDGET_KIND = plain(api.POLICY), plain(api.BUDGET)
# What of a policy is changed for a while.
EDITS: tuple[Obj, ...] = (
    {"verify": {"timeout": "5m"}},
    {"verify": {"settle": "10m"}},
    {"attempts": {"max": 1}},
    {"correlation": {"nodes": 2, "within": "30m"}},
    {"severity": "Info"},
    {"ladder": [{"operation": "reboot", "attempts": 1}]},
    {"nodeSelector": {"matchExpressions": [{"key": "nvidia.com/gpu.present", "operator": "DoesNotExist"}]}},
)


def _draw_policy(chance: Random, fleet: Fleet) -> Drawn:
    mode, seconds = chance.choice(("DryRun", "Paused")), chance.choice((60, 900))
    return drawn(chance.choice(fleet.policies), mode=mode, seconds=seconds)


async def _mode(world: "World", step: Step) -> None:
    with suppress(errors.ApiError):
        await world.client.patch(POLICY_KIND, step.target, {"spec": {"mode": step["mode"]}})
        await asyncio.sleep(step["seconds"])
        await world.client.patch(POLICY_KIND, step.target, {"spec": {"mode": "Enforce"}})


async def _delete_policy(world: "World", step: Step) -> None:
    """Delete a policy, and create it again later."""
    with suppress(errors.ApiError):
        await world.client.delete(POLICY_KIND, step.target)
        await asyncio.sleep(step["seconds"])
        await create(world.client, world.policy(step.target))


def _draw_budget(chance: Random, fleet: Fleet) -> Drawn:
    return drawn("fleet", most=chance.choice((0, 1, 3)), seconds=chance.choice((60, 900)))


async def _edit_budget(world: "World", step: Step) -> None:
    """Let fewer nodes be unavailable for a while."""
    before = world.look(BUDGETS, step.target)["spec"]
    fewer = {"minAvailable": None, "maxUnavailable": None} | {"maxUnavailable": step["most"]}
    with suppress(errors.ApiError):
        await world.client.patch(BUDGET_KIND, step.target, {"spec": fewer})
        await asyncio.sleep(step["seconds"])
        words = {word: before.get(word) for word in ("minAvailable", "maxUnavailable")}
        await world.client.patch(BUDGET_KIND, step.target, {"spec": words})


def _draw_node(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(fleet.sick or fleet.nodes))


async def _delete_case(world: "World", step: Step) -> None:
    for name in world.open_cases(step.target):
        with suppress(errors.ApiError):
            await world.client.delete(CASE_KIND, name)


async def _strip(world: "World", step: Step) -> None:
    """Delete the case of a node, and do not wait for what its finalizer is there for."""
    for name in world.open_cases(step.target):
        with suppress(errors.ApiError):
            await world.client.delete(CASE_KIND, name)
            await world.client.patch(CASE_KIND, name, {"metadata": {"finalizers": None}})


async def _release(world: "World", step: Step) -> None:
    """Give a node back that waits for a user."""
    for name in world.open_cases(step.target):
        with suppress(errors.ApiError):
            await world.client.patch(CASE_KIND, name, {"spec": {"release": True}})


async def _delete_operation(world: "World", step: Step) -> None:
    for name in world.open_operations(step.target):
        with suppress(errors.ApiError):
            await world.client.delete(OPERATION_KIND, name)


async def _untaint(world: "World", step: Step) -> None:
    """Take the mark of our case off a node."""
    node = world.look("nodes", step.target)
    taints = [taint for taint in node["spec"].get("taints") or () if taint["key"] != names.CASE_TAINT]
    with suppress(errors.ApiError):
        version = {"metadata": {"resourceVersion": node["metadata"].get("resourceVersion")}}
        await world.client.patch(NODES, step.target, {"spec": {"taints": taints}} | version)


def _draw_edit(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(fleet.policies), edit=chance.choice(EDITS), seconds=chance.choice((60, 900)))


async def _edit_policy(world: "World", step: Step) -> None:
    """Change a part of a policy, and later back what there was."""
    before = world.policy(step.target)["spec"]
    with suppress(errors.ApiError):
        await world.client.patch(POLICY_KIND, step.target, {"spec": step["edit"]})
        await asyncio.sleep(step["seconds"])
        await world.client.patch(POLICY_KIND, step.target, {"spec": _undone(before, step["edit"])})


def _undone(before: Obj, edit: Obj) -> Obj:
    """The merge patch that takes an edit back."""
    parts = {name: before.get(name) for name in edit}
    return {
        name: {key: part.get(key) for key in edit[name]} if isinstance(part, dict) else part
        for name, part in parts.items()
    }


def _draw_delete_budget(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(seconds=chance.choice((2, 60, 600)))


async def _delete_budget(world: "World", step: Step) -> None:
    """Delete each budget of the plan, and make it again later."""
    for name, words in world.plan.budgets:
        with suppress(errors.ApiError):
            await world.client.delete(BUDGET_KIND, name)
            await asyncio.sleep(step["seconds"])
            await create(world.client, budget(name, dict(words)))


KINDS = (
    StepKind("mode", 1, _draw_policy, _mode),
    StepKind("delete-policy", 1, _draw_policy, _delete_policy),
    StepKind("edit-budget", 1, _draw_budget, _edit_budget),
    StepKind("delete-case", 1, _draw_node, _delete_case),
    StepKind("strip", 1, _draw_node, _strip),
    StepKind("release", 1, _draw_node, _release),
    StepKind("delete-operation", 1, _draw_node, _delete_operation),
    StepKind("untaint", 1, _draw_node, _untaint),
    StepKind("edit-policy", 2, _draw_edit, _edit_policy),
    StepKind("delete-budget", 1, _draw_delete_budget, _delete_budget),
)
