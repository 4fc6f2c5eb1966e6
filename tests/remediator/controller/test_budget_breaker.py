"""The breaker of a budget at work: it stops starts under its budget, and stays open until a user closes it."""

import pytest

from remediator.core import names
from tests.harness.controller import now, running, until
from tests.harness.kinds import BUDGETS, CASES
from tests.remediator.controller.test_scenarios import FAILED

SIX = [f"gpu-{number}" for number in range(6)]


async def sick(harness, nodes, **labels) -> None:
    for node in nodes:
        await harness.node(node, "True", **labels)


def reboots(harness) -> list[str]:
    return [ran for ran in harness.ran if ran.startswith("reboot")]


def held_by(harness, reason) -> list[str]:
    return [node for node in SIX if harness.reasons(node) == [reason]]


def status(harness, name):
    return next(each["status"] for each in harness.all(BUDGETS) if each["metadata"]["name"] == name)


@pytest.mark.slow
async def test_two_starts_in_ten_minutes_hold_the_other_four_nodes_of_the_budget_and_no_other_node(harness):
    await harness.policy()
    for pool in ("a", "b"):
        selector = {"matchLabels": {"remediator.dev/pool": pool}}
        breaker = {"breaker": {"starts": 2}} if pool == "a" else {}
        await harness.make(BUDGETS, pool, selector=selector, maxUnavailable=10, **breaker)
    await sick(harness, SIX, pool="a")
    await sick(harness, ["other"], pool="b")
    async with running(harness):
        await until(lambda: len(held_by(harness, "BreakerOpen")) == 4)
        await until(lambda: harness.ended("other", "Recovered"), 40)
        await until(lambda: len([node for node in SIX if harness.ended(node, "Recovered")]) == 2, 40)
        assert len(held_by(harness, "BreakerOpen")) == 4, "recoveries go on, starts wait"
        (block,) = harness.cases(held_by(harness, "BreakerOpen")[0])[0]["status"]["blockedBy"]
    assert block["message"].startswith("budget a: 2 starts in 10 min; ")
    assert block["until"] > now().isoformat()


@pytest.mark.slow
async def test_two_attempts_in_vain_stop_the_budget_until_a_user_says_so_whatever_restarts_or_is_deleted(harness):
    await harness.policy(ladder=[{"operation": "reboot"}])
    rule = {"failures": {"of": 3, "most": 2}}
    await harness.make(BUDGETS, "all", selector={}, maxUnavailable=1, maxQuarantined=100, breaker=rule)
    harness.answer("reboot", FAILED)
    await sick(harness, SIX)
    async with running(harness, "one"):
        await until(lambda: len(held_by(harness, "BudgetFailing")) == 4, 40)
        breaker = status(harness, "all")["breaker"]
        assert breaker["message"] == "2 of the last 2 attempts under budget all were in vain"
        assert sorted(attempt["node"] for attempt in breaker["attempts"]) == ["gpu-0", "gpu-1"]
    for case in harness.all(CASES):
        if case["status"]["phase"] == "Escalated":
            await harness.client.delete(CASES, case["metadata"]["name"])
    async with running(harness, "two"):
        await until(lambda: not [one for one in harness.all(CASES) if one["metadata"].get("deletionTimestamp")])
        await harness.quiet()
        assert (len(reboots(harness)), len(held_by(harness, "BudgetFailing"))) == (2, 4)
        assert status(harness, "all")["breaker"] == breaker
        (block,) = harness.cases(held_by(harness, "BudgetFailing")[0])[-1]["status"]["blockedBy"]
        assert "remediator close-breaker budget/all" in block["message"]
        closed = {"annotations": {names.BREAKER_CLOSED_AT: now().strftime("%Y-%m-%dT%H:%M:%SZ")}}
        await harness.change(BUDGETS, "all", metadata=closed)
        await until(lambda: len(reboots(harness)) > 2, 40)
