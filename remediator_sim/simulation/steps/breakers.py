"""What people do about breakers on failures: they close all that are open, and sometimes those that are not."""

from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from remediator.core import names
from remediator.kube import api
from remediator.kube.wire import errors
from remediator_sim.plain import plain
from remediator_sim.simulation.clock import true_time
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World


def _draw(chance: Random, fleet: Fleet) -> Drawn:
    return drawn()


async def _close(world: "World", step: Step) -> None:
    """Close the breakers of the budgets and policies of the plan now."""
    now = true_time().strftime("%Y-%m-%dT%H:%M:%SZ")
    for kind, named in ((plain(api.BUDGET), world.plan.budgets), (plain(api.POLICY), world.plan.policies)):
        for name, _ in named:
            with suppress(errors.ApiError):
                await world.client.patch(kind, name, {"metadata": {"annotations": {names.BREAKER_CLOSED_AT: now}}})


KINDS = (StepKind("close-breakers", 0, _draw, _close, each="1 in plans whose budget has a breaker on failures"),)
