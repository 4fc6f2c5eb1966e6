"""Tests of idle nodes, by a whole controller: who is tested, by which Pod, and what becomes of its result."""

import json
from pathlib import Path
from typing import Any

import pytest

from remediator.controller import idle_tests
from remediator.core import names
from remediator.kube.wire.client import Kind
from remediator_sim.apiserver.store import Change, Listener
from tests.harness import yaml_files
from tests.harness.controller import RUNS, Answer, running, until
from tests.harness.kinds import EVENTS, INVENTORIES, LEASES, NAMESPACES, NODES, PODS, POLICIES, TEMPLATES
from tests.harness.page import page_served
from tests.remediator.test_cli_explain import explained

pytestmark = pytest.mark.sampled("idle tests")

ROOT = Path(__file__).parents[3]
PRIORITIES = Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", dict[str, Any])
GPU = "nvidia.com/gpu"
ALWAYS = {"cron": "* * * * *", "duration": "1h", "timeZone": "UTC"}
BY_SERVER = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}  # tolerated for 300 s
IDLE_TEST = {"probe": "gpu-check", "share": 1, "window": ALWAYS}
SERIAL = "(serial 1650923000001, GPU-9f3c01ab-1111)"
FINE = Answer(message=f"all 1 GPUs work. 0000:1b:00.0 {SERIAL} NVIDIA H200")
WRONG = Answer(exit=1, message=f"failed: arithmetic: 0000:1b:00.0 {SERIAL} multiplies wrongly")
CANNOT_TELL = Answer(exit=2, message="refused: cannot tell: somebody computes")


@pytest.fixture
async def idle(harness, monkeypatch):
    """A harness with the template gpu-check and a policy that tests one idle node at a time."""
    monkeypatch.setattr(idle_tests, "LOOK", 0.2)
    monkeypatch.setattr(idle_tests, "SOON", 0.01)
    priority = yaml_files.read(ROOT / "deploy" / "idle-tests.yaml")
    await harness.client.create(PRIORITIES, priority)
    await harness.template("gpu-check")
    await harness.policy(idleTest=IDLE_TEST)
    harness.answer("gpu-check", FINE)
    return harness


async def gpu_node(harness, name, **labels):
    """A node with 8 GPUs that nobody uses."""
    await harness.node(name, **labels)
    await harness.client.patch(NODES, name, {"status": {"allocatable": {GPU: "8"}}}, subresource="status")


