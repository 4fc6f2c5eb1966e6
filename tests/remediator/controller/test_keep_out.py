"""Nodes that users take out of service: drained, counted, kept until they are put back, told when overdue."""

from datetime import timedelta

import pytest

from remediator.core import names
from tests.harness.controller import DONE, RUNS, Answer, ControllerHarness, now, running, stamp, until
from tests.harness.kinds import EVENTS, NODES, OPERATIONS, Object
from tests.remediator.controller.test_asked_by_users import ALICE, ask, asked, ended

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def terms(length: timedelta, reason: str = "OPS-17 new PSU") -> Object:
    return {"until": stamp(now() + length), "reason": reason}


async def take_out(harness: ControllerHarness, length: timedelta = DAY, **spec) -> None:
    """What `remediator take-out gpu-1` makes, in the name of alice."""
    await ask(harness, template="drain", keepOut=terms(length), **spec)


def why(harness: ControllerHarness, node: str = "gpu-1") -> str:
    cases = harness.cases(node)
    return cases[0].get("status", {}).get("reason", "") if cases else ""


def out(harness: ControllerHarness) -> bool:
    return why(harness) == "TakenOut" and bool(ended(harness))


async def test_a_node_that_is_taken_out_is_drained_once_and_kept_and_counted_until_it_is_put_back(harness) -> None:
    await harness.node("gpu-1")
    await harness.budget("all", 1)
    async with running(harness):
        await take_out(harness)
        await until(lambda: out(harness))
        await harness.quiet()
        assert harness.ran == ["collect-diagnostics gpu-1", "drain gpu-1"]
        assert (harness.phase("gpu-1"), harness.taints("gpu-1")) == ("Escalated", [names.CASE_TAINT])
        assert harness.look("gpu-1")["spec"]["unschedulable"] is True
        assert len(harness.claims()) == 1, "its budget counts it"
        assert (ended(harness), asked(harness)["reason"]) == ("Succeeded", "Done")
        (case,) = harness.cases("gpu-1")
        text = f"gpu-1 is taken out by {ALICE} until {case['spec']['keepOut']['until'].replace('T', ' ')[:19]} UTC: "
        assert case["status"]["message"] == f"{text}OPS-17 new PSU; give it back with: remediator put-back gpu-1"
        assert asked(harness)["message"].endswith(case["status"]["message"])
        await harness.edit_case("gpu-1", release=True, releaseSetBy=ALICE)
        await until(lambda: harness.clean("gpu-1") and harness.ended("gpu-1", "Escalated"))
    assert why(harness) == "ReleasedByUser"
    assert harness.claims() == []


async def test_a_fault_on_a_node_that_is_out_is_repaired_once_it_is_put_back_and_not_before(harness) -> None:
    await harness.node("gpu-1")
    await harness.policy()
    async with running(harness):
        await take_out(harness)
        await until(lambda: out(harness))
        await harness.condition("gpu-1", "True")
        await harness.quiet()
        assert (len(harness.cases("gpu-1")), "reboot gpu-1" in harness.ran) == (1, False)
        await harness.edit_case("gpu-1", release=True)
        await until(lambda: "reboot gpu-1" in harness.ran)


async def test_when_its_time_is_over_everybody_is_told_once_and_it_stays_out(harness) -> None:
    await harness.node("gpu-1")
    async with running(harness):
        await take_out(harness)
        await until(lambda: out(harness))
        await harness.edit_case("gpu-1", keepOut=terms(timedelta(seconds=1)))
        await until(lambda: why(harness) == "TakeOutOverdue")
        await harness.quiet()
        assert (harness.phase("gpu-1"), harness.taints("gpu-1")) == ("Escalated", [names.CASE_TAINT])
        assert harness.story("gpu-1").count("TakeOutOverdue") == 1
        events = [event for event in harness.all(EVENTS) if event["reason"] == "TakeOutOverdue"]
        assert [(event["type"], event["involvedObject"]["name"]) for event in events] == [("Warning", "gpu-1")]
        assert "that time is over: give it back (remediator put-back gpu-1) or more time" in events[0]["message"]
        await harness.edit_case("gpu-1", keepOut=terms(HOUR, "another week"))
        await until(lambda: why(harness) == "TakenOut")
        assert "another week" in harness.cases("gpu-1")[0]["status"]["message"]


