"""What the tests of node-operation-controller ask of it holds here for the same manifests, converted.

The numbers are those of its unit tests (controllers/nodeoperation_controller_test.go) and of its suite
(controllers/suite_test.go), in their order.
"""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from remediator.core import admission as core_admission
from remediator.core import names
from remediator.core.admission import Basis, StartRequest
from remediator.core.breaker import Breaker
from remediator.core.budget import Budget, Claim
from remediator.core.census import snapshot
from remediator.core.node import Node
from remediator.kube import api
from remediator.kube.api import decode
from remediator.kube.manifests.noc import convert
from tests.builders import a_budget, a_case, a_node, a_sick_node, at, minutes
from tests.harness.controller import DONE, GPU, RUNS, environment, running, until
from tests.harness.kinds import BUDGETS, CASES, EVENTS, NODES, OPERATIONS, PODS, POLICIES, TEMPLATES
from tests.remediator.controller.test_asked_by_users import ask, asked, ended
from tests.remediator.kube.manifests import noc_examples as noc

Object = dict[str, Any]
DEFAULT = a_budget("default", most="5%", fallback=True)
OTHER, TAINTED = {"k1": "v2"}, {"k1": "v1"}


def converted(*documents: Object) -> list[Object]:
    conversion = convert([("noc.yaml:1", document) for document in documents])
    assert conversion.refused == 0
    return list(conversion.objects)


def budgets(*documents: Object) -> list[Budget]:
    """Converted, and adopted as by a controller that has seen them."""
    wire = [msgspec.convert(each, api.NodeDisruptionBudget) for each in converted(*documents)]
    return [replace(decode.disruption_budget(each), adopted=True) for each in wire]


def admitted(budget: Object, *nodes: Node, claimed: str = "") -> bool:
    """Whether a case of the first node may start; the node `claimed` is held by another case."""
    held = [replace(each, claims=(Claim(claimed, "case-x", at(0)),) if claimed else ()) for each in budgets(budget)]
    target = a_sick_node(nodes[0].name, labels=nodes[0].labels)
    request = StartRequest(a_case(node=target.name), target, 1, ())
    census = snapshot([DEFAULT, *held], [target, *nodes[1:]])
    return bool(core_admission.admit([request], Basis(census, [], Breaker(100, minutes(10)), at(5))).admitted)


@pytest.mark.parametrize(
    ("budget", "nodes", "allowed"),
    [
        pytest.param({}, [{}], True, id="1 an empty budget"),
        pytest.param({"minAvailable": 1}, [{}], False, id="2 the only node must stay"),
        pytest.param({"minAvailable": 0}, [{}], True, id="3 none must stay"),
        pytest.param({"maxUnavailable": 0}, [{}], False, id="4 none may go"),
        pytest.param({"maxUnavailable": 1}, [{}], True, id="5 one may go"),
        pytest.param({"selector": TAINTED, "minAvailable": 0}, [TAINTED, OTHER], True, id="6 of two, one is counted"),
        pytest.param({"selector": TAINTED, "minAvailable": 1}, [TAINTED, OTHER], False, id="7 and that one must stay"),
        pytest.param({"labels": TAINTED, "minAvailable": 1}, [{}], False, id="8 the operation names the budget"),
        pytest.param({"selector": TAINTED, "minAvailable": 1}, [OTHER, TAINTED], True, id="B10 a budget of others"),
    ],
)
def test_a_budget_of_theirs_lets_the_same_nodes_go(budget: Object, nodes: list[dict[str, str]], allowed: bool) -> None:
    fleet = [a_node(f"gpu-{number}", labels=labels) for number, labels in enumerate(nodes, start=1)]
    assert admitted(noc.budget(**budget), *fleet) is allowed


def test_9_a_budget_that_an_operation_does_not_name_holds_it_all_the_same_and_that_is_told() -> None:
    """Theirs: allowed. No operation of a user passes by a budget here."""
    assert not admitted(noc.budget(labels=OTHER, minAvailable=1), a_node("gpu-1"))
    (note,) = [
        note
        for note in convert([("f:1", noc.template(nodeDisruptionBudgetSelector=TAINTED))]).notes
        if note.field.endswith("nodeDisruptionBudgetSelector")
    ]
    assert note.message.startswith("is left out: every budget that selects the node holds")


@pytest.mark.parametrize(("most", "allowed"), [(2, False), (3, True)])
def test_10_a_node_with_a_taint_counts_once_it_is_cordoned_beside_one_that_is_held(most: int, allowed: bool) -> None:
    taint = {"key": "k1", "effect": "NoSchedule", "operator": "Exists"}
    nodes = [a_node("gpu-3"), a_node("gpu-1"), a_node("gpu-2", unschedulable=True)]
    assert admitted(noc.budget(maxUnavailable=most, taintTargets=[taint]), *nodes, claimed="gpu-1") is allowed