async def bind(harness, pod, node):
    """What the scheduler does."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
    await harness.client.send("POST", f"{PODS.path(pod, names.OPERATIONS_NAMESPACE)}/binding", dict, body)


def found(harness, node):
    """What its inventory says of the newest test; None where there is none."""
    of_node = [each for each in harness.all(INVENTORIES) if each["metadata"]["name"] == node]
    return of_node[0].get("status", {}).get("idleTest") if of_node else None


def said(harness, node):
    """What the node says of its tests."""
    conditions = harness.look(node)["status"]["conditions"]
    return next((each for each in conditions if each["type"] == "IdleTestFailed"), None)


def ready(harness):
    """What the policy says of itself."""
    (policy,) = harness.all(POLICIES)
    conditions = policy.get("status", {}).get("conditions", ())
    return next((each for each in conditions if each["type"] == "Ready"), {"reason": ""})


def told(harness, reason):
    """The messages of the Events with this reason."""
    return [each["message"] for each in harness.all(EVENTS) if each.get("reason") == reason]


async def test_each_idle_node_is_tested_once_one_after_the_other_and_stays_in_service(idle):
    harness, nodes = idle, ("gpu-1", "gpu-2", "gpu-3")
    for name in nodes:
        await gpu_node(harness, name)
    async with running(harness):
        await until(lambda: all(found(harness, name) for name in nodes))
        await until(lambda: not harness.pods("gpu-check"))
        await harness.quiet()
    assert sorted(harness.ran) == [f"gpu-check {name}" for name in nodes]
    assert all(found(harness, name)["passed"] for name in nodes)
    assert [said(harness, name) for name in nodes] == [None, None, None]
    assert (harness.taints("gpu-1"), harness.cases("gpu-1"), harness.claims()) == ([], [], [])


async def test_the_pod_asks_for_all_gpus_gives_way_to_any_other_and_is_placed_by_the_scheduler(idle):
    harness = idle
    harness.answer("gpu-check", RUNS)
    await gpu_node(harness, "gpu-1")
    async with running(harness):
        pod = (await until(lambda: harness.pods("gpu-check", "Running")))[0]
    spec, meta = pod["spec"], pod["metadata"]
    resources = spec["containers"][0]["resources"]
    assert (resources["limits"][GPU], resources["requests"][GPU]) == ("8", "8")
    assert (spec["priorityClassName"], spec["terminationGracePeriodSeconds"]) == ("remediator-idle-test", 5)
    assert "nodeName" not in spec
    assert {each["key"] for each in spec["tolerations"]} == BY_SERVER
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms == [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}]}]
    assert meta["annotations"][names.IDLE_TEST] == "gpu-lost/gpu-1/boot-1"
    assert not meta.get("finalizers")


async def test_a_failed_test_is_a_condition_of_the_node_and_kept_by_serial_number(idle):
    harness = idle
    harness.answer("gpu-check", WRONG)
    await gpu_node(harness, "gpu-1")
    async with running(harness):
        await until(lambda: said(harness, "gpu-1"))
        await until(lambda: told(harness, "IdleTestFailed"))
        await harness.quiet()
    assert (said(harness, "gpu-1")["status"], said(harness, "gpu-1")["reason"]) == ("True", "ProbeFailed")
    assert "multiplies wrongly" in said(harness, "gpu-1")["message"]
    inventory = next(each for each in harness.all(INVENTORIES) if each["metadata"]["name"] == "gpu-1")
    kept = inventory["status"]["testedGpus"]
    assert [(gpu["serial"], gpu["uuid"], gpu.get("passed", False)) for gpu in kept] == [
        ("1650923000001", "GPU-9f3c01ab-1111", False)
    ]
    assert harness.cases("gpu-1") == [], "no policy asks about it"


async def test_a_policy_may_go_by_it_and_its_repair_takes_the_condition_back(idle):
    harness = idle
    harness.answer("gpu-check", WRONG, FINE)
    when = [{"condition": "IdleTestFailed", "for": "0s"}]
    await harness.policy("idle-test-failed", when=when, verify={"settle": "1s", "fresh": "1s", "timeout": "60s"})
    await gpu_node(harness, "gpu-1")
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"), 60)
        await until(lambda: said(harness, "gpu-1")["status"] == "False")
    assert harness.ran[:3] == ["gpu-check gpu-1", "collect-diagnostics gpu-1", "drain gpu-1"]
    assert "reboot gpu-1" in harness.ran


@pytest.mark.parametrize("deleted", [True, False], ids=["the policy", "its idleTest"])
async def test_what_a_test_has_found_is_unknown_once_nobody_has_the_node_tested(idle, deleted):
    harness = idle
    harness.answer("gpu-check", WRONG)
    await gpu_node(harness, "gpu-1")
    async with running(harness):
        await until(lambda: said(harness, "gpu-1") and said(harness, "gpu-1")["status"] == "True")
        if deleted:
            await harness.client.delete(POLICIES, "gpu-lost")
        else:
            await harness.change(POLICIES, "gpu-lost", spec={"idleTest": None})
        await until(lambda: said(harness, "gpu-1")["status"] == "Unknown")
        assert said(harness, "gpu-1")["reason"] == "NoPolicyTestsIt"
        await harness.policy(idleTest=IDLE_TEST) if deleted else await harness.change(
            POLICIES, "gpu-lost", spec={"idleTest": IDLE_TEST}
        )
        await until(lambda: said(harness, "gpu-1")["status"] == "True")


async def test_a_probe_that_can_never_run_is_told_in_the_status_of_its_policy(idle):
    harness = idle
    await harness.change(TEMPLATES, "gpu-check", spec={"runOn": "Elsewhere"})
    async with running(harness):
        await until(lambda: ready(harness)["reason"] == "IdleTestCannotRun")
        message = "spec.idleTest.probe: gpu-check does not run on the node that it is about, so no idle node is tested"
        assert (ready(harness)["status"], ready(harness)["message"]) == ("False", message)


async def test_a_boot_by_hand_gives_a_node_that_has_failed_not_back(idle):
    harness = idle
    await harness.budget("all", 0)
    harness.answer("gpu-check", WRONG)
    await harness.policy("idle-test-failed", when=[{"condition": "IdleTestFailed", "for": "0s"}])
    await gpu_node(harness, "gpu-1")
    async with running(harness):
        await until(lambda: harness.cases("gpu-1"))
        boot = {"status": {"nodeInfo": {"bootID": "another"}}}
        await harness.client.patch(NODES, "gpu-1", boot, subresource="status")
        await harness.quiet()
        assert said(harness, "gpu-1")["status"] == "True"
        assert not harness.ended("gpu-1", "Recovered")


async def test_of_two_policies_for_one_node_only_the_first_by_name_tests_it(idle):
    harness = idle
    await harness.template("longer-check")
    harness.answer("longer-check", FINE)
    await harness.policy("second", idleTest={**IDLE_TEST, "probe": "longer-check"})
    harness.answer("gpu-check", WRONG)
    await gpu_node(harness, "gpu-1")
    async with running(harness):
        await until(lambda: said(harness, "gpu-1"))
        await harness.quiet()
    assert harness.ran == ["gpu-check gpu-1"]


async def test_the_page_names_the_tests_that_go_on(idle):
    harness = idle
    harness.answer("gpu-check", RUNS)
    await gpu_node(harness, "gpu-1")
    async with running(harness):
        await until(lambda: harness.pods("gpu-check", "Running"))
        async with page_served(harness) as page:
            _, text = await page.get("/api/v1/fleet")
    assert [(test["node"], test["policy"]) for test in json.loads(text)["idleTests"]] == [("gpu-1", "gpu-lost")]


async def test_a_test_that_cannot_tell_proves_nothing_and_the_node_is_left_alone_for_a_while(idle):
    harness = idle
    harness.answer("gpu-check", CANNOT_TELL)
    await gpu_node(harness, "gpu-1")
    async with running(harness):
        await until(lambda: told(harness, "IdleTestCannotTell"))
        await harness.quiet()
    assert harness.ran == ["gpu-check gpu-1"]
    assert (found(harness, "gpu-1"), said(harness, "gpu-1")) == (None, None)


async def test_a_preempted_test_proves_nothing_though_its_program_ends_with_1(idle):
    harness = idle
    harness.answer("gpu-check", RUNS)
    await gpu_node(harness, "gpu-1")
    async with running(harness):
        pod = (await until(lambda: harness.pods("gpu-check", "Running")))[0]["metadata"]["name"]
        why = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        killed = {"terminated": {"exitCode": 1, "message": "failed: a child was killed", "reason": "Error"}}
        status = {"conditions": [why], "phase": "Failed", "containerStatuses": [{"name": "main", "state": killed}]}
        where = {"namespace": names.OPERATIONS_NAMESPACE, "subresource": "status"}
        await harness.client.patch(PODS, pod, {"status": status}, **where)
        await until(lambda: told(harness, "IdleTestPreempted"))
        await until(lambda: not harness.pods("gpu-check"))
    assert (found(harness, "gpu-1"), said(harness, "gpu-1")) == (None, None)


@pytest.mark.parametrize("claims", ["gpu-lost/gpu-2/boot-1", "gpu-lost/gpu-1/boot-0"], ids=["node", "boot"])
async def test_what_a_test_says_of_another_node_or_of_another_boot_proves_nothing(idle, claims):
    harness = idle
    harness.answer("gpu-check", RUNS)
    await gpu_node(harness, "gpu-1")
    await harness.node("gpu-2")
    async with running(harness):
        pod = (await until(lambda: harness.pods("gpu-check", "Running")))[0]["metadata"]["name"]
        await bind(harness, pod, "gpu-1")
        where = {"namespace": names.OPERATIONS_NAMESPACE}
        await harness.client.patch(PODS, pod, {"metadata": {"annotations": {names.IDLE_TEST: claims}}}, **where)
        ended = {"terminated": {"exitCode": 1, "message": "failed: multiplies wrongly", "reason": "Error"}}
        status = {"phase": "Failed", "containerStatuses": [{"name": "main", "state": ended}]}
        await harness.client.patch(PODS, pod, {"status": status}, subresource="status", **where)
        await until(lambda: told(harness, "IdleTestCannotTell"))
        await until(lambda: not harness.pods("gpu-check", "Failed"))
    assert [(found(harness, node), said(harness, node)) for node in ("gpu-1", "gpu-2")] == [(None, None)] * 2


async def test_a_result_that_cannot_be_kept_is_told_and_its_place_is_free(idle):
    """A NodeInventory of the node's name that is about a group of nodes is legal."""
    harness = idle
    harness.answer("gpu-check", WRONG, FINE)
    group = {"apiVersion": "remediator.dev/v1alpha1", "kind": "NodeInventory", "metadata": {"name": "gpu-1"}}
    await harness.client.create(
        INVENTORIES, group | {"spec": {"nodeSelector": {"matchLabels": {"a": "b"}}, "expected": {"gpus": 8}}}
    )
    await gpu_node(harness, "gpu-1")
    async with running(harness):
        await until(lambda: told(harness, "IdleTestCannotTell"))
        await gpu_node(harness, "gpu-2")
        await until(lambda: found(harness, "gpu-2"))
    assert harness.ran.count("gpu-check gpu-1") == 1
    assert said(harness, "gpu-1") is None


