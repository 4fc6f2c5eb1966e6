"""`remediator retire`: the machine of a node goes first where Cluster API needs fewer, by the mark that it publishes.

DeleteMachineAnnotation of kubernetes-sigs/cluster-api, api/core/v1beta1/common_types.go; a node's annotations:
internal/controllers/machine/machine_controller_noderef.go.
"""

import json
from typing import Any

import pytest

from remediator.core.machine import GOES_FIRST
from remediator.kube.wire.client import Kind
from remediator_sim.plain import SPACES
from remediator_sim.simulation.requesters import definition
from tests.harness.cluster import MemoryCluster
from tests.harness.kinds import CRDS, NODES, Object
from tests.remediator.test_cli_orders import asked

MACHINES: Kind[Any] = Kind("cluster.x-k8s.io", "v1beta2", "machines", "Machine", dict, namespaced=True)
OF_NODE = {"cluster.x-k8s.io/machine": "md-0-x7k2p", "cluster.x-k8s.io/cluster-namespace": "training"}
NAMED = "Machine training/md-0-x7k2p"


async def cluster(*, machines: bool = True, knows: str = "gpu-17", owner_kind: str = "MachineSet") -> MemoryCluster:
    """gpu-17 is a machine of Cluster API, gpu-23 is not. `knows`: the node that the Machine names."""
    made = MemoryCluster()
    await made.client.create(NODES, {"metadata": {"name": "gpu-17", "annotations": OF_NODE}})
    await made.client.create(NODES, {"metadata": {"name": "gpu-23"}})
    if machines:
        await made.client.create(CRDS, definition(MACHINES))
        await made.client.create(SPACES, {"metadata": {"name": "training"}})
        owner = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": owner_kind, "name": "md-0-x7k", "uid": "u"}
        meta = {"name": "md-0-x7k2p", "namespace": "training", "ownerReferences": [owner | {"controller": True}]}
        body = {"apiVersion": MACHINES.api_version, "kind": MACHINES.name, "metadata": meta, "spec": {}}
        await made.client.create(MACHINES, body, namespace="training")
        status = {"status": {"nodeRef": {"name": knows}} if knows else {}}
        await made.client.patch(MACHINES, "md-0-x7k2p", status, namespace="training", subresource="status")
    return made


async def mark(made: MemoryCluster) -> str | None:
    machine: Object = await made.client.get(MACHINES, "md-0-x7k2p", namespace="training")
    value: str | None = machine["metadata"].get("annotations", {}).get(GOES_FIRST)
    return value


async def test_the_machine_of_a_node_is_marked_once_and_the_mark_is_taken_off_again() -> None:
    made = await cluster()
    code, out, err = await asked(made, "retire", "gpu-17", "--yes")
    fewer = "once MachineSet md-0-x7k, or what owns that, has fewer replicas"
    assert (code, err, out.splitlines()) == (
        0,
        "",
        [
            f"{NAMED} of gpu-17 goes before all others, {fewer}; Cluster API drains the node then",
            "  until then gpu-17 works on; to empty it before: remediator take-out gpu-17 --for LENGTH",
            "  to take the mark off: remediator retire gpu-17 --off",
            f"{NAMED} is marked: {GOES_FIRST}=true",
        ],
    )
    assert await mark(made) == "true"
    again = f"remediator: {NAMED} is marked already: it goes first\n"
    assert await asked(made, "retire", "gpu-17", "--yes") == (3, "", again)
    code, out, _ = await asked(made, "retire", "gpu-17", "--off", "--yes", "-o", "json")
    data = {"node": "gpu-17", "namespace": "training", "machine": "md-0-x7k2p", "marked": False}
    assert (code, json.loads(out), await mark(made)) == (0, data, None)


@pytest.mark.parametrize("off", [(), ("--off",)], ids=["mark", "off"])
@pytest.mark.parametrize(
    ("knows", "why"),
    [
        (
            "gpu-66",
            f"{NAMED}, which gpu-17 names, is the machine of gpu-66: whoever is root on gpu-17 may have changed the "
            "annotations of gpu-17; look at that node",
        ),
        ("", f"{NAMED}, which gpu-17 names, has no status.nodeRef: whether it is that of gpu-17 is not known"),
    ],
)
async def test_a_machine_that_does_not_name_the_node_is_left_alone(knows: str, why: str, off: tuple[str, ...]) -> None:
    """A kubelet may write the annotations of its own node, and so name the machine of another."""
    made = await cluster(knows=knows)
    if off:
        body = {"metadata": {"annotations": {GOES_FIRST: "true"}}}
        await made.client.patch(MACHINES, "md-0-x7k2p", body, namespace="training")
    before = await mark(made)
    code, out, err = await asked(made, "retire", "gpu-17", "--yes", *off)
    assert (code, out, " ".join(err.split())) == (2, "", f"remediator: {why}")
    assert await mark(made) == before


async def test_of_a_machine_whose_owner_is_of_a_provider_nobody_promises_that_it_goes_first() -> None:
    code, out, _ = await asked(await cluster(owner_kind="TalosControlPlane"), "retire", "gpu-17", "--yes")
    wanted = (
        f"{NAMED} of gpu-17 is marked for TalosControlPlane md-0-x7k: whether it goes first, once there are to be "
        "fewer, is for its provider to decide; Cluster API drains the node then"
    )
    assert (code, out.splitlines()[0]) == (0, wanted)


async def test_without_an_answer_nothing_is_marked() -> None:
    made = await cluster()
    code, _, err = await asked(made, "retire", "gpu-17")
    assert (code, "nothing was done" in err, await mark(made)) == (2, True, None)


NOT_DONE = [
    ("gpu17", True, 1, "no node gpu17 in the cluster; did you mean gpu-17?"),
    ("gpu-23", True, 3, "Cluster API has not made gpu-23: no annotation cluster.x-k8s.io/machine names its machine"),
    ("gpu-17", False, 1, f"{NAMED} of gpu-17 is not in this cluster; give --kubeconfig of the cluster that manages it"),
]


@pytest.mark.parametrize(("node", "machines", "code", "why"), NOT_DONE, ids=["no node", "no machine", "elsewhere"])
async def test_what_cannot_be_marked_is_told_with_what_to_do(node: str, machines: bool, code: int, why: str) -> None:
    ended, out, err = await asked(await cluster(machines=machines), "retire", node, "--yes")
    assert (ended, out, err.startswith(f"remediator: {why}")) == (code, "", True)
