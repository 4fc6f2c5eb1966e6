"""The gate of new nodes as an API server keeps it: in a policy, in a case, and on the node."""

from typing import Any

import pytest

from remediator.core import names
from remediator.core.case import NewNode, Trigger
from remediator.core.policy import Admit
from remediator.kube import api
from remediator.kube.api import decode, encode
from remediator.kube.api.builtin import NODE
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from tests.builders import a_node, at
from tests.harness.cluster import MemoryCluster
from tests.harness.kinds import CASES, NODES, POLICIES

GATE = NewNode("remediator.dev/unproven", "m1")
SPEC: dict[str, Any] = {
    "mode": "Enforce",
    "nodeSelector": {"matchLabels": {"pool": "a"}},
    "when": [{"condition": "GpuLost"}],
    "ladder": [{"operation": "reboot"}],
}


@pytest.fixture
async def cluster() -> MemoryCluster:
    return MemoryCluster()


@pytest.fixture
def client(cluster: MemoryCluster) -> Client:
    return cluster.client


async def test_a_policy_keeps_its_gate(cluster: MemoryCluster) -> None:
    await cluster.make(POLICIES, "p", **SPEC, admit={"probe": "gpu-check", "taint": GATE.taint})
    policy = decode.remediation_policy(await cluster.client.get(api.POLICY, "p"))
    assert policy.admit == Admit("gpu-check", GATE.taint)


@pytest.mark.parametrize(
    ("taint", "why"),
    [
        ("remediator.dev/case", "name another"),
        ("remediator.dev/degraded", "name another"),
        ("node.kubernetes.io/not-ready", "must be a key of remediator.dev"),
        ("nvidia.com/gpu", "must be a key of remediator.dev"),
        ("remediator.dev/", "must be a key of remediator.dev"),
    ],
)
async def test_a_taint_that_is_not_ours_to_take_off_is_refused(cluster: MemoryCluster, taint: str, why: str) -> None:
    admit = {"probe": "gpu-check", "taint": taint}
    with pytest.raises(errors.Invalid, match=why):
        await cluster.make(POLICIES, "p", **SPEC, admit=admit)


async def test_a_case_keeps_at_which_gate_its_node_waits_and_nobody_changes_that(client: Client) -> None:
    seen = Trigger("NewNode", "True", "NotProven", "gpu-1 is new", at(0))
    made = await client.create(api.CASE, encode.new_case("case-1", a_node(), "p", seen, GATE))
    assert decode.remediation_case(made).new_node == GATE
    for change in ({"machine": "m2"}, None):
        with pytest.raises(errors.Invalid, match="newNode is immutable"):
            await client.patch(CASES, "case-1", {"spec": {"newNode": change}})
    plain = await client.create(api.CASE, encode.new_case("case-2", a_node(), "p", seen))
    assert decode.remediation_case(plain).new_node is None


async def test_a_node_says_which_machine_it_is_at_which_gate_it_waits_and_which_it_has_passed(client: Client) -> None:
    taints = [{"key": GATE.taint, "effect": "NoSchedule"}, {"key": names.CASE_TAINT, "effect": "PreferNoSchedule"}]
    notes = {names.ADMITTED: f"remediator.dev/other=m9,{GATE.taint}=m1,"}
    meta = {"name": "gpu-1", "annotations": notes}
    await client.create(NODES, {"metadata": meta, "spec": {"taints": taints}})
    born = decode.node(await client.get(NODE, "gpu-1"))
    assert (born.machine, born.gates) == ("", (GATE.taint,))
    assert born.admitted == ("remediator.dev/other=m9", f"{GATE.taint}=m1")
    info = {"machineID": "9f3a", "systemUUID": "4c4c4544-0042"}
    await client.patch(NODES, "gpu-1", {"status": {"nodeInfo": info}}, subresource="status")
    node = decode.node(await client.get(NODE, "gpu-1"))
    assert node.machine == names.machine("4c4c4544-0042", "9f3a")
    assert node != born, "another machine is another node"
