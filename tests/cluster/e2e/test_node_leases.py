"""The Lease of a node: another's holds a case, ours is taken and given back, with no right too many."""

from datetime import timedelta
from typing import Any

import pytest

from remediator_sim.manifests import documents, kind_of
from remediator_sim.plain import LEASES
from tests.cluster.e2e.stage import Stage
from tests.cluster.rights.granted import NODE_LEASES, OPTIONAL, unused
from tests.harness.kinds import NAMESPACES
from tests.harness.waiting import until
from tests.remediator.controller.test_node_leases import MAINTENANCE, SPACE, spec_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]
NODE = "gpu-17"
NODES = [NODE]
LEASE = f"node-{NODE}"


async def test_a_node_is_repaired_once_another_has_given_its_lease_back_and_under_ours(
    stage: Stage, request: pytest.FixtureRequest
) -> None:
    made = list(documents(["deploy/node-leases/rbac.yaml"]))
    await stage.client.create(NAMESPACES, {"metadata": {"name": SPACE}})
    try:
        for each in made:
            await stage.client.create(kind_of(each), each, namespace=each["metadata"].get("namespace", ""))
        held = {"metadata": {"name": LEASE}, "spec": spec_of(MAINTENANCE, timedelta(0), 3600)}
        await stage.client.create(LEASES, held, namespace=SPACE)
        await stage.start_controller("--node-leases", SPACE)

        stage.machines[NODE].lose_gpu()
        block = await until(lambda: blocked(stage), 60)
        assert block["message"].startswith(f"{MAINTENANCE} works on {NODE} (it holds the Lease {LEASE})")
        assert not (await stage.node(NODE))["spec"].get("unschedulable")

        await stage.client.delete(LEASES, LEASE, namespace=SPACE)
        await until(lambda: ours(stage), 60)
        machine, workload = stage.machines[NODE], stage.workloads[NODE]
        await workload.allow(len(workload.apps))
        await until(lambda: stage.over(NODE), 90)
        await until(lambda: gone(stage), 30)
        assert len(machine.reboots()) == 1
        if stage.server.name == "real":
            events = request.getfixturevalue("control_plane").audited()
            assert unused("remediator", events, NODE_LEASES) <= set(OPTIONAL[NODE_LEASES])
    finally:
        for each in reversed(made):
            where = each["metadata"].get("namespace", "")
            await stage.client.delete(kind_of(each), each["metadata"]["name"], namespace=where)
        await stage.client.delete(NAMESPACES, SPACE)


async def blocked(stage: Stage) -> dict[str, Any] | None:
    """What holds the case for the Lease."""
    case = await stage.case(NODE, "Held")
    blocks = case["status"].get("blockedBy", ()) if case else ()
    return next((each for each in blocks if each["reason"] == "UnderMaintenance"), None)


async def found(stage: Stage) -> dict[str, Any] | None:
    leases = await stage.client.list_all(LEASES, namespace=SPACE)
    return next((each for each in leases if each["metadata"]["name"] == LEASE), None)


async def ours(stage: Stage) -> bool:
    lease = await found(stage)
    return lease is not None and lease["spec"]["holderIdentity"].startswith(f"remediator/{NODE}-gpu-lost")


async def gone(stage: Stage) -> bool:
    return await found(stage) is None
