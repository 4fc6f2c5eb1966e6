"""`remediator close-breaker`: what a name means, what is told of it, and that it may be run again."""

import asyncio

import pytest

from remediator.core import names
from remediator.kube import api
from remediator_sim.plain import plain
from tests.harness.controller import ControllerHarness, controller_harness
from tests.harness.kinds import BUDGETS, POLICIES
from tests.remediator.test_cli import beside

OPENED = "2026-11-02T10:00:00Z"
POLICY_KIND, BUDGET_KIND = plain(api.POLICY), plain(api.BUDGET)
VAIN = "4 of the last 4 attempts under policy gpu-lost were in vain"
OF_REBOOT = "4 of the last 6 attempts of template reboot were in vain"


def attempts(*nodes, template="reboot"):
    return [
        {"operation": f"{node}-reboot", "template": template, "endedAt": OPENED, "inVain": True, "node": node}
        for node in nodes
    ]


async def open_breaker(harness: ControllerHarness, kind, name: str, message: str, *nodes: str) -> None:
    breaker = {"openedAt": OPENED, "message": message, "attempts": attempts(*nodes)}
    await harness.client.patch(kind, name, {"status": {"breaker": breaker}}, subresource="status")


def closed_at(harness: ControllerHarness, kind, name: str) -> str:
    found = next(each for each in harness.all(kind) if each["metadata"]["name"] == name)
    return found["metadata"].get("annotations", {}).get(names.BREAKER_CLOSED_AT, "")


async def close(harness: ControllerHarness, what: str) -> tuple[int, list[str], str]:
    async with harness.server.serve() as endpoint:
        code, out, err = await beside("close-breaker", what, "--kubeconfig", endpoint.kubeconfig)
    return code, out.splitlines(), err


@pytest.mark.parametrize("what", ["gpu-lost", "policy/gpu-lost"])
async def test_the_breaker_of_a_policy_is_closed_with_why_it_was_open_and_is_then_closed(what):
    async with controller_harness() as harness:
        await harness.policy()
        await open_breaker(harness, POLICY_KIND, "gpu-lost", VAIN, "gpu-1", "gpu-2")
        code, out, err = await close(harness, what)
        assert (code, err) == (0, "")
        assert out == [
            "closed the breaker on failures of policy/gpu-lost, which was open since 2026-11-02 10:00:00 UTC: " + VAIN,
            "  10:00:00 reboot on gpu-1: in vain (gpu-1-reboot)",
            "  10:00:00 reboot on gpu-2: in vain (gpu-2-reboot)",
            "attempts that ended before do not count any more; new ones start as budgets allow",
        ]
        first = closed_at(harness, POLICIES, "gpu-lost")
        assert first > OPENED
        await asyncio.sleep(1.1)
        assert (await close(harness, what))[1] == [
            "the breaker on failures of policy/gpu-lost is closed: nothing to do"
        ]
        assert closed_at(harness, POLICIES, "gpu-lost") == first


async def test_that_of_a_template_is_closed_in_every_policy_that_has_it():
    """One of the two has not opened yet, and would at once."""
    async with controller_harness() as harness:
        for policy, ladder in (("gpu-lost", "reboot"), ("nic-down", "reboot"), ("other", "reset-gpu")):
            await harness.policy(policy, ladder=[{"operation": ladder}])
        await open_breaker(harness, POLICY_KIND, "gpu-lost", OF_REBOOT, "gpu-1")
        code, out, _ = await close(harness, "template/reboot")
        assert code == 0
        assert out[0].endswith(OF_REBOOT)
        assert "  told: policies gpu-lost, nic-down" in out
        told = {name: bool(closed_at(harness, POLICIES, name)) for name in ("gpu-lost", "nic-down", "other")}
        assert told == {"gpu-lost": True, "nic-down": True, "other": False}


async def test_that_of_a_budget():
    async with controller_harness() as harness:
        await harness.make(BUDGETS, "racks", selector={}, maxUnavailable=1, breaker={"failures": {}})
        await open_breaker(harness, BUDGET_KIND, "racks", "4 of the last 4 attempts under budget racks were in vain")
        code, out, _ = await close(harness, "budget/racks")
        assert (code, out[0].partition(",")[0]) == (0, "closed the breaker on failures of budget/racks")
        assert closed_at(harness, BUDGETS, "racks") > OPENED


async def test_a_name_that_two_open_breakers_have_is_refused_and_one_that_nobody_has_is_answered_with_the_nearest():
    async with controller_harness() as harness:
        await harness.policy("racks")
        await harness.make(BUDGETS, "racks", selector={}, maxUnavailable=1, breaker={"failures": {}})
        await open_breaker(harness, POLICY_KIND, "racks", VAIN)
        await open_breaker(harness, BUDGET_KIND, "racks", VAIN)
        code, out, err = await close(harness, "racks")
        assert (code, out) == (2, [])
        assert "say which: policy/racks or budget/racks" in err
        code, _, err = await close(harness, "rack")
        assert (code, "did you mean policy/racks or budget/racks?" in err) == (1, True)
        assert closed_at(harness, POLICIES, "racks") == ""
