"""One scenario: what is so when a program starts, made so for the program and for its model, and what came of it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from remediator.kube.wire.client import Client
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.simulation.fault import Fault
from remediator_sim.simulation.node import NodeModel
from remediator_sim.simulation.programs import PROGRAMS, Ended, Run
from tests.harness import node_programs
from tests.operations.conftest import Program

BOOT, ATTEMPT = "gpu-1-boot-1", "op-1"


class Outcome(NamedTuple):
    """The end of a program, and what it did to the world."""

    code: int
    message: str
    world: Mapping[str, Any]


@dataclass(frozen=True)
class Scenario:
    """`real` makes it so where the program runs, `facts` and `fault` where its model does.

    `parameters` are PARAMETERS, a text as it is; `variables` are more of the environment.
    """

    template: str
    name: str
    real: Callable[[Any], object] = lambda place: None
    facts: tuple[str, ...] = ()
    fault: Fault | None = None
    parameters: dict[str, Any] | str = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    markers: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.template}: {self.name}"

    def environment(self) -> dict[str, str]:
        """What the controller passes."""
        text = self.parameters if isinstance(self.parameters, str) else json.dumps(self.parameters)
        told = {"NODE_NAME": "gpu-1", "ATTEMPT_ID": ATTEMPT, "EXPECTED_BOOT_ID": BOOT, "PARAMETERS": text}
        return told | self.variables


def run_program(scenario: Scenario, program: Program) -> Ended:
    """The end of the real program, forked by the fork server."""
    environment = program.variables | scenario.environment()
    finished = node_programs.run([program.path], {"PATH": "/usr/bin:/bin", **environment})
    return Ended(finished.code, program.log.read_text())


def model_node(scenario: Scenario) -> NodeModel:
    """The node of a scenario as its model has it."""

    def note(who: str, text: str) -> None:
        """Nobody reads the story."""

    node = NodeModel("gpu-1", Client(EmbeddedServer(seed=1).transport()), [], Random(1), note)
    node.facts |= set(scenario.facts)
    node.markers |= set(scenario.markers)
    if scenario.fault is not None:
        node.faults[scenario.fault.condition] = scenario.fault
    return node


def run_of(scenario: Scenario, node: NodeModel, client: Client) -> Run:
    """One start of the model."""
    return Run(node, node, scenario.template, scenario.environment(), client, Random(1))


async def run_model(scenario: Scenario, node: NodeModel, client: Client) -> Ended:
    """The end of the model."""
    return await PROGRAMS[scenario.template](run_of(scenario, node, client))
