"""A plan that fails is shortened to the steps that matter."""

from remediator_sim.simulation.minimise import minimised, shortest
from remediator_sim.simulation.plan import Plan, Step


def test_of_twenty_steps_the_two_that_break_it_together_are_left():
    steps = tuple(Step(float(number), str(number)) for number in range(20))
    plan = Plan(1, (), (), (), steps, 100.0)
    asked = []

    def fails(shorter: Plan) -> bool:
        asked.append(shorter)
        return {"3", "16"} <= {step.kind for step in shorter.steps}

    assert [step.kind for step in minimised(plan, fails).steps] == ["3", "16"]
    assert len(asked) < 60


def test_a_plan_that_breaks_i1_first_is_not_shortened_to_one_that_breaks_i13_only():
    steps = tuple(Step(float(number), str(number)) for number in range(10))
    breaks = {"4": "I1: too many nodes", "7": "I13: too early"}

    def broken(plan: Plan) -> tuple[str, ...]:
        return tuple(breaks[step.kind] for step in plan.steps if step.kind in breaks)

    assert [step.kind for step in shortest(Plan(1, (), (), (), steps, 100.0), broken).steps] == ["4"]


def test_a_plan_that_breaks_nothing_stays_as_it_is():
    plan = Plan(1, (), (), (), (Step(1.0, "crash"),), 100.0)
    assert shortest(plan, lambda plan: ()) == plan