async def test_never_more_than_the_share_is_tested_and_a_second_leader_makes_no_more(idle):
    harness = idle
    harness.answer("gpu-check", RUNS)
    await harness.change(POLICIES, "gpu-lost", spec={"idleTest": {"share": "40%"}})
    for number in range(1, 6):
        await gpu_node(harness, f"gpu-{number}")  # 40 % of five nodes are two
    async with running(harness):
        await until(lambda: len(harness.pods("gpu-check", "Running")) == 2)
        await harness.quiet()
        assert len(harness.pods("gpu-check")) == 2
    async with running(harness, "two"):
        await until(lambda: any(each["spec"]["holderIdentity"] == "two" for each in harness.all(LEASES)))
        await harness.quiet()
        assert len(harness.pods("gpu-check")) == 2


@pytest.mark.parametrize("stop", ["mode", "exclude", "cordon", "pause", "work", "template"])
async def test_nothing_new_begins_where_a_user_has_stopped_it_or_pods_hold_gpus(idle, stop):
    harness = idle
    await gpu_node(harness, "gpu-1", **({"exclude": "true"} if stop == "exclude" else {}))
    if stop == "mode":
        await harness.change(POLICIES, "gpu-lost", spec={"mode": "DryRun"})
    if stop == "cordon":
        await harness.change(NODES, "gpu-1", spec={"unschedulable": True})
    if stop == "pause":
        await harness.change(NAMESPACES, names.SYSTEM_NAMESPACE, metadata={"annotations": {names.PAUSED: "true"}})
    if stop == "template":
        await harness.change(TEMPLATES, "gpu-check", spec={"drain": {"strategy": "Evict"}})
    if stop == "work":
        container = {"name": "a", "image": "b", "resources": {"limits": {GPU: "1"}}}
        await harness.client.create(
            PODS,
            {"metadata": {"name": "work"}, "spec": {"nodeName": "gpu-1", "containers": [container]}},
            namespace="default",
        )
    async with running(harness):
        await harness.quiet()
    assert harness.ran == []


