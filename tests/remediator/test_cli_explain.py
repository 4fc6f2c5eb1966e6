"""`remediator explain` beside a controller that leads: in its words, with its settings, and without a list of nodes."""

import json
from datetime import timedelta
from typing import Any

import pytest

from remediator.clock import SYSTEM
from remediator.controller.explain import snapshot_of
from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.kube.api.builtin import NAMESPACE
from remediator.kube.wire.client import Client
from tests.harness.controller import RUNS, ControllerHarness, controller_harness, running, until
from tests.harness.kinds import CASES, NODES, PODS
from tests.remediator.test_cli import beside


async def explained(harness: ControllerHarness, node: str, *more: str) -> tuple[int, list[str], str]:
    async with harness.server.serve() as endpoint:
        words = ("--namespace", harness.namespaces.system, "--kubeconfig", str(endpoint.kubeconfig))
        code, out, err = await beside("explain", node, *words, *more)
    return code, out.splitlines(), err


async def two_that_are_ill(harness: ControllerHarness) -> None:
    """gpu-1 is being rebooted, and gpu-2 waits for it: the budget has room for one."""
    harness.answer("reboot", RUNS)
    await harness.budget("all", 1)
    await harness.policy()
    await harness.node("gpu-1", "True")


async def test_what_a_budget_holds_is_told_as_the_controller_says_with_its_settings_and_the_command():
    async with controller_harness() as harness:
        await two_that_are_ill(harness)
        async with running(harness, breaker=Breaker(7, timedelta(minutes=3))):
            await until(lambda: harness.phase("gpu-1") == "Operating")
            await harness.node("gpu-2", "True")
            await until(lambda: harness.reasons("gpu-2") == ["BudgetSpent"])
            code, lines, err = await explained(harness, "gpu-2")
    assert (code, err) == (0, "")
    told = [line.strip() for line in lines]
    assert any(line.startswith("believed: GpuLost=True (Said)") for line in told)
    assert any(line.startswith("held: BudgetSpent: budget all: 1 of 1 unavailable (gpu-1)") for line in told)
    assert "next: policy gpu-lost tries reboot (rung 1 of 1)" in told
    assert "policy gpu-lost (Enforce), health: Unhealthy" in told
    assert "budget all: 1 of 1 unavailable" in told
    assert "breaker of the fleet: at least 1 of 7 starts in 3 min" in told
    assert "to change it: remediator hold gpu-2   # nothing new starts" in told
    assert any(line.startswith("controller: one leads, last heard of ") for line in told)


async def test_the_domains_of_a_node_for_gangs_are_told_also_where_no_other_node_is_read():
    async with controller_harness() as harness:
        await harness.node("gpu-1")
        rack = {"metadata": {"labels": {"topology.kubernetes.io/rack": "r7"}}}
        await harness.client.patch(NODES, "gpu-1", rack)
        async with running(harness):
            _, lines, _ = await explained(harness, "gpu-1")
    assert any("domains for gangs: topology.kubernetes.io/rack=r7" in line for line in lines)


async def test_what_does_not_speak_stands_in_one_line_and_a_pause_is_told():
    async with controller_harness() as harness:
        for policy, condition in (("a", "GpuLost"), ("b", "GpuXid"), ("c", "NfsStale")):
            await harness.policy(policy, when=[{"condition": condition}])
        await harness.node("gpu-1", "False")
        paused = {"metadata": {"annotations": {names.PAUSED: "true"}}}
        await harness.client.patch(NAMESPACE, harness.namespaces.system, paused)
        _, lines, _ = await explained(harness, "gpu-1")
    assert lines[0] == ("gpu-1: health is unknown: GpuXid, NfsStale: each is absent; nothing starts, nothing ends")
    assert f"  everything is paused: the namespace remediator-system has the annotation {names.PAUSED}" in lines
    assert lines[-1] == "  controller: no replica of the controller has led yet"
    assert [line.strip() for line in lines if "health: " in line] == [
        "2 policies (Enforce), health: Unknown: b, c",
        "policy a (Enforce), health: Healthy",
    ]


