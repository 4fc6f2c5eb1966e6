"""What the shipped policies do about GPUs in Enforce: what is told, what waits, what is handed over to a person."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from remediator.controller import idle
from remediator.controller.run import Controller
from remediator.core import names
from remediator.core.gpus import Gpu
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator.scheduler.explain import explain
from remediator.tickets.channels.base import Issue
from tests.contract.conditions import ROOT
from tests.harness import yaml_files
from tests.harness.controller import DONE, Answer, ControllerHarness, now, running, until
from tests.harness.kinds import NODES, PODS, POLICIES
from tests.harness.scheduler import pod
from tests.harness.tickets import TicketHarness

pytestmark = pytest.mark.sampled("shipped gpu")

PRESENT = "nvidia.com/gpu.present"
ADDRESS, UUID, SERIAL = "0000:13:00.0", "GPU-27f79f91-77aa-1234-5678-0123456789ab", "1320221054671"


async def shipped(harness: ControllerHarness, name: str, timeout: str = "30s") -> None:
    """A policy as shipped, in Enforce, at the speed of a test. `timeout`: of the proof that the node is well."""
    spec: dict[str, Any] = yaml_files.read(ROOT / f"deploy/policies/{name}.yaml")["spec"]
    when = [entry | {"for": "0s"} for entry in spec["when"]]
    soon = {"settle": "1s", "fresh": "1s", "timeout": timeout}
    quick = {"verify": spec["verify"] | soon, "cooldown": "0s"} if "verify" in spec else {}
    await harness.make(POLICIES, name, **spec | {"mode": "Enforce", "when": when} | quick)


async def gpu_node(harness: ControllerHarness, name: str, **labels: str) -> None:
    await harness.node(name)
    await harness.change(NODES, name, metadata={"labels": {PRESENT: "true"} | labels})


def undisturbed(harness: ControllerHarness, node: str) -> bool:
    return not harness.look(node).get("spec", {}).get("unschedulable") and not harness.taints(node)


async def says(harness: ControllerHarness, node: str, condition: str, message: str, reason: str = "Said") -> None:
    """A detector finds a fault, in these words."""
    await harness.condition(node, "True", condition)
    said = {"conditions": [{"type": condition, "message": message, "reason": reason}]}
    await harness.client.patch(NODES, node, {"status": said}, subresource="status", content_type=STRATEGIC_PATCH)


def placing(controller: Controller, name: str) -> str:
    """What the scheduler extender says of a node."""
    cache = controller.cache
    node = cache.nodes.get(name)
    assert node
    return explain(node, cache.nodes, cache.cases, cache.policies, cache.paused, now())


async def issues(harness: ControllerHarness) -> list[Issue]:
    """What the cases of a cluster become in the tracker."""
    tickets = TicketHarness(server=harness.server)
    tickets.now = now()
    await tickets.work()
    await tickets.later(minutes=1)
    return tickets.channel.issues


@pytest.mark.parametrize(
    ("name", "condition", "severity"),
    [
        ("gpu-memory-warning", "GpuMemoryWarning", "info"),
        ("nvml-hung", "NvmlHung", "warning"),
        ("nvlink-domain-fault", "NvlinkDomainFault", "critical"),
        ("gpu-throttled", "GpuThrottled", "warning"),
        ("detector-stale", "DetectorStale", "critical"),
    ],
)
async def test_what_is_only_told_makes_an_issue_and_disturbs_no_node(
    harness: ControllerHarness, name: str, condition: str, severity: str
) -> None:
    await shipped(harness, name)
    await gpu_node(harness, "gpu-1")
    await harness.condition("gpu-1", "True", condition)
    async with running(harness) as controller:
        await until(lambda: harness.phase("gpu-1"))
        await harness.quiet()
        placed = placing(controller, "gpu-1")
    assert (harness.reasons("gpu-1"), harness.ran) == (["TicketOnly"], [])
    assert undisturbed(harness, "gpu-1")
    assert "WaitingForRepair, let through" in placed, "Pods go there last, and go there"
    (issue,) = await issues(harness)
    assert (issue.title, f"severity: {severity}" in issue.labels) == (f"[prod] gpu-1: {condition}", True)


async def test_a_node_that_feature_discovery_calls_empty_is_not_forgotten(harness: ControllerHarness) -> None:
    """All its GPUs have left the bus, so its label says that it has none."""
    await shipped(harness, "gpu-lost", timeout="2s")
    await shipped(harness, "devices-missing", timeout="2s")
    await gpu_node(harness, "gpu-1", **{PRESENT: "false"})
    await says(harness, "gpu-1", "DevicesMissing", "fewer than known: gpus 0 of 8", "GpusMissing")
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
    assert [case["spec"]["policyName"] for case in harness.cases("gpu-1")] == ["devices-missing"]
    assert [ran for ran in harness.ran if "collect" not in ran] == ["drain gpu-1", "reboot gpu-1"]


async def test_a_gpu_that_is_lost_three_times_in_a_week_goes_to_a_person(
    harness: ControllerHarness,
) -> None:
    """Each reboot cures it, as it seems: without a memory of cases nobody would hear of it."""

    async def cured(harness: ControllerHarness, node: str) -> None:
        await harness.boot(node)
        await harness.condition(node, "False")

    await shipped(harness, "gpu-lost")
    await harness.template("gpu-check")
    harness.answer("gpu-check", DONE)
    harness.answer("reboot", Answer(exit=137, does=cured))
    await gpu_node(harness, "gpu-1")
    async with running(harness):
        for count in (1, 2, 3):
            since = now() - timedelta(minutes=5 - count)
            await harness.condition("gpu-1", "True", since=since)
            await until(lambda count=count: len(harness.cases("gpu-1")) == count)
            await until(lambda: harness.phase("gpu-1") in ("Recovered", "Escalated"))
            await until(lambda: harness.phase("gpu-1") == "Escalated" or harness.ended("gpu-1", "Recovered"))
    assert [case["status"]["phase"] for case in harness.cases("gpu-1")] == ["Recovered", "Recovered", "Escalated"]
    assert harness.cases("gpu-1")[-1]["status"]["reason"] == "Relapsed"


async def test_of_memory_that_wears_the_issue_and_the_memory_of_faults_know_the_board(
    harness: ControllerHarness,
) -> None:
    await shipped(harness, "gpu-memory-warning")
    await gpu_node(harness, "gpu-1")
    await says(harness, "gpu-1", "GpuMemoryWarning", f"few spare rows left: {ADDRESS} ({UUID[:12]}, serial {SERIAL})")
    async with running(harness) as controller:
        await until(lambda: harness.phase("gpu-1"))
        await harness.quiet()
        (case,) = controller.cache.cases
    assert case.gpus == (Gpu(SERIAL),)
    (issue,) = await issues(harness)
    assert f"| `{SERIAL}` |" in issue.body


async def test_memory_that_is_worn_out_keeps_new_work_off_and_a_person_gets_what_the_vendor_asks_for(
    harness: ControllerHarness,
) -> None:
    await shipped(harness, "gpu-memory-worn", timeout="2s")
    await harness.template("cordon", runOn="Elsewhere")
    harness.answer("cordon", replace(DONE, does=keep_cordoned))
    gpu = {"address": ADDRESS, "uuid": UUID, "serial": SERIAL, "counters": {"remapped rows": 512}}
    evidence = {"detectors": [{"condition": "GpuMemoryWorn", "gpus": [gpu]}], "bundle": "bundles/gpu-1.tar.gz"}
    harness.answer("collect-diagnostics", Answer(message=json.dumps(evidence)))
    await gpu_node(harness, "gpu-1")
    await harness.condition("gpu-1", "True", "GpuMemoryWorn")
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        await harness.quiet()
    assert harness.ran == ["collect-diagnostics gpu-1", "cordon gpu-1"], "no drain, no reset, no reboot"
    assert harness.look("gpu-1")["spec"]["unschedulable"]
    (issue,) = await issues(harness)
    assert [
        word for word in (SERIAL, UUID, ADDRESS[:-2], "512", "bundles/gpu-1.tar.gz") if word not in issue.body
    ] == []


async def keep_cordoned(harness: ControllerHarness, node: str) -> None:
    """What the operation cordon does: the cordon outlives the case."""
    case = harness.look(node)["metadata"]["annotations"][names.CORDONED_BY]
    marks = {names.CORDONED_BY: None, names.KEPT_CORDONED: case}
    await harness.change(NODES, node, metadata={"annotations": marks})


async def test_whoever_gives_a_node_back_that_stays_cordoned_reads_what_lets_new_work_in(
    harness: ControllerHarness,
) -> None:
    await shipped(harness, "gpu-memory-worn", timeout="2s")
    await harness.template("cordon", runOn="Elsewhere")
    harness.answer("cordon", replace(DONE, does=keep_cordoned))
    await gpu_node(harness, "gpu-1")
    await harness.condition("gpu-1", "True", "GpuMemoryWorn")
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        await harness.edit_case("gpu-1", release=True)
        await until(lambda: harness.cases("gpu-1")[0]["status"].get("endedAt"))
    assert harness.look("gpu-1")["spec"]["unschedulable"]
    assert harness.cases("gpu-1")[0]["status"]["message"].startswith(
        "node gpu-1 is given back, and stays cordoned, as its operation left it: `kubectl uncordon gpu-1` lets"
    )


async def job(harness: ControllerHarness, phase: str) -> None:
    await harness.client.patch(PODS, "train", {"status": {"phase": phase}}, namespace="default", subresource="status")


async def test_a_row_that_waits_for_its_remap_waits_for_the_jobs_of_the_node(
    harness: ControllerHarness, monkeypatch
) -> None:
    monkeypatch.setattr(idle, "EVERY", timedelta(milliseconds=50))
    monkeypatch.setattr("remediator.controller.waits.LOOK_AGAIN", 0.1)
    await shipped(harness, "gpu-ecc")
    await harness.template("reset-gpu")
    await harness.template("gpu-check")
    harness.answer("gpu-check", DONE)

    async def healthy(harness: ControllerHarness, node: str) -> None:
        await harness.condition(node, "False", "GpuEccFault")

    harness.answer("reset-gpu", Answer(does=healthy))
    await gpu_node(harness, "gpu-1")
    await harness.client.create(PODS, pod("train", 1, "gpu-1"), namespace="default")
    await job(harness, "Running")
    await harness.condition("gpu-1", "True", "GpuEccFault")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["WaitingForIdle"])
        await harness.quiet()
        assert harness.look("gpu-1")["spec"]["unschedulable"], "new work goes elsewhere"
        assert "reset-gpu gpu-1" not in harness.ran
        await job(harness, "Succeeded")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert [ran for ran in harness.ran if "collect" not in ran] == ["reset-gpu gpu-1", "gpu-check gpu-1"]


async def test_all_nodes_of_a_clique_whose_domain_has_failed_are_one_cause_and_none_is_touched(
    harness: ControllerHarness,
) -> None:
    cliques = {"rack-a": ("gpu-1", "gpu-2", "gpu-3"), "rack-b": ("gpu-4",)}
    await shipped(harness, "nvlink-domain-fault")
    for clique, nodes in cliques.items():
        for node in nodes:
            await gpu_node(harness, node, **{"nvidia.com/gpu.clique": clique})
            await harness.condition(node, "True", "NvlinkDomainFault")
    async with running(harness):
        await until(lambda: all("SharedCause" in harness.reasons(node) for node in cliques["rack-a"]))
        await harness.quiet()
    assert harness.reasons("gpu-4") == ["TicketOnly"], "another rack"
    assert all(undisturbed(harness, node) for nodes in cliques.values() for node in nodes)
    assert harness.ran == []
    assert len(await issues(harness)) == 2