async def test_a_drain_that_fails_takes_no_node_out_and_its_user_reads_why(harness) -> None:
    await harness.node("gpu-1")
    harness.answer("drain", Answer(exit=1, message="Pods left: 1 (team/web-0 (web))"))
    async with running(harness):
        await take_out(harness)
        await until(lambda: ended(harness) and harness.clean("gpu-1"))
    assert (ended(harness), harness.phase("gpu-1")) == ("Failed", "Recovered")
    assert "Pods left: 1" in asked(harness)["message"]
    assert "node gpu-1 is given back" in asked(harness)["message"]


async def test_one_that_could_not_begin_in_its_time_disturbs_nobody_any_more(harness) -> None:
    await harness.node("gpu-1")
    await harness.budget("none", 0)
    async with running(harness):
        await take_out(harness)
        await until(lambda: harness.reasons("gpu-1") == ["BudgetSpent"])
        await harness.edit_case("gpu-1", keepOut=terms(timedelta(seconds=1)))
        await until(lambda: harness.ended("gpu-1", "Cancelled") and ended(harness))
    assert (ended(harness), asked(harness)["reason"]) == ("Cancelled", "TakeOutOverdue")
    assert "could not be taken by then; nothing was done" in asked(harness)["message"]
    assert harness.ran == []


async def test_who_takes_a_take_out_back_while_pods_leave_gets_the_node_back_once_the_drain_is_over(
    harness,
) -> None:
    await harness.node("gpu-1")
    harness.answer("drain", RUNS)
    async with running(harness):
        await take_out(harness)
        await until(lambda: harness.pods("drain", "Running"))
        await harness.delete_case("gpu-1")
        await harness.quiet()
        await harness.finish("drain")
        await until(lambda: harness.clean("gpu-1") and ended(harness))
    assert (ended(harness), asked(harness)["reason"]) == ("Cancelled", "CaseDeleted")
    assert "gpu-1 was not kept out" in asked(harness)["message"]


async def test_a_node_that_a_user_uncordons_while_pods_leave_is_not_kept_out_and_who_asked_reads_why(harness) -> None:
    await harness.node("gpu-1")
    harness.answer("drain", RUNS)
    async with running(harness):
        await take_out(harness)
        await until(lambda: harness.pods("drain", "Running"))
        await harness.change(NODES, "gpu-1", spec={"unschedulable": None})
        await harness.finish("drain")
        await until(lambda: harness.clean("gpu-1") and ended(harness))
    assert (ended(harness), asked(harness)["reason"]) == ("Cancelled", "UncordonedByUser")
    assert "a user has uncordoned the node, so that it is not kept out" in asked(harness)["message"]


async def test_a_node_that_is_out_and_deleted_ends_its_case(harness) -> None:
    await harness.node("gpu-1")
    async with running(harness):
        await take_out(harness)
        await until(lambda: out(harness))
        await harness.client.delete(NODES, "gpu-1")
        await until(lambda: why(harness) == "NodeGone")


async def test_a_try_again_of_a_node_that_is_out_disturbs_nothing(harness) -> None:
    await harness.node("gpu-1")
    async with running(harness):
        await take_out(harness)
        await until(lambda: out(harness))
        await harness.edit_case("gpu-1", retry=1)
        await harness.quiet()
        assert (harness.ran.count("drain gpu-1"), why(harness)) == (1, "TakenOut")


async def test_whoever_deletes_their_operation_once_the_node_is_out_keeps_the_node(harness) -> None:
    await harness.node("gpu-1")
    async with running(harness):
        await take_out(harness)
        await until(lambda: out(harness))
        await harness.client.delete(OPERATIONS, "by-hand")
        await harness.quiet()
        assert (harness.taints("gpu-1"), why(harness)) == ([names.CASE_TAINT], "TakenOut")


@pytest.mark.parametrize("writes_each", [4, 7, 12])
async def test_a_controller_that_dies_after_any_write_drains_once_and_keeps_the_node(harness, writes_each: int) -> None:
    await harness.node("gpu-1")
    harness.answer("drain", DONE)
    await take_out(harness)
    for number in range(40):
        if out(harness):
            break
        writes = len(harness.server.audit)
        async with running(harness, f"replica-{number}"):
            await until(lambda writes=writes: out(harness) or len(harness.server.audit) > writes + writes_each)
    async with running(harness, "last"):
        await until(lambda: out(harness))
        await harness.quiet()
        assert (harness.taints("gpu-1"), len(harness.cases("gpu-1"))) == ([names.CASE_TAINT], 1)
    assert harness.ran.count("drain gpu-1") == 1