async def test_a_test_gives_way_to_a_case_of_its_node(idle):
    harness = idle
    harness.answer("gpu-check", RUNS)
    await gpu_node(harness, "gpu-1")
    async with running(harness):
        await until(lambda: harness.pods("gpu-check", "Running"))
        await harness.condition("gpu-1", "True")
        await until(lambda: told(harness, "IdleTestGaveWay"))
        await until(lambda: harness.ended("gpu-1", "Recovered"), 60)
    assert found(harness, "gpu-1") is None


async def test_no_operation_begins_beside_a_test_of_its_node(idle, monkeypatch):
    """However seldom tests are looked at: a case of the node makes its test give way, and the operation waits."""
    harness = idle
    monkeypatch.setattr(idle_tests, "LOOK", 3600.0)
    harness.answer("gpu-check", RUNS)
    await gpu_node(harness, "gpu-1")
    async with running(harness):
        test = (await until(lambda: harness.pods("gpu-check", "Running")))[0]["metadata"]["name"]
        beside: list[str] = []

        def hear(change: Change) -> None:
            """Of a Pod of an operation that is made while the test is there and nobody has ended it."""
            made = change.entry.obj["metadata"]
            operation = made.get("labels", {}).get(names.OPERATION_UID_LABEL)
            if (
                change.type == "ADDED"
                and operation
                and test in [each["metadata"]["name"] for each in harness.pods("gpu-check")]
            ):
                beside.append(made["name"])

        harness.server.cluster.store.collection("pods").listen(Listener(None, hear, lambda: None))
        await harness.condition("gpu-1", "True")
        await until(lambda: harness.ended("gpu-1", "Recovered"), 60)
    assert beside == []
    assert "reboot gpu-1" in harness.ran


