"""A plan that fails is shortened to the steps that matter."""

from remediator_sim.simulation.minimise import minimised
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
