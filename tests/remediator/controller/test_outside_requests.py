"""Other controllers ask for repairs by objects of their own kinds, and are told how those end.

The objects have the shape of what these controllers make: NodeHealthCheck (medik8s/node-healthcheck-operator,
docs/configuration.md, "Remediation Resources"), MachineHealthCheck (kubernetes-sigs/cluster-api,
docs/proposals/20191030-machine-health-checking.md), ExternalRemediationRequest (NVIDIA/NVSentinel,
docs/designs/040-external-remediation-request.md).
"""

from typing import Any

import msgspec
import pytest

from remediator.core import names
from remediator.core.audit import word
from remediator.kube import api
from remediator.kube.api import decode, outside
from remediator.kube.wire.client import Kind
from remediator_sim.simulation.requesters import definition as crd
from tests.contract.docs.pages import ROOT
from tests.harness.controller import DONE, REBOOTED, RUNS, Answer, ControllerHarness, running, until
from tests.harness.kinds import CRDS, NODES, OPERATIONS, plain
from tests.harness.yaml_files import read

pytestmark = pytest.mark.sampled("outside requests")

Object = dict[str, Any]
FAILED = Answer(exit=1, message="the machine did not take it")
REPAIRS = plain(outside.SOURCES["node-repairs"].kind)
ERRS = plain(outside.SOURCES["nvsentinel"].kind)
MACHINES: Kind[Object] = Kind("cluster.x-k8s.io", "v1beta1", "machines", "Machine", dict, namespaced=True)
NHC = {"apiVersion": "remediation.medik8s.io/v1alpha1", "kind": "NodeHealthCheck", "name": "workers", "uid": "u1"}
OWNER = {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "name": "md-0-x7k2p", "uid": "u2"}
ALL = ("node-repairs", "nvsentinel")


async def create(harness, kind: Kind[Any], body: Object) -> None:
    """With kind and version, as the API server wants them of kinds that it learns by a CRD."""
    namespace = body["metadata"].get("namespace", "")
    await harness.client.create(kind, {"apiVersion": kind.api_version, "kind": kind.name} | body, namespace=namespace)


async def others(harness: ControllerHarness) -> None:
    """The kinds that a cluster with these controllers has, and a node."""
    for body in (read(ROOT / "deploy/requests/noderepairs.yaml"), crd(ERRS), crd(MACHINES)):
        await harness.client.create(CRDS, body)
    await harness.node("gpu-1")


async def repair(harness, name="gpu-1", operation="reboot", owner=NHC, **metadata) -> None:
    """What NodeHealthCheck and MachineHealthCheck make of a NodeRepairTemplate."""
    meta = {"name": name, "namespace": "default", "ownerReferences": [owner]} | metadata
    await create(harness, REPAIRS, {"metadata": meta, "spec": {"operation": operation}})


async def external(harness, action="reboot", released=True) -> None:
    """What NVSentinel makes of a health event; its own finalizer and conditions are there already."""
    event = {"nodeName": "gpu-1", "checkName": "SysLogsXIDError", "recommendedAction": "CUSTOM"}
    meta = {"name": "gpu0-xid79", "finalizers": ["nvsentinel.nvidia.com/external-remediation-cleanup"]}
    spec = {"healthEvent": event | {"customRecommendedAction": action}}
    await create(harness, ERRS, {"metadata": meta, "spec": spec})
    waits = {"type": "ExternalRemediationComplete", "status": "Unknown", "reason": "AwaitingExternalSystem"}
    await harness.client.patch(
        ERRS, "gpu0-xid79", {"status": {"conditions": [ownership(released), waits]}}, subresource="status"
    )


def ownership(released: bool) -> Object:
    return {"type": "NVSentinelOwnershipReleased", "status": "True" if released else "Unknown", "reason": "Said"}


def stored(harness, kind, name="gpu-1") -> Object | None:
    return next((each for each in harness.all(kind) if each["metadata"]["name"] == name), None)


def said(harness, type="Succeeded", kind=REPAIRS, name="gpu-1") -> tuple[str, str, str]:
    """Status, reason and message of a condition; empty words where there is none."""
    conditions = (stored(harness, kind, name) or {}).get("status", {}).get("conditions", ())
    found = next((each for each in conditions if each["type"] == type), {})
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


