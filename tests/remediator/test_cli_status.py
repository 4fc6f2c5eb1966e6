"""`remediator status`, `history` and `-o json`: what a person and a script are told of the fleet and of one node."""

import json
from datetime import timedelta

import pytest

from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.kube.api.builtin import NAMESPACE
from remediator.kube.overview import overview
from remediator.kube.wire.client import Client
from tests.harness.controller import RUNS, Answer, ControllerHarness, controller_harness, now, running, until
from tests.harness.kinds import CASES
from tests.remediator.test_cli import beside
from tests.remediator.test_cli_explain import _WITHOUT, Watched, two_that_are_ill

IN_VAIN = Answer(exit=1, message="it still runs")


async def asked(harness: ControllerHarness, *words: str) -> tuple[int, str, str]:
    """What a command prints beside this server."""
    async with harness.server.serve() as endpoint:
        return await beside(*words, "--kubeconfig", str(endpoint.kubeconfig))


async def one_held_one_repaired_one_with_a_person(harness: ControllerHarness) -> None:
    """gpu-3 was rebooted twice in vain, gpu-1 is being rebooted, gpu-2 waits for it: the budget has room for one."""
    await harness.budget("all", 1)
    await harness.policy()
    harness.answer("reboot", IN_VAIN)
    await harness.node("gpu-3", "True")
    await until(lambda: harness.phase("gpu-3") == "Escalated")
    harness.answer("reboot", RUNS)
    await harness.node("gpu-1", "True")
    await until(lambda: harness.phase("gpu-1") == "Operating")
    await harness.node("gpu-2", "True")
    await until(lambda: harness.reasons("gpu-2") == ["BudgetSpent"])


@pytest.mark.slow
async def test_one_screen_says_how_many_wait_for_what_and_who_must_act():
    async with controller_harness() as harness, running(harness, breaker=Breaker(7, timedelta(minutes=3))):
        await one_held_one_repaired_one_with_a_person(harness)
        code, out, err = await asked(harness, "status")
        _, text, _ = await asked(harness, "status", "-o", "json")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "fleet: 4 nodes; 3 cases are open, on 3 of them"
    assert lines[1].startswith("controller: one leads, last heard of ")
    assert "breaker of the fleet: at least 3 of 7 starts in 3 min" in lines
    assert "policies: 1 Enforce" in lines
    operator, nobody = lines.index("an operator must act:"), lines.index("nobody must act, these go on by themselves:")
    assert lines[operator + 1].startswith("  LadderExhausted: 1, for ")
    assert lines[operator + 1].endswith(": gpu-3")
    assert lines[operator + 2] == "    repair the node by hand, then set spec.release of the case to true"
    told = {line.split(":")[0].strip(): line.rpartition(": ")[2] for line in lines[nobody + 1 : nobody + 3]}
    assert told == {"BudgetSpent": "gpu-2", "Operating reboot": "gpu-1"}
    assert lines[-2:] == ["budgets: 2, of which used: 1", "  all: 1 of 1 unavailable, 1 of 2 quarantined"]
    data = json.loads(text)
    assert [(group["actor"], group["waitsFor"]) for group in data["groups"]] == [
        ("Operator", "LadderExhausted"),
        ("Nobody", "BudgetSpent"),
        ("Nobody", "Operating reboot"),
    ]
    assert data["controller"]["leads"] is True
    assert data["breaker"] == {"starts": 3, "exact": False, "most": 7, "windowSeconds": 180}
    assert data["budgets"][0] == {
        "name": "all",
        "total": 3,
        "unavailable": 1,
        "allowed": 0,
        "quarantined": 1,
        "breakerOpen": "",
    }


async def test_a_pause_stands_on_the_screen_and_a_fleet_without_a_case_has_no_more_to_say():
    async with controller_harness() as harness:
        paused = {"metadata": {"annotations": {names.PAUSED: "true"}}}
        await harness.client.patch(NAMESPACE, harness.namespaces.system, paused)
        code, out, _ = await asked(harness, "status")
    assert (code, out.splitlines()) == (
        0,
        [
            "fleet: 1 node; no case is open",
            "controller: no replica of the controller has led yet",
            f"everything is paused: the namespace remediator-system has the annotation {names.PAUSED}",
            "breaker of the fleet: at least 0 of 10 starts in 10 min",
            "policies: none",
            "budgets: 0, of which used: 0",
        ],
    )


