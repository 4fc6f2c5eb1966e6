"""The few steps of a plan that matter: delta debugging over its steps."""

from collections.abc import Callable

from remediator_sim.simulation.plan import Plan, Step


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