async def test_a_node_repair_of_medik8s_is_one_reboot_under_all_guards_and_its_end_is_told(harness) -> None:
    await others(harness)
    async with running(harness, requests_from=ALL):
        await repair(harness)
        await until(lambda: said(harness)[0] == "True" and harness.clean("gpu-1"))
    (case,) = harness.cases("gpu-1")
    assert case["spec"]["manual"]["requestedBy"] == "NodeHealthCheck workers"
    assert word(decode.remediation_case(msgspec.convert(case, api.NodeRemediation))) == (
        "Request",
        "NodeHealthCheck workers",
        "",
    )
    assert said(harness)[1] == "RemediatorSucceeded"
    assert "new bootID boot-2" in said(harness)[2]
    assert said(harness, "Processing")[0] == "False"
    assert harness.ran == ["collect-diagnostics gpu-1", "drain gpu-1", "reboot gpu-1"]


async def test_while_a_guard_holds_it_the_status_says_which_and_nothing_is_done(harness) -> None:
    await others(harness)
    await harness.change(NODES, "gpu-1", metadata={"labels": {f"{names.GROUP}/exclude": "true"}})
    async with running(harness, requests_from=ALL):
        await repair(harness)
        await until(lambda: "OptedOut" in said(harness)[2])
        assert (said(harness)[0], said(harness, "Processing")[0]) == ("Unknown", "True")
    assert harness.ran == []


async def test_a_repair_that_fails_is_told_and_not_tried_again(harness) -> None:
    await others(harness)
    harness.answer("reboot", FAILED)
    async with running(harness, requests_from=ALL):
        await repair(harness)
        await until(lambda: said(harness)[0] == "False" and harness.clean("gpu-1"))
        await harness.quiet()
    assert (said(harness)[1], harness.ran.count("reboot gpu-1")) == ("RemediatorFailed", 1)


async def test_whoever_deletes_it_waits_until_what_runs_on_the_node_has_ended(harness) -> None:
    await others(harness)
    harness.answer("reboot", RUNS)
    async with running(harness, requests_from=ALL):
        await repair(harness)
        await until(lambda: "reboot gpu-1" in harness.ran)
        await harness.client.delete(REPAIRS, "gpu-1", namespace="default")
        await harness.quiet()
        assert stored(harness, REPAIRS) is not None
        await harness.finish("reboot")
        await until(lambda: stored(harness, REPAIRS) is None and harness.clean("gpu-1"))
    assert harness.phase("gpu-1") == "Cancelled"


async def test_one_that_is_no_longer_waited_for_is_taken_back(harness) -> None:
    """NodeHealthCheck marks it, and goes on to its next template."""
    await others(harness)
    await harness.change(NODES, "gpu-1", metadata={"labels": {f"{names.GROUP}/exclude": "true"}})
    async with running(harness, requests_from=ALL):
        await repair(harness)
        await until(lambda: said(harness)[0] == "Unknown")
        late = {"metadata": {"annotations": {"remediation.medik8s.io/nhc-timed-out": "2026-11-28T12:00:00Z"}}}
        await harness.client.patch(REPAIRS, "gpu-1", late, namespace="default")
        await until(lambda: said(harness)[:2] == ("False", "RemediatorTakenBack"))
        await until(lambda: harness.ended("gpu-1", "Cancelled"))


async def test_the_node_of_a_machine_is_that_which_the_machine_names(harness) -> None:
    await others(harness)
    machine = {"metadata": {"name": "md-0-x7k2p", "namespace": "default"}, "spec": {}}
    await create(harness, MACHINES, machine)
    ref = {"status": {"nodeRef": {"name": "gpu-1"}}}
    await harness.client.patch(MACHINES, "md-0-x7k2p", ref, namespace="default", subresource="status")
    async with running(harness, requests_from=ALL):
        await repair(harness, "md-0-x7k2p", owner=OWNER)
        await until(lambda: said(harness, name="md-0-x7k2p")[0] == "True")
    assert harness.cases("gpu-1")[0]["spec"]["manual"]["requestedBy"] == "Machine md-0-x7k2p"


async def test_a_generated_name_is_not_that_of_the_node(harness) -> None:
    """NodeHealthCheck generates names where it uses several templates of one kind."""
    await others(harness)
    async with running(harness, requests_from=ALL):
        await repair(harness, "gpu-1-x7k2p", annotations={"remediation.medik8s.io/node-name": "gpu-1"})
        await until(lambda: said(harness, name="gpu-1-x7k2p")[0] == "True")


