"""A NodeHealthCheck, a MachineHealthCheck and NVSentinel ask for a reboot, each by an object as it makes them.

The objects are those of tests/remediator/controller/test_outside_requests.py, which names their sources.
"""

from typing import Any

import pytest

from remediator_sim.manifests import documents, kind_of
from tests.cluster.e2e.stage import Stage
from tests.cluster.rights.granted import LISTS, REQUESTS, unused
from tests.harness.kinds import CRDS
from tests.harness.waiting import until
from tests.remediator.controller import test_outside_requests as played

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]
NODE = "gpu-17"
NODES = [NODE]
ASKED = ("--requests-from", "node-repairs", "--requests-from", "nvsentinel")
FILES = [f"deploy/requests/{name}.yaml" for name in ("noderepairs", "noderepairtemplates", "rbac")]
Object = dict[str, Any]


async def test_each_of_the_three_has_the_node_rebooted_once_and_is_told_with_no_right_too_many(
    stage: Stage, request: pytest.FixtureRequest
) -> None:
    machine = stage.machines[NODE]
    made = [*documents(FILES), *map(played.crd, (played.ERRS, played.MACHINES))]
    made = [{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"} | each for each in made]
    try:
        for each in made:
            await stage.client.create(kind_of(each), each)
        await until(lambda: established(stage), 30)
        await stage.start_controller(*ASKED)

        await put(stage, played.REPAIRS, {"name": NODE, "namespace": "default"}, {"operation": "reboot"})
        await until(lambda: told(stage, played.REPAIRS, NODE, "Succeeded"), 90)
        assert len(machine.reboots()) == 1
        await stage.client.delete(played.REPAIRS, NODE, namespace="default")
        await until(lambda: gone(stage, NODE), 30)

        event = {"nodeName": NODE, "recommendedAction": "CUSTOM", "customRecommendedAction": "REBOOT"}
        await put(stage, played.ERRS, {"name": "gpu0-xid79"}, {"healthEvent": event})
        status = {"status": {"conditions": [played.ownership(released=True)]}}
        await stage.client.patch(played.ERRS, "gpu0-xid79", status, subresource="status")
        await until(lambda: told(stage, played.ERRS, "gpu0-xid79", "ExternalRemediationComplete"), 90)
        assert len(machine.reboots()) == 2

        meta = {"name": "md-0-x7k2p", "namespace": "default"}
        await put(stage, played.MACHINES, meta, {})
        ref = {"status": {"nodeRef": {"name": NODE}}}
        await stage.client.patch(played.MACHINES, meta["name"], ref, namespace="default", subresource="status")
        machine_uid = (await stage.client.get(played.MACHINES, meta["name"], namespace="default"))["metadata"]["uid"]
        owner = played.OWNER | {"uid": machine_uid}
        await put(stage, played.REPAIRS, meta | {"ownerReferences": [owner]}, {"operation": "reboot"})
        await until(lambda: told(stage, played.REPAIRS, "md-0-x7k2p", "Succeeded"), 90)
        assert len(machine.reboots()) == 3
        if stage.server.name == "real":
            events = request.getfixturevalue("control_plane").audited()
            assert unused("remediator", events, REQUESTS) <= set(LISTS)
    finally:
        for each in reversed(made):
            await stage.client.delete(kind_of(each), each["metadata"]["name"])


async def put(stage: Stage, kind: Any, metadata: Object, spec: Object) -> None:
    body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": spec}
    await stage.client.create(kind, body, namespace=metadata.get("namespace", ""))


async def established(stage: Stage) -> bool:
    """Whether the server serves the kinds."""
    for kind in (played.REPAIRS, played.ERRS):
        crd = await stage.client.get(CRDS, f"{kind.plural}.{kind.group}")
        conditions = crd.get("status", {}).get("conditions", ())
        if not any((each["type"], each["status"]) == ("Established", "True") for each in conditions):
            return False
    return True


async def told(stage: Stage, kind: Any, name: str, type: str) -> bool:
    """Whether the object says that its repair has succeeded; AssertionError where it says that it has not."""
    live = await stage.client.get(kind, name, namespace="default" if kind.namespaced else "")
    statuses = {each["type"]: each for each in live.get("status", {}).get("conditions", ())}
    assert statuses.get(type, {}).get("status") != "False", statuses
    return statuses.get(type, {}).get("status") == "True"


async def gone(stage: Stage, name: str) -> bool:
    return name not in [each["metadata"]["name"] for each in await stage.client.list_all(played.REPAIRS)]
