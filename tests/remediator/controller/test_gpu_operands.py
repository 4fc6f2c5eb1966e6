"""Operands of the GPU operator are paused while an operation works on GPUs, and resumed whatever comes of it."""

import pytest

from remediator_sim.plain import NODES
from tests.harness.controller import DONE, RUNS, Answer, running, until

pytestmark = pytest.mark.sampled("gpu operands")

DCGM, DRIVER, PLUGIN = (f"nvidia.com/gpu.deploy.{operand}" for operand in ("dcgm", "driver", "device-plugin"))
RUN = {DCGM: "true", DRIVER: "true", PLUGIN: "paused-for-mig-change"}
PAUSED = RUN | {DCGM: "paused-for-remediation"}


def operands(harness):
    labels = harness.look("gpu-1")["metadata"]["labels"]
    return {label: value for label, value in labels.items() if "deploy" in label}


@pytest.fixture
async def sick(harness):
    """A node with operands, whose policy resets a GPU; a test makes the template."""
    await harness.policy(ladder=[{"operation": "reset-gpu", "attempts": 1}])
    await harness.node("gpu-1", "True")
    await harness.change(NODES, "gpu-1", metadata={"labels": RUN})
    return harness


@pytest.mark.parametrize(
    "answer",
    [DONE, Answer(exit=1, message="failed: x"), Answer(exit=2, message="refused: in use")],
    ids=["ok", "no", "not"],
)
async def test_they_are_paused_before_the_pod_is_made_and_resumed_when_it_has_ended(sick, answer):
    seen = []

    async def look(harness, node):
        seen.append(operands(harness))

    await sick.template("reset-gpu", pauseGpuOperands=True)
    sick.answer("reset-gpu", Answer(exit=answer.exit, message=answer.message, does=look))
    async with running(sick):
        await until(lambda: seen)
        await until(lambda: operands(sick) == RUN)
    assert seen == [PAUSED], "the driver goes on, and what another has paused is left alone"


async def test_a_controller_that_comes_after_a_crash_resumes_them(sick):
    await sick.template("reset-gpu", pauseGpuOperands=True)
    sick.answer("reset-gpu", RUNS)
    async with running(sick):
        await until(lambda: sick.pods("reset-gpu"))
        await sick.quiet()
        assert operands(sick) == PAUSED, "while it works they stay paused"
    await sick.finish("reset-gpu")
    assert operands(sick) == PAUSED, "nobody is there to resume them"
    async with running(sick):
        await until(lambda: operands(sick) == RUN)


async def test_an_operation_that_does_not_ask_for_it_pauses_nothing(sick):
    await sick.template("reset-gpu")
    sick.answer("reset-gpu", RUNS)
    async with running(sick):
        await until(lambda: sick.pods("reset-gpu"))
        assert operands(sick) == RUN