async def test_a_node_that_is_not_there_is_told(harness) -> None:
    await others(harness)
    async with running(harness, requests_from=ALL):
        await repair(harness, "gpu-9")
        await until(lambda: said(harness, name="gpu-9")[:2] == ("False", "RemediatorNodeGone"))
    assert harness.all(OPERATIONS) == []


async def test_a_user_who_deletes_the_operation_of_it_takes_it_back_for_good(harness) -> None:
    await others(harness)
    await harness.change(NODES, "gpu-1", metadata={"labels": {f"{names.GROUP}/exclude": "true"}})
    async with running(harness, requests_from=ALL):
        await repair(harness)
        await until(lambda: said(harness)[0] == "Unknown")
        (operation,) = harness.all(OPERATIONS)
        await harness.client.delete(OPERATIONS, operation["metadata"]["name"])
        await until(lambda: said(harness)[:2] == ("False", "RemediatorTakenBack"))
        await harness.quiet()
    assert harness.all(OPERATIONS) == []


async def test_a_request_of_nvsentinel_waits_until_the_node_is_released_and_its_cordon_stays(harness) -> None:
    await others(harness)
    await harness.change(NODES, "gpu-1", metadata={"labels": {"k8saas.nvidia.com/cordon-by": "NVSentinel"}})
    await harness.change(NODES, "gpu-1", spec={"unschedulable": True})
    complete = {"type": "ExternalRemediationComplete", "kind": ERRS, "name": "gpu0-xid79"}
    async with running(harness, requests_from=ALL):
        await external(harness, released=False)
        await harness.quiet()
        assert harness.all(OPERATIONS) == []
        waits = {"type": "ExternalRemediationComplete", "status": "Unknown", "reason": "AwaitingExternalSystem"}
        status = {"status": {"conditions": [ownership(released=True), waits]}}
        await harness.client.patch(ERRS, "gpu0-xid79", status, subresource="status")
        await until(lambda: said(harness, **complete)[0] == "True")
        await until(lambda: names.CASE_TAINT not in harness.taints("gpu-1"))
    assert said(harness, "NVSentinelOwnershipReleased", ERRS, "gpu0-xid79")[0] == "True"
    assert harness.ran.count("reboot gpu-1") == 1
    assert harness.look("gpu-1")["spec"]["unschedulable"], "NVSentinel takes its own cordon off"


async def test_the_cordon_of_a_user_holds_a_request_of_nvsentinel_too(harness) -> None:
    await others(harness)
    await harness.change(NODES, "gpu-1", spec={"unschedulable": True})
    async with running(harness, requests_from=ALL):
        await external(harness)
        await until(lambda: harness.reasons("gpu-1") == ["CordonedByUser"])
    assert harness.ran == []


async def test_a_request_of_nvsentinel_for_what_has_no_template_is_left_to_others(harness) -> None:
    await others(harness)
    async with running(harness, requests_from=ALL):
        await external(harness, action="REPLACE_BOARD")
        await harness.quiet()
    (request,) = harness.all(ERRS)
    assert names.POD_FINALIZER not in request["metadata"]["finalizers"]
    assert said(harness, "ExternalRemediationComplete", ERRS, "gpu0-xid79")[1] == "AwaitingExternalSystem"


async def test_nobody_is_served_whom_the_setting_does_not_name(harness) -> None:
    await others(harness)
    async with running(harness, requests_from=("nvsentinel",)):
        await repair(harness)
        await harness.quiet()
    assert harness.all(OPERATIONS) == []


async def test_a_controller_that_dies_after_any_write_repairs_once(harness) -> None:
    await others(harness)
    harness.answer("reboot", REBOOTED, DONE)
    await repair(harness)
    for number in range(40):
        if said(harness)[0] == "True":
            break
        writes = len(harness.server.audit)
        async with running(harness, f"replica-{number}", requests_from=ALL):
            await until(lambda writes=writes: said(harness)[0] == "True" or len(harness.server.audit) > writes + 12)
    async with running(harness, "last", requests_from=ALL):
        await until(lambda: said(harness)[0] == "True" and harness.clean("gpu-1"))
    assert (len(harness.cases("gpu-1")), harness.ran.count("reboot gpu-1")) == (1, 1)
