"""The model of each operation does what its program does: both run through the same scenarios."""

import asyncio
from collections import defaultdict
from random import Random

import pytest

from remediator.kube.wire.client import Client
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.manifests import documents
from remediator_sim.simulation import facts, loop
from remediator_sim.simulation.clock import HostClock
from remediator_sim.simulation.programs import DONE, FAILED, PROGRAMS, REFUSED, STOPPED, Ended, Run
from tests.harness.apiserver import MemoryServer
from tests.operations.conftest import Program
from tests.operations.scripted import Node, answer
from tests.operations.test_gpu_check import libraries  # noqa: F401
from tests.simulation.programs import api, gpu, host, power
from tests.simulation.programs.scenario import Outcome, Scenario, model_node

NEVER = {("collect-diagnostics", FAILED)}  # what cannot be read is no failure
KILLED_BY_ITSELF = 137  # how a reboot ends that worked


def require_alike(real: Outcome, model: Outcome) -> None:
    """The same exit code, the same effects, and the model's sentence is how the program's begins."""
    assert (model.code, model.world) == (real.code, real.world), f"{real}\n{model}"
    assert real.message.startswith(model.message.removesuffix("}")), f"{real}\n{model}"  # JSON goes on


@pytest.mark.sampled
@pytest.mark.parametrize("scenario", host.ALL, ids=str)
def test_a_model_ends_as_its_program_does_on_the_same_node(scenario, tmp_path):
    require_alike(host.outcome_of_program(scenario, tmp_path), host.outcome_of_model(scenario))


@pytest.mark.sampled
@pytest.mark.parametrize("scenario", api.CASES, ids=str)
def test_a_model_ends_as_its_program_does_before_the_same_server(scenario, tmp_path):
    require_alike(api.outcome_of_program(scenario, tmp_path), api.outcome_of_model(scenario))


@pytest.mark.sampled
@pytest.mark.parametrize("scenario", gpu.CASES, ids=str)
def test_a_model_ends_as_its_program_does_with_the_same_gpus(scenario, tmp_path, libraries):  # noqa: F811
    require_alike(gpu.outcome_of_program(scenario, tmp_path, libraries), gpu.outcome_of_model(scenario))


@pytest.mark.sampled
@pytest.mark.parametrize("scenario", power.CASES, ids=str)
def test_a_model_ends_as_its_program_does_with_the_same_bmc(scenario, tmp_path):
    require_alike(power.outcome_of_program(scenario, tmp_path), power.outcome_of_model(scenario))


@pytest.mark.long
@pytest.mark.parametrize("scenario", host.FENCED_OFF, ids=str)
def test_in_another_boot_and_after_its_marker_both_refuse_whatever_else_is_so(scenario, tmp_path):
    real = host.outcome_of_program(scenario, tmp_path)
    require_alike(real, host.outcome_of_model(scenario))
    assert real.code == REFUSED


@pytest.mark.long
@pytest.mark.parametrize("scenario", api.SHAKEN, ids=str)
def test_a_server_that_fails_at_first_makes_no_difference_between_them(scenario, tmp_path):
    require_alike(api.outcome_of_program(scenario, tmp_path), api.outcome_of_model(scenario))


@pytest.mark.slow
def test_every_model_has_scenarios_in_which_it_is_done_refused_and_failed():
    ends: defaultdict[str, set[int]] = defaultdict(set)
    for part in (host, api, gpu, power):
        for scenario in part.ALL:
            code = part.outcome_of_model(scenario).code
            ends[scenario.template].add(DONE if code == KILLED_BY_ITSELF else code)
    wanted = {(name, code) for name in PROGRAMS for code in (DONE, FAILED, REFUSED)} - NEVER
    assert {(name, code) for name, codes in ends.items() for code in codes} == wanted


def test_every_template_of_a_shipped_policy_has_a_model():
    specs = [document["spec"] for document in documents(("deploy/policies", "operations")) if "spec" in document]
    rungs = {rung["operation"] for spec in specs for rung in spec.get("ladder", ())}
    after = {name for spec in specs for name in spec.get("after", ())}
    assert rungs | after <= set(PROGRAMS)


class Stopped:
    """A program that is sent SIGTERM, and its model."""

    def __init__(self, scenario: Scenario, client: Client) -> None:
        node = model_node(scenario)
        self.run = Run(node, node, scenario.template, scenario.environment(), client, Random(1))

    async def model(self) -> Ended:
        """Stopped after half a minute."""
        task = asyncio.ensure_future(PROGRAMS[self.run.template](self.run))
        await asyncio.sleep(30)
        self.run.stopped = True
        task.cancel()
        return await task


def terminated(program: Program, scenario: Scenario, begun) -> Ended:
    """Stopped as soon as it has begun."""
    assert isinstance(scenario.parameters, dict)
    process = program.start(parameters=scenario.parameters, **scenario.variables)
    asyncio.run(begun())
    process.terminate()
    ran = program.finish(process)
    return Ended(ran.code, ran.message)


async def until(holds) -> None:
    while not holds():  # noqa: ASYNC110
        await asyncio.sleep(0.02)


def test_a_drain_that_is_stopped_has_no_result(tmp_path):
    scenario = api.drain("it is stopped", api.HELD, timeoutSeconds=60)
    server = api.ApiServer(tmp_path)
    program = Program(tmp_path, "drain")
    program.variables |= server.environment()
    scenario.real(server)
    real = terminated(program, scenario, lambda: until(lambda: server.progress))
    server.close()

    async def whole() -> Ended:
        memory = MemoryServer(HostClock().clock)
        await memory.begin()
        scenario.real(memory)
        return await Stopped(scenario, memory.client()).model()

    assert loop.run(whole()) == real == (STOPPED, "stopped by SIGTERM")


def test_a_reboot_that_is_stopped_by_the_shutdown_is_done(tmp_path):
    scenario = host.scene("reboot", "it is stopped", lambda node: None, facts.STAYS_UP)
    node = Node(tmp_path, "reboot")
    (node.root / "proc/sys/kernel/random/boot_id").write_text(f"{host.BOOT}\n")
    node.answers(answer("systemctl reboot"))
    node.program.variables |= scenario.environment()
    real = terminated(node.program, scenario, lambda: until(lambda: node.calls("reboot")))

    async def whole() -> Ended:
        return await Stopped(scenario, Client(EmbeddedServer(seed=1).transport())).model()

    assert loop.run(whole()) == real == (DONE, "reboot of gpu-1 asked for by attempt op-1")
