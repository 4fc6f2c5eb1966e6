"""RebootLoop: boots that nobody asked for are kept in the NodeInventory and counted, and a person has the node."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest

from remediator.core.reboot_loop import REBOOT_LOOP, WINDOW
from tests.contract.conditions import ROOT
from tests.harness import yaml_files
from tests.harness.controller import (
    DONE,
    Answer,
    ControllerHarness,
    Object,
    controller_harness,
    now,
    reboot_in_vain,
    running,
    stamp,
    until,
)
from tests.harness.kinds import BUDGETS, CASES, INVENTORIES, NODES, POLICIES

pytestmark = pytest.mark.sampled("boots")


@pytest.fixture
async def harness() -> AsyncIterator[ControllerHarness]:
    async with controller_harness() as harness:
        yield harness


def kept(harness: ControllerHarness) -> Object:
    """What is kept of the boots of gpu-1."""
    inventories = [each for each in harness.all(INVENTORIES) if each["metadata"]["name"] == "gpu-1"]
    found: Object = inventories[0].get("status", {}).get("boots", {}) if inventories else {}
    return found


def times(harness: ControllerHarness) -> list[str]:
    """When gpu-1 has booted though nobody had asked for it."""
    found: list[str] = kept(harness).get("unasked", [])
    return found


def said(harness: ControllerHarness) -> Object:
    conditions = harness.look("gpu-1")["status"]["conditions"]
    return next((each for each in conditions if each["type"] == REBOOT_LOOP), {})


async def crash(harness: ControllerHarness) -> None:
    """A boot that nobody asked for, as far as it is kept."""
    before = len(times(harness))
    await harness.boot("gpu-1")
    await until(lambda: len(times(harness)) == before + 1)


async def seen(harness: ControllerHarness) -> None:
    """Who leads has made the budget that is there by default, and waits."""
    await until(lambda: harness.all(BUDGETS))
    await harness.quiet()


async def test_the_fourth_boot_that_nobody_asked_for_raises_it_and_each_has_its_time(
    harness: ControllerHarness,
) -> None:
    await harness.node("gpu-1")
    async with running(harness):
        await seen(harness)
        for _ in range(3):
            await crash(harness)
        await harness.quiet()
        assert said(harness) == {}, "of a node that has booted three times nothing is written"
        await crash(harness)
        await until(lambda: said(harness).get("status") == "True")
    assert said(harness)["reason"] == "BootsRepeat"
    assert said(harness)["message"].startswith("4 boots that nobody asked for within 2 hours: ")
    assert kept(harness)["nodeUID"] == harness.look("gpu-1")["metadata"]["uid"]


async def test_a_leader_that_goes_takes_no_boot_with_it_and_boots_while_nobody_leads_are_one(
    harness: ControllerHarness,
) -> None:
    await harness.node("gpu-1")
    async with running(harness):
        await seen(harness)
        await crash(harness)
        await crash(harness)
    for _ in range(2):
        await harness.boot("gpu-1")
    async with running(harness, "two"):
        await until(lambda: len(times(harness)) == 3)
        await harness.quiet()
        assert said(harness) == {}
        await crash(harness)
        await until(lambda: said(harness).get("status") == "True")


async def test_it_ends_by_itself_when_the_window_is_quiet(harness: ControllerHarness) -> None:
    await harness.node("gpu-1")
    async with running(harness):
        await seen(harness)
        for _ in range(4):
            await crash(harness)
        await until(lambda: said(harness).get("status") == "True")
    old = {"unasked": [stamp(now() - WINDOW)]}
    await harness.client.patch(INVENTORIES, "gpu-1", {"status": {"boots": old}}, subresource="status")
    async with running(harness, "two"):
        await until(lambda: said(harness)["status"] == "False")
    assert (said(harness)["reason"], said(harness)["message"]) == (
        "NoRebootLoop",
        "no boot that nobody asked for within 2 hours",
    )


async def test_the_reboots_of_a_case_count_never(harness: ControllerHarness) -> None:
    """Two reboots in vain of one case; then a crash, which counts."""
    harness.answer("reboot", Answer(exit=137, does=reboot_in_vain))
    await harness.node("gpu-1", gpu="True")
    await harness.policy(verify={"settle": "1s", "fresh": "1s", "timeout": "2s"})
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        await seen(harness)
        assert harness.ran.count("reboot gpu-1") == 2
        assert times(harness) == []
        await harness.edit_case("gpu-1", release=True)
        await until(lambda: harness.cases("gpu-1")[0]["status"].get("endedAt"))
    old = stamp(now() - timedelta(hours=2))  # when its last operation has ended
    attempts = [each | {"finishedAt": old} for each in harness.cases("gpu-1")[0]["status"]["attempts"]]
    case = harness.cases("gpu-1")[0]["metadata"]["name"]
    await harness.client.patch(CASES, case, {"status": {"attempts": attempts}}, subresource="status")
    async with running(harness, "two"):
        await seen(harness)
        await crash(harness)


async def test_the_boots_of_a_node_that_a_user_has_cordoned_count_never(harness: ControllerHarness) -> None:
    await harness.node("gpu-1")
    await harness.change(NODES, "gpu-1", spec={"unschedulable": True})
    async with running(harness):
        await seen(harness)
        for _ in range(4):
            await harness.boot("gpu-1")
            await seen(harness)
        await harness.quiet()
    assert (times(harness), said(harness)) == ([], {})


async def test_of_a_node_whose_name_the_inventory_of_a_group_has_nothing_is_kept_and_nothing_said(
    harness: ControllerHarness,
) -> None:
    await harness.make(INVENTORIES, "gpu-1", nodeSelector={"matchLabels": {"a": "b"}}, expected={"gpus": 8})
    await harness.node("gpu-1")
    async with running(harness):
        for _ in range(5):
            await harness.boot("gpu-1")
            await harness.quiet()
    assert (kept(harness), said(harness)) == ({}, {})


async def test_the_shipped_policy_keeps_new_work_off_and_calls_a_person_with_the_times_and_reboots_nothing(
    harness: ControllerHarness,
) -> None:
    spec = yaml_files.read(ROOT / "deploy/policies/reboot-loop.yaml")["spec"]
    await harness.make(POLICIES, "reboot-loop", **spec | {"mode": "Enforce", "cooldown": "0s"})
    await harness.template("cordon", runOn="Elsewhere")
    harness.answer("cordon", replace(DONE))
    await harness.node("gpu-1")
    async with running(harness):
        await seen(harness)
        for _ in range(4):
            await crash(harness)
        await until(lambda: "cordon gpu-1" in harness.ran)
        await until(lambda: harness.look("gpu-1")["spec"].get("unschedulable"))
    assert harness.ran == ["collect-diagnostics gpu-1", "cordon gpu-1"]
    (case,) = harness.cases("gpu-1")
    assert case["spec"]["trigger"]["message"] == said(harness)["message"]