async def test_a_test_on_a_dead_node_is_told_of_once_and_counts_until_the_node_is_deleted(idle, monkeypatch):
    harness = idle
    monkeypatch.setattr(idle_tests.idle_test, "LOST_AFTER", idle_tests.timedelta(0))
    harness.answer("gpu-check", RUNS, FINE)
    await gpu_node(harness, "gpu-1")
    async with running(harness):
        pod = (await until(lambda: harness.pods("gpu-check", "Running")))[0]["metadata"]["name"]
        await bind(harness, pod, "gpu-1")
        harness.dead.add("gpu-1")
        await harness.condition("gpu-1", "Unknown", "Ready")
        await gpu_node(harness, "gpu-2")
        await until(lambda: told(harness, "IdleTestLost"), 30)
        await harness.quiet()
        assert len(told(harness, "IdleTestLost")) == 1
        assert [each["metadata"]["name"] for each in harness.pods("gpu-check")] == [pod]
        await harness.client.delete(NODES, "gpu-1")
        await harness.client.send(
            "DELETE", PODS.path(pod, names.OPERATIONS_NAMESPACE), dict, {"gracePeriodSeconds": 0}
        )  # as Kubernetes collects it
        await until(lambda: found(harness, "gpu-2"), 30)
    assert found(harness, "gpu-1") is None


async def test_explain_says_what_tests_have_found(idle):
    harness = idle
    harness.answer("gpu-check", WRONG)
    await gpu_node(harness, "gpu-1")
    async with running(harness):
        await until(lambda: said(harness, "gpu-1"))
    _, lines, _ = await explained(harness, "gpu-1")
    assert any(line.startswith("  idle test: Failed ") and "multiplies wrongly" in line for line in lines)