async def test_a_name_that_no_node_has_is_answered_with_the_nearest():
    async with controller_harness() as harness:
        await harness.node("gpu-17")
        assert await explained(harness, "gpu17") == (
            1,
            [],
            "remediator: no node gpu17 in the cluster; did you mean gpu-17?\n",
        )


@pytest.mark.slow
async def test_a_pod_and_a_job_stand_for_the_nodes_that_are_explained():
    async with controller_harness() as harness:
        await harness.client.create(NAMESPACE, {"metadata": {"name": "team"}})
        for number, node in enumerate(("gpu-17", "gpu-23")):
            await harness.node(node)
            meta = {"name": f"worker-{number}", "labels": {"jobset.sigs.k8s.io/jobset-name": "llm"}}
            spec = {"nodeName": node, "containers": [{"name": "main", "image": "x"}]}
            await harness.client.create(PODS, {"metadata": meta, "spec": spec}, namespace="team")
        code, lines, err = await explained(harness, "--pod=team/worker-1")
        assert (code, lines[0].split(":")[0], err) == (0, "gpu-23", "")
        code, lines, err = await explained(harness, "--job=team/llm")
        assert (code, [line.split(":")[0] for line in lines if line and line[0] != " "], err) == (
            *(0, ["gpu-17", "gpu-23"], ""),
        )
        assert lines.count("") == 1
        _, lines, _ = await explained(harness, "--job=team/llm", "-o", "json")
        assert [each["node"] for each in json.loads("\n".join(lines))] == ["gpu-17", "gpu-23"]
        assert await explained(harness, "--job=team/lln") == (
            *(1, []),
            "remediator: no label of a Pod in namespace team names a job lln; did you mean team/llm?\n",
        )


class Watched:
    """A transport that keeps what was asked for."""

    def __init__(self, transport: Any) -> None:
        self.transport, self.asked = transport, []
        self.limits: dict[str, str] = {}

    async def request(self, method: str, path: str, **more: Any) -> Any:
        plural, query = path.rpartition("/")[2], dict(more.get("query", ()))
        self.asked.append((plural, query.get("fieldSelector", "")))
        self.limits[plural] = query.get("limit", "")
        return await self.transport.request(method, path, **more)


async def test_of_nodes_cases_operations_and_inventories_only_those_of_the_node_are_read():
    async with controller_harness() as harness:
        await two_that_are_ill(harness)
        watched = Watched(harness.server.transport())
        cache = await snapshot_of("gpu-1", Client(watched), harness.namespaces, SYSTEM)
    assert [node.name for node in cache.nodes] == ["gpu-1"]
    assert {kind: fields for kind, fields in watched.asked if fields} == {
        "nodes": "metadata.name=gpu-1",
        "noderemediations": "spec.nodeName=gpu-1",
        "nodeoperations": "spec.nodeName=gpu-1",
        "nodeinventories": "metadata.name=gpu-1",
        "namespaces": f"metadata.name={harness.namespaces.system}",
    }
    assert len(watched.asked) == 11, "one request for each kind"


async def test_definitions_of_an_older_version_know_no_selector_and_everything_is_read():
    async with controller_harness() as harness:
        await two_that_are_ill(harness)
        watched = Watched(harness.server.transport())
        client = Client(watched)
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CASES.plural}.{CASES.group}"
        definition = await client.send("PATCH", path, dict, _WITHOUT, content_type="application/json-patch+json")
        assert "selectableFields" not in definition["spec"]["versions"][0]
        cache = await snapshot_of("gpu-1", client, harness.namespaces, SYSTEM)
    assert cache.whole


_WITHOUT = [{"op": "remove", "path": "/spec/versions/0/selectableFields"}]