async def apply(harness, *documents: Object) -> None:
    """What a user does with `remediator convert noc FILE | kubectl apply -f -`, and Enforce at once."""
    kinds = {"NodeOperationTemplate": TEMPLATES, "RemediationPolicy": POLICIES, "NodeDisruptionBudget": BUDGETS}
    for each in converted(*documents):
        spec = each["spec"]
        if each["kind"] == "RemediationPolicy":
            spec |= {"mode": "Enforce", "verify": {"settle": "1s", "fresh": "1s", "timeout": "30s"}, "cooldown": "0s"}
            spec["when"][0]["for"] = "0s"
        if each["kind"] == "NodeOperationTemplate":
            harness.answer(each["metadata"]["name"], DONE)
        await harness.make(kinds[each["kind"]], each["metadata"]["name"], **spec)


@pytest.mark.parametrize("strategy", ["", "Evict", "Delete", "ForceDelete", "None"])
async def test_11_to_15_an_operation_drains_by_its_strategy_learns_its_node_succeeds_and_gives_the_node_back(
    harness, strategy: str
) -> None:
    await harness.node("gpu-1")
    await apply(harness, noc.operation(**({"evictionStrategy": strategy} if strategy else {})))
    harness.answer("by-hand", RUNS)
    async with running(harness):
        await ask(harness, template="by-hand")
        (pod,) = await until(lambda: harness.pods("by-hand"))
        assert names.CASE_TAINT in harness.taints("gpu-1"), "the node is held while it is operated on"
        assert environment(pod)["NODE_NAME"] == "gpu-1"
        assert {"name": "TARGET_NODE", "value": "$(NODE_NAME)"} in pod["spec"]["containers"][0]["env"]
        await until(lambda: "by-hand gpu-1" in harness.ran)
        await harness.finish("by-hand", DONE)
        await until(lambda: ended(harness) and harness.clean("gpu-1"))
    assert (ended(harness), harness.taints("gpu-1")) == ("Succeeded", [])
    assert harness.ran == ["collect-diagnostics gpu-1", "drain gpu-1", "by-hand gpu-1"]


async def test_16_an_operation_that_evicts_nobody_and_waits_for_nobody_works_under_the_pods(harness) -> None:
    await harness.node("gpu-1")
    pod = {"metadata": {"name": "stays"}, "spec": {"nodeName": "gpu-1", "containers": [{"name": "c", "image": "i"}]}}
    await harness.client.create(PODS, pod, namespace="default")
    await apply(harness, noc.operation(evictionStrategy="None", skipWaitingForEviction=True))
    async with running(harness):
        await ask(harness, template="by-hand")
        await until(lambda: ended(harness) and harness.clean("gpu-1"))
    assert (ended(harness), "drain gpu-1" in harness.ran) == ("Succeeded", False)


async def test_17_of_two_operations_on_one_node_the_second_waits_and_then_runs_too(harness) -> None:
    """Theirs ends as Completed and Pending, and stays so (B1)."""
    await harness.node("gpu-1")
    await apply(harness, noc.operation())
    async with running(harness):
        await ask(harness, "first", template="by-hand")
        await ask(harness, "second", template="by-hand")
        await until(lambda: ended(harness, "first") and ended(harness, "second") and harness.clean("gpu-1"))
    assert [ended(harness, name) for name in ("first", "second")] == ["Succeeded", "Succeeded"]
    assert harness.ran.count("by-hand gpu-1") == 2


async def test_18_an_operation_that_is_deleted_while_it_runs_gives_its_node_back_once_its_pod_has_ended(
    harness,
) -> None:
    """Theirs unties the node at once, half way through (B16)."""
    await harness.node("gpu-1")
    await apply(harness, noc.operation())
    harness.answer("by-hand", RUNS)
    async with running(harness):
        await ask(harness, template="by-hand")
        await until(lambda: "by-hand gpu-1" in harness.ran)
        await harness.client.delete(OPERATIONS, "by-hand")
        await harness.quiet()
        assert names.CASE_TAINT in harness.taints("gpu-1")
        await harness.finish("by-hand", DONE)
        await until(lambda: harness.clean("gpu-1"))