async def test_the_screen_lists_no_node_and_no_case_that_is_over():
    async with controller_harness() as harness:
        await two_that_are_ill(harness)
        async with running(harness):
            await until(lambda: harness.phase("gpu-1") == "Operating")
            watched = Watched(harness.server.transport())
            fleet = await overview(Client(watched), SYSTEM, harness.namespaces)
    assert [case.node for case in fleet.cases] == ["gpu-1"]
    assert fleet.nodes == 2
    assert watched.asked == [
        ("noderemediations", "status.phase!=Recovered,status.phase!=Cancelled"),
        ("remediationpolicies", ""),
        ("nodedisruptionbudgets", ""),
        ("namespaces", f"metadata.name={harness.namespaces.system}"),
        ("pods", ""),
        ("nodes", ""),
    ]
    assert watched.limits["nodes"] == "1"


@pytest.mark.slow
async def test_a_script_reads_of_explain_what_a_person_does():
    async with controller_harness() as harness, running(harness):
        await one_held_one_repaired_one_with_a_person(harness)
        code, out, err = await asked(harness, "explain", "gpu-2", "-o", "json")
    data = json.loads(out)
    (case,) = data["cases"]
    assert (code, err, data["decision"], data["paused"]) == (0, "", "Busy", False)
    assert data["policies"] == [{"name": "gpu-lost", "mode": "Enforce", "health": "Unhealthy"}]
    assert [block["reason"] for block in case["blockedBy"]] == ["BudgetSpent"]
    assert (case["phase"], case["nextStep"], case["nextOperation"]) == ("Held", "CLAIM", "reboot")
    assert case["command"] == "remediator hold gpu-2   # nothing new starts"
    assert data["believed"][0].startswith("believed: GpuLost=True (Said)")
    assert data["controller"]["holder"] == "one"


@pytest.mark.slow
async def test_history_has_all_kept_cases_of_a_node_the_oldest_first_also_where_no_list_by_node_is_known():
    async with controller_harness() as harness:
        await harness.policy()
        await harness.node("gpu-1")
        async with running(harness):
            for number, ago in ((1, 10), (2, 0)):
                await harness.condition("gpu-1", "True", since=now() - timedelta(seconds=ago))
                await until(lambda number=number: len(harness.cases("gpu-1")) == number)
                await until(lambda: harness.ended("gpu-1", "Recovered"))
        code, out, err = await asked(harness, "history", "gpu-1")
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CASES.plural}.{CASES.group}"
        await harness.client.send("PATCH", path, dict, _WITHOUT, content_type="application/json-patch+json")
        _, text, _ = await asked(harness, "history", "gpu-1", "--output", "json")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert [line.partition("  ")[2] for line in lines if not line.startswith(" ")] == [
        f"{case['metadata']['name']}: policy gpu-lost, GpuLost=True (Said)" for case in harness.cases("gpu-1")
    ]
    assert sum(" reboot: Succeeded after " in line for line in lines) == 2
    assert sum(line.startswith("  Recovered after ") for line in lines) == 2
    data = json.loads(text)
    assert [(case["phase"], len(case["attempts"])) for case in data["cases"]] == [("Recovered", 1)] * 2


async def test_history_tells_a_node_without_a_case_from_one_that_is_not_there():
    async with controller_harness() as harness:
        await harness.node("gpu-17")
        assert await asked(harness, "history", "gpu-17") == (0, "gpu-17: no case is kept\n", "")
        code, _, err = await asked(harness, "history", "gpu17")
    assert (code, err) == (
        1,
        "remediator: no case of a node gpu17 is kept: no node gpu17 in the cluster; did you mean gpu-17?\n",
    )
