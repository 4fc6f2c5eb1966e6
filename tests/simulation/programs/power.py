"""Scenarios of a power-cycle: an API server and the BMC of the node, for the program by HTTPS."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from remediator_sim.simulation import facts, loop
from remediator_sim.simulation.clock import HostClock
from remediator_sim.simulation.node import NodeModel
from tests.harness.apiserver import NODE, OPERATION, ApiServer, MemoryServer, change
from tests.harness.objects import BOOT, kubelet_lease
from tests.operations.conftest import Program
from tests.operations.fake_bmc import FakeBmc
from tests.simulation.programs.api import Change, all_of, put, refuse, upon
from tests.simulation.programs.scenario import Outcome, Scenario, model_node, run_model, run_program

ORDERS = {"caseUID": "case-1", "offSeconds": 0, "waitSeconds": 1, "detachSeconds": 0}
TAINT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
STATES = {
    facts.POWER_STAYS: lambda bmc: bmc.ignores.add("ForceOff"),
    facts.BMC_LIES: lambda bmc: bmc.become("Off", "Off", 0),
    facts.BMC_SILENT: lambda bmc: bmc.close(),
}
OFF = "it is off"


def cycle(name: str, *changes: Change, bmc: tuple[str, ...] = (), **more: Any) -> Scenario:
    """A power-cycle of a node whose kubelet does not report; `bmc`: facts of its BMC."""
    silent = lambda api: api.ready("Unknown")  # noqa: E731
    told = {"EXPECTED_BOOT_ID": BOOT}
    return Scenario("power-cycle", name, all_of(silent, *changes), bmc, parameters=ORDERS | more, variables=told)


def volume(api: ApiServer) -> None:
    """A volume that is attached to the node."""
    spec = {"attacher": "csi.example", "nodeName": "gpu-1", "source": {"persistentVolumeName": "a"}}
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment"}
    api.put(kind | {"metadata": {"name": "a"}, "spec": spec})


def tainted(api: ApiServer) -> None:
    """A user has declared it out of service."""
    api.edit(NODE, lambda node: node["spec"]["taints"].append(TAINT))


def renewing(api: ApiServer) -> None:
    """The kubelet renews its Lease each time that somebody looks."""
    seconds = iter(range(60))

    def hear(method: str, path: str) -> None:
        if "kube-node-lease" in path:
            api.put(kubelet_lease(next(seconds)))

    api.on_request = hear


LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": "another"}}
STARTED = put(LEASE | {"metadata": {"name": "op-1", "namespace": "remediator-operations"}})
ALL = (
    cycle("it is dead"),
    cycle("a volume hangs on it", volume),
    cycle("a volume, and a user has declared it out of service", volume, tainted),
    cycle("volumes may not be listed", volume, refuse(403, path="volumeattachments")),
    cycle("the node may not be written", volume, refuse(403, path="/nodes", method="PATCH")),
    cycle("the node changes in between", volume, refuse(409, path="/nodes", method="PATCH")),
    cycle("it is off", bmc=(OFF,)),
    cycle("it is off, and a volume hangs on it", volume, bmc=(OFF,)),
    cycle("this attempt was started before, and it is off", STARTED, bmc=(OFF,)),
    cycle("this attempt was started before", STARTED),
    cycle("the power does not go", bmc=(facts.POWER_STAYS,)),
    cycle("it is Ready", lambda api: api.ready("True")),
    cycle("nothing is said of it", lambda api: api.ready("")),
    cycle("its kubelet says that it is not Ready", lambda api: api.ready("False")),
    cycle("its kubelet renews its Lease", renewing),
    cycle("it has booted since", change(NODE, "status", nodeInfo={"bootID": "another"})),
    cycle("the operation has ended", change(OPERATION, "status", phase="Cancelled")),
    cycle("the case does not hold the node", change(NODE, "spec", taints=[])),
    cycle(
        "the case lets the node go while the Lease is watched", upon("kube-node-lease", change(NODE, "spec", taints=[]))
    ),
    cycle("the attempt's Lease may not be created", refuse(403, path="remediator-operations/leases", method="POST")),
    cycle("a time that is none", waitSeconds="soon"),
    cycle("the server fails", refuse(500, 503, path="/nodes")),
)
CASES = [
    *ALL,
    pytest.param(cycle("its BMC is silent", bmc=(facts.BMC_SILENT,)), marks=pytest.mark.long),
]


def _world(api: ApiServer, power: str) -> dict[str, Any]:
    """What was done to the world."""
    nodes = [node for node in api.stored("nodes") if node["metadata"]["name"] == "gpu-1"]
    taints = [[taint["key"] for taint in node["spec"].get("taints") or ()] for node in nodes]
    notes = [node["metadata"].get("annotations") for node in nodes]
    return {"leases": sorted(api.leases), "taints": taints, "notes": notes, "power": power}


def outcome_of_program(scenario: Scenario, folder: Path) -> Outcome:
    """Run the program."""
    api, bmc = ApiServer(folder), FakeBmc(folder / "bmc-state")
    try:
        program = Program(folder, "power_cycle")
        program.variables |= api.environment() | {"BMC_DIR": str(bmc.mount(folder / "bmc"))}
        if OFF in scenario.facts:
            bmc.become("Off", "Off", 0)
        for fact in scenario.facts:
            STATES.get(fact, lambda bmc: None)(bmc)
        scenario.real(api)
        ended = run_program(scenario, program)
        resets = "".join(bmc.resets)
        return Outcome(*ended, _world(api, {"ForceOffOn": "cycled", "On": "on"}.get(resets, "")))
    finally:
        api.close()
        bmc.close()


class _Machine(NodeModel):
    """What becomes of its power is written down, and nothing comes of it."""

    power = ""
    down = False

    @property
    def off(self) -> bool:
        return self.down

    def cut_power(self, attempt: str) -> None:
        self.power = "cut"

    def begin_power(self, attempt: str, seconds: float) -> None:
        self.power = "cycled" if self.power == "cut" else "on"


def outcome_of_model(scenario: Scenario) -> Outcome:
    """Run the model."""

    async def whole() -> Outcome:
        api = MemoryServer(HostClock().clock)
        await api.begin()
        scenario.real(api)
        node = model_node(replace(scenario, facts=tuple(fact for fact in scenario.facts if fact != OFF)))
        node.__class__ = _Machine
        node.down = OFF in scenario.facts
        ended = await run_model(scenario, node, api.client())
        return Outcome(*ended, _world(api, {"cut": ""}.get(node.power, node.power)))

    return loop.run(whole())
