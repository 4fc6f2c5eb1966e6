"""Scenarios of the program that puts GPUs to work: for the program a scripted NVML and a scripted CUDA driver."""

import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from remediator_sim.simulation import facts, loop
from remediator_sim.simulation.fault import Fault
from tests.operations.test_gpu_check import Gpus
from tests.simulation.programs.scenario import Outcome, Scenario, model_node, run_model

QUICK, SLOW = '{"megabytes": 1, "loadSeconds": 0}', '{"megabytes": 1, "loadSeconds": 0, "seconds": 1}'
IDLE = '{"megabytes": 1, "loadSeconds": 0, "seconds": 1, "idleTest": true}'


def scene(name: str, *so: str, cuda: str = "", nvml: str = "", parameters: str = QUICK, **more: Fault) -> Scenario:
    """A scenario: what CUDA and NVML are told to do."""

    def real(gpus: Gpus) -> None:
        gpus.orders += [cuda] * bool(cuda)
        gpus.listed += [nvml] * bool(nvml)

    return Scenario("gpu-check", name, real, so, parameters=parameters, **more)


WELL = scene("all GPUs work")
BUSY = scene("one is in use", facts.GPU_BUSY, nvml="gpu 1 compute 4242:1048576")
WRONG = scene("one computes wrongly", facts.GPU_WRONG, cuda="miscalculates 0")
TOKEN = "uid-1"


def serves(name: str, port: int, seconds: float, real: Callable[[Gpus], object]) -> Scenario:
    """A scenario of the other end of a measurement."""
    service = {"address": "127.0.0.1", "port": port, "client": "127.0.0.1", "token": TOKEN, "seconds": seconds}
    return Scenario("gpu-check", name, real, parameters=json.dumps({"serve": service}))


def _says_done(port: int) -> Callable[[Gpus], object]:
    """The other node says that it is done as soon as somebody listens."""

    def say() -> None:
        for _ in range(300):
            try:
                with socket.create_connection(("127.0.0.1", port)) as connection:
                    connection.sendall(json.dumps({"token": TOKEN, "done": True}).encode() + b"\n")
                return
            except OSError:
                time.sleep(0.1)

    return lambda gpus: threading.Thread(target=say, daemon=True).start()


TOLD = serves("the other node says that it has measured", 18613, 3600, _says_done(18613))
RARE = (
    serves("the other node never says that it has measured", 18614, 1, lambda gpus: None),
    scene("no driver", facts.NVML_MISSING, nvml="init 9"),
    scene("NVML lists none", facts.NO_GPU, nvml="count 0"),
    scene("one is lost", nvml="gpu 1 error 15", fault=Fault("GpuLost")),
    scene("one does not answer", facts.GPU_HANGS, cuda="hang cuInit", parameters=SLOW),
    scene("one does not answer a test of an idle node", facts.GPU_HANGS, cuda="hang cuInit", parameters=IDLE),
    scene("a size that is none", parameters='{"megabytes": "many"}'),
)
ALL = (WELL, BUSY, WRONG, TOLD, *RARE)
CASES = [*(WELL, BUSY, WRONG, TOLD), *(pytest.param(scenario, marks=pytest.mark.long) for scenario in RARE)]


def outcome_of_program(scenario: Scenario, folder: Path, libraries: Path) -> Outcome:
    """Run the program."""
    gpus = Gpus(folder, libraries)
    scenario.real(gpus)
    assert isinstance(scenario.parameters, str)
    return Outcome(*gpus.check(parameters=scenario.parameters), {})


def outcome_of_model(scenario: Scenario) -> Outcome:
    """Run the model."""

    async def whole() -> Outcome:
        node = model_node(scenario)
        return Outcome(*await run_model(scenario, node, node._client), {})

    return loop.run(whole())