@pytest.mark.parametrize("budget", [{"minAvailable": 1}, {"maxUnavailable": 1}], ids=["20", "21"])
async def test_20_and_21_of_operations_on_two_nodes_the_second_waits_for_the_budget_and_then_runs(
    harness, budget: Object
) -> None:
    workers = {"pool": "workers"}
    for node in ("gpu-1", "gpu-2"):
        await harness.node(node)
        await harness.change(NODES, node, metadata={"labels": workers})
    await apply(harness, noc.operation(), noc.budget(workers, **budget))
    harness.answer("by-hand", RUNS)
    async with running(harness):
        await ask(harness, "first", template="by-hand", node="gpu-1")
        await until(lambda: "by-hand gpu-1" in harness.ran)
        await ask(harness, "second", template="by-hand", node="gpu-2")
        await until(lambda: "held: BudgetSpent" in asked(harness, "second").get("message", ""))
        harness.answer("by-hand", DONE)
        await harness.finish("by-hand", DONE)
        await until(lambda: ended(harness, "second") == "Succeeded" and harness.clean("gpu-2"))


async def test_22_a_template_of_remediations_acts_on_the_nodes_that_it_selects_and_on_no_other(harness) -> None:
    for node in ("gpu-1", "gpu-2"):
        await harness.node(node)
    await harness.change(NODES, "gpu-1", metadata={"labels": {"kubernetes.io/hostname": "gpu-1"}})
    await apply(harness, noc.template(), noc.remediations((GPU, "True"), nodes={"kubernetes.io/hostname": "gpu-1"}))
    async with running(harness):
        for node in ("gpu-1", "gpu-2"):
            await harness.condition(node, "True")
        await until(lambda: harness.cases("gpu-1"))
        await harness.quiet()
    assert [case["spec"]["policyName"] for case in harness.all(CASES)] == ["sick"]


async def test_23_unknown_starts_nothing_true_does_and_a_program_that_cures_nothing_is_not_called_a_success(
    harness,
) -> None:
    await harness.node("gpu-1", "Unknown")
    await harness.change(NODES, "gpu-1", metadata={"labels": {"auto-remediation": ""}})
    await apply(harness, noc.template(), noc.remediations((GPU, "True")))
    await harness.change(POLICIES, "sick", spec={"verify": {"timeout": "1s"}})
    async with running(harness):
        await harness.quiet()
        assert harness.cases("gpu-1") == []
        await harness.condition("gpu-1", "True")
        await until(lambda: harness.phase("gpu-1") == "Escalated")
    (case,) = harness.cases("gpu-1")
    assert harness.ran.count("repair gpu-1") == 1, "once, as theirs"
    assert names.CASE_TAINT in harness.taints("gpu-1"), "the node is still bad: it stays out (B6)"
    assert case["status"]["attempts"][0]["outcome"] != "Recovered"


async def test_24_a_condition_that_becomes_healthy_ends_no_program_in_the_middle(harness) -> None:
    """Theirs deletes the operation, and its Pod is killed (B7)."""
    await harness.node("gpu-1", "True")
    await harness.change(NODES, "gpu-1", metadata={"labels": {"auto-remediation": ""}})
    await apply(harness, noc.template(), noc.remediations((GPU, "True")))
    harness.answer("repair", RUNS)
    async with running(harness):
        await until(lambda: "repair gpu-1" in harness.ran)
        await harness.condition("gpu-1", "False")
        await harness.quiet()
        (pod,) = harness.pods("repair")
        assert "deletionTimestamp" not in pod["metadata"]
        await harness.finish("repair", DONE)
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_b5_an_operation_whose_pod_somebody_deletes_fails_and_its_node_is_given_back(harness) -> None:
    await harness.node("gpu-1")
    await apply(harness, noc.operation())
    harness.answer("by-hand", RUNS)
    async with running(harness):
        await ask(harness, template="by-hand")
        await until(lambda: "by-hand gpu-1" in harness.ran)
        (pod,) = harness.pods("by-hand")
        await harness.client.delete(PODS, pod["metadata"]["name"], namespace=names.OPERATIONS_NAMESPACE)
        await until(lambda: ended(harness) and harness.clean("gpu-1"))
    assert (ended(harness), asked(harness)["reason"]) == ("Failed", "PodDeleted")


@pytest.mark.parametrize("status", ["Unknown", "True"])
async def test_b18_heartbeats_alone_make_no_events(harness, status: str) -> None:
    await harness.node("gpu-1", status)
    await harness.change(NODES, "gpu-1", metadata={"labels": {"auto-remediation": ""}})
    await apply(harness, noc.template(), noc.remediations((GPU, "True")))
    await harness.change(POLICIES, "sick", spec={"mode": "DryRun"})
    async with running(harness):
        await until(lambda: harness.all(BUDGETS) and (status == "Unknown" or harness.reasons("gpu-1")))
        await harness.quiet()
        before, beat = len(harness.all(EVENTS)), harness.look("gpu-1")["status"]["conditions"]
        await until(lambda: harness.look("gpu-1")["status"]["conditions"] != beat)
        await harness.quiet()
    assert (len(harness.all(EVENTS)), before > 0) == (before, status == "True")
