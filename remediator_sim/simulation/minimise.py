"""The few steps of a plan that matter: delta debugging over its steps."""

from collections.abc import Callable

from remediator_sim.simulation.plan import Plan, Step
from remediator_sim.simulation.seed import play

Broken = Callable[[Plan], tuple[str, ...]]


def _broken(plan: Plan) -> tuple[str, ...]:
    return play(plan).broken


def shortest(plan: Plan, broken: Broken = _broken) -> Plan:
    """The plan with the few steps that break what the whole plan breaks first; as it is where it breaks nothing.

    `broken` gives the sentences of a plan, oldest first, each begun with the name of its promise.
    """
    first = next(iter(broken(plan)), None)
    if first is None:
        return plan
    promise = first[: first.index(":") + 1]
    return minimised(plan, lambda shorter: any(sentence.startswith(promise) for sentence in broken(shorter)))


def minimised(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """A plan that still fails, and of which no single step can be left out. `fails` is asked of shorter plans."""
    steps, size = plan.steps, max(1, len(plan.steps) // 2)
    while True:
        shorter = _without_one_part(plan, steps, size, fails)
        if shorter is not None:
            steps = shorter
            size = max(1, min(size, len(steps) // 2))
        elif size == 1:
            return plan.with_steps(steps)
        else:
            size //= 2


def _without_one_part(
    plan: Plan, steps: tuple[Step, ...], size: int, fails: Callable[[Plan], bool]
) -> tuple[Step, ...] | None:
    """The steps without so many in a row, where that still fails; None where every part is needed."""
    for begin in range(0, len(steps), size):
        shorter = steps[:begin] + steps[begin + size :]
        if len(shorter) < len(steps) and fails(plan.with_steps(shorter)):
            return shorter
    return None
