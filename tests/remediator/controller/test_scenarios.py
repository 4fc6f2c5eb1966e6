"""The whole controller, from a condition that turns True to a node that is given back or handed to a person."""

import asyncio
import json
from datetime import datetime, timedelta

import pytest

from remediator.controller import operation_view
from remediator.core import names
from tests.harness.controller import (
    DONE,
    REBOOTED,
    RUNS,
    SYSTEM,
    Answer,
    cure,
    environment,
    now,
    reboot,
    reboot_in_vain,
    running,
    until,
)
from tests.harness.kinds import BUDGETS, CASES, NAMESPACES, NODES, POLICIES, TEMPLATES
from tests.harness.kinds import OPERATIONS as NODE_OPERATIONS

pytestmark = pytest.mark.sampled("scenarios")


def _makes_an_operation(asked):
    return asked.method == "POST" and asked.path.endswith("/nodeoperations")


async def _refuse_pods(harness, node):
    harness.server.faults.refuse(
        500, times=999, when=lambda asked: asked.method == "POST" and asked.path.endswith("/pods")
    )


FAILED = Answer(exit=1, message="the kernel did not come up")
REFUSED = Answer(exit=2, message="another bootID")


async def test_a_sick_node_is_claimed_looked_at_drained_rebooted_verified_and_given_back(harness):
    await harness.policy()
    await harness.node("gpu-1", "True")
    await harness.node("gpu-2")
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    case = harness.cases("gpu-1")[0]["status"]
    assert harness.ran == ["collect-diagnostics gpu-1", "drain gpu-1", "reboot gpu-1"]
    assert case["evidence"] == {"kernel": "NVRM: Xid 79"}
    assert [(one["outcome"], one["rung"], one["intent"]["bootID"]) for one in case["attempts"]] == [
        ("Succeeded", 1, "boot-1")
    ]
    assert harness.story("gpu-1") == [
        "Claimed",
        "Diagnosed",
        "OperationStarted",
        "Operating",
        "OperationSucceeded",
        "Verified",
    ]
    assert (
        harness.look("gpu-1")["metadata"]["annotations"][names.HANDLED] == harness.cases("gpu-1")[0]["metadata"]["name"]
    )
    assert harness.cases("gpu-2") == []


async def test_a_node_with_hundreds_of_conditions_and_names_longer_than_any_field_is_given_back(harness):
    """Neither Kubernetes nor anybody else bounds the type of a Condition."""
    await harness.policy()
    await harness.node("gpu-1", "True")
    for number in range(100):
        await harness.condition("gpu-1", "Unknown", f"{number:03}{'x' * 400}")
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_while_it_works_the_node_carries_the_taint_and_a_ledger_the_claim(harness):
    await harness.policy()
    harness.answer("reboot", RUNS)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Operating" and harness.pods("reboot"))
        uid = harness.cases("gpu-1")[0]["metadata"]["uid"]
        taint = {"key": names.CASE_TAINT, "value": uid, "effect": "PreferNoSchedule"}
        assert taint in harness.look("gpu-1")["spec"]["taints"]
        assert harness.look("gpu-1")["spec"]["unschedulable"] is True
        claims = [claim for one in harness.all(BUDGETS) for claim in one["status"]["claims"]]
        assert [(claim["node"], claim["case"]) for claim in claims] == [("gpu-1", uid)]
        pod = harness.pods("reboot")[0]
        assert pod["spec"]["nodeName"] == "gpu-1"
        assert pod["metadata"]["finalizers"] == [names.POD_FINALIZER]
        env = environment(pod)
        operation = harness.all(NODE_OPERATIONS)[0]
        assert env["ATTEMPT_ID"] == operation["metadata"]["name"]
        assert env["EXPECTED_BOOT_ID"] == operation["status"]["intent"]["bootID"] == "boot-1"
        assert json.loads(env["PARAMETERS"]) == {"caseUID": uid}


async def test_failure_climbs_to_a_person_who_gives_the_node_back(harness):
    await harness.policy()
    harness.answer("reboot", FAILED)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated" and not harness.pods())
        assert [one["outcome"] for one in harness.cases("gpu-1")[0]["status"]["attempts"]] == ["Failed", "Failed"]
        assert harness.cases("gpu-1")[0]["status"]["reason"] == "LadderExhausted"
        assert "the kernel did not come up" in harness.cases("gpu-1")[0]["status"]["message"]
        await harness.quiet()
        assert (harness.taints("gpu-1"), harness.claims()) == ([names.CASE_TAINT], ["gpu-1"]), "it stays out of service"
        await harness.edit_case("gpu-1", release=True)
        await until(lambda: harness.ended("gpu-1", "Escalated"))
        assert harness.story("gpu-1")[-1] == "ReleasedByUser"
        await harness.quiet()
        assert len(harness.cases("gpu-1")) == 1, "and the same fault is not opened again"


async def test_a_second_reboot_may_cure_what_the_first_did_not(harness):
    await harness.policy(verify={"settle": "1s", "fresh": "1s", "timeout": "1s"})
    harness.answer("reboot", Answer(exit=137, does=reboot_in_vain), REBOOTED)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert [one["outcome"] for one in harness.cases("gpu-1")[0]["status"]["attempts"]] == ["Succeeded", "Succeeded"]
    assert harness.ran.count("reboot gpu-1") == 2


async def test_what_refuses_is_not_tried_again_on_its_rung(harness):
    await harness.template("power-cycle", success={"bootIDChanged": True})
    await harness.policy(ladder=[{"operation": "reboot", "attempts": 3}, {"operation": "power-cycle"}])
    harness.answer("reboot", REFUSED)
    harness.answer("power-cycle", REBOOTED)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert [one["outcome"] for one in harness.cases("gpu-1")[0]["status"]["attempts"]] == ["Refused", "Succeeded"]
    assert [ran for ran in harness.ran if "drain" not in ran] == [
        "collect-diagnostics gpu-1",
        "reboot gpu-1",
        "power-cycle gpu-1",
    ]


async def test_what_a_template_names_after_it_is_done_once_it_worked_though_the_fault_is_gone_by_then(harness):
    await harness.template("restart-device-plugin", runOn="Elsewhere")
    await harness.template("reset-gpu", after=["restart-device-plugin"])
    await harness.policy(ladder=[{"operation": "reset-gpu"}, {"operation": "reboot"}], attempts={"max": 1})
    harness.answer("reset-gpu", Answer(message="reset", does=cure))
    harness.answer("restart-device-plugin", Answer(message="restarted"))
    await harness.node("gpu-1", "True")
    await harness.node("gpu-2")
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    first, second = harness.cases("gpu-1")[0]["status"]["attempts"]
    assert [(one["template"], one["outcome"], one["rung"]) for one in (first, second)] == [
        ("reset-gpu", "Succeeded", 1),
        ("restart-device-plugin", "Succeeded", 1),
    ]
    assert (first.get("follows"), second["follows"]) == (None, first["operation"])
    assert [ran.split()[0] for ran in harness.ran] == ["collect-diagnostics", "reset-gpu", "restart-device-plugin"]


async def test_a_rung_tells_its_operation_what_it_is_for_and_the_next_rung_tells_another(harness):
    await harness.template("restart-service")
    rungs = [{"operation": "restart-service", "parameters": {"service": name}} for name in ("containerd", "kubelet")]
    await harness.policy(ladder=rungs)
    harness.answer("restart-service", FAILED, Answer(message="kubelet is active", does=cure))
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    made = sorted(harness.all(NODE_OPERATIONS), key=lambda one: one["spec"]["attempt"])
    assert [one["spec"]["parameters"] for one in made] == [{"service": "containerd"}, {"service": "kubelet"}]


async def test_after_an_operation_that_failed_nothing_follows(harness):
    await harness.template("restart-device-plugin")
    await harness.template("reset-gpu", after=["restart-device-plugin"])
    await harness.policy(ladder=[{"operation": "reset-gpu"}, {"operation": "reboot"}])
    harness.answer("reset-gpu", FAILED)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert [one["template"] for one in harness.cases("gpu-1")[0]["status"]["attempts"]] == ["reset-gpu", "reboot"]


async def test_where_a_follow_up_fails_the_next_rung_is_tried(harness):
    await harness.template("restart-device-plugin")
    await harness.template("reset-gpu", after=["restart-device-plugin"])
    await harness.policy(ladder=[{"operation": "reset-gpu"}, {"operation": "reboot"}])
    harness.answer("reset-gpu", Answer(message="reset"))
    harness.answer("restart-device-plugin", FAILED)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    attempts = harness.cases("gpu-1")[0]["status"]["attempts"]
    assert [one["template"] for one in attempts] == ["reset-gpu", "restart-device-plugin", "reboot"]


NOTHING = "nothing to do: no DaemonSet is a device plugin"


async def test_a_follow_up_with_nothing_to_do_leads_to_the_next_one_then_recovery_is_waited_for(harness):
    for name in ("restart-device-plugin", "gpu-check"):
        await harness.template(name)
    await harness.template("reset-gpu", after=["restart-device-plugin", "gpu-check"])
    await harness.policy(ladder=[{"operation": "reset-gpu"}, {"operation": "reboot"}])
    harness.answer("reset-gpu", Answer(message="reset"))
    harness.answer("restart-device-plugin", Answer(2, NOTHING))
    harness.answer("gpu-check", Answer(message="every GPU computes"))
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: len(harness.ran) == 4 and harness.phase("gpu-1") == "Verifying")
        await harness.quiet()
        done = ["reset-gpu gpu-1", "restart-device-plugin gpu-1", "gpu-check gpu-1"]
        assert harness.ran[1:] == done, "the fault stands, and no reboot begins"
        await harness.condition("gpu-1", "False")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    attempt, check = harness.cases("gpu-1")[0]["status"]["attempts"][1:]
    assert (attempt["outcome"], attempt["message"]) == ("Refused", NOTHING)
    assert check["outcome"] == "Succeeded"


async def test_a_follow_up_that_refuses_for_any_other_reason_leads_to_the_next_rung(harness):
    await harness.template("restart-device-plugin")
    await harness.template("reset-gpu", after=["restart-device-plugin"])
    await harness.policy(ladder=[{"operation": "reset-gpu"}, {"operation": "reboot"}])
    harness.answer("reset-gpu", Answer(message="reset"))
    harness.answer("restart-device-plugin", Answer(2, "refused: several DaemonSets are a device plugin of this node"))
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "reboot gpu-1" in harness.ran)


async def test_a_template_that_names_an_unknown_one_after_it_is_held_and_both_say_so(harness):
    await harness.template("reset-gpu", after=["restart-nothing"])
    await harness.policy(ladder=[{"operation": "reset-gpu"}])
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1"))
        await until(lambda: harness.all(POLICIES)[0].get("status", {}).get("conditions"))
    assert [one["reason"] for one in harness.cases("gpu-1")[0]["status"]["blockedBy"]] == ["UnknownOperation"]
    assert "restart-nothing" in harness.all(POLICIES)[0]["status"]["conditions"][0]["message"]
    assert harness.ran == []


async def test_a_drain_that_fails_reboots_nothing_and_says_who_was_in_the_way(harness):
    await harness.policy(ladder=[{"operation": "reboot"}])
    harness.answer("drain", Answer(exit=1, message="blocked by train/job-0 (pdb train)"))
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated" and not harness.pods())
    assert "blocked by train/job-0" in harness.cases("gpu-1")[0]["status"]["attempts"][0]["message"]
    assert harness.all(NODE_OPERATIONS)[0]["status"]["reason"] == "DrainFailed"
    assert "reboot gpu-1" not in harness.ran


async def test_pods_that_come_while_a_drain_ends_are_drained_again(harness):
    await harness.policy()
    pod = {"metadata": {"name": "late"}, "spec": {"nodeName": "gpu-1", "containers": [{"name": "c", "image": "i"}]}}
    path = "/api/v1/namespaces/default/pods"

    async def come(harness, node):
        await harness.client.send("POST", path, dict, pod)

    async def go(harness, node):
        await harness.client.transport.request("DELETE", f"{path}/late", body=b'{"gracePeriodSeconds": 0}')

    harness.answer("drain", Answer(does=come), Answer(does=go))
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered") if len(harness.ran) > 3 else False)
    assert harness.ran == ["collect-diagnostics gpu-1", "drain gpu-1", "drain gpu-1", "reboot gpu-1"]


async def test_a_fault_that_goes_before_anything_was_done_ends_the_case(harness):
    await harness.policy(mode="DryRun")
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["DryRun"])
        await harness.quiet()
        assert harness.taints("gpu-1") == [], "a dry run writes nothing on the node"
        assert names.HANDLED not in (harness.look("gpu-1")["metadata"].get("annotations") or {})
        await harness.condition("gpu-1", "False")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert harness.cases("gpu-1")[0]["status"]["reason"] == "ClearedItself"
    assert harness.ran == []


async def test_a_fault_that_goes_during_the_drain_stops_the_reboot(harness):
    await harness.policy()
    harness.answer("drain", RUNS)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)
        await harness.condition("gpu-1", "False")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert "reboot gpu-1" not in harness.ran
    assert [one["outcome"] for one in harness.cases("gpu-1")[0]["status"]["attempts"]] == ["Cancelled"]


async def test_verification_needs_heartbeats_that_are_newer_than_the_operation(harness):
    await harness.policy()
    await harness.node("gpu-1", "True")

    async def reboot_and_fall_silent(harness, node):
        harness.beating = False
        await harness.boot(node)
        await harness.condition(node, "False")

    harness.answer("reboot", Answer(exit=137, does=reboot_and_fall_silent))
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Verifying")
        await harness.quiet()
        assert harness.phase("gpu-1") == "Verifying", "False alone is not recovery"
        harness.beating = True
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_a_person_who_removes_the_taint_cancels_the_case_and_everything_of_ours_goes(harness):
    await harness.policy()
    harness.answer("drain", RUNS)
    await harness.node("gpu-1", "True")
    mine = {"key": "maintenance", "value": "alice", "effect": "NoSchedule"}
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)
        await harness.change(NODES, "gpu-1", spec={"taints": [mine]})
        await until(lambda: harness.ended("gpu-1", "Cancelled"))
        await harness.quiet()
    assert harness.cases("gpu-1")[-1]["status"]["reason"] == "TaintRemovedByUser"
    assert harness.look("gpu-1")["spec"]["taints"] == [mine], "what a person set stays"
    assert len(harness.cases("gpu-1")) == 1, "and the same onset is not opened again"
    assert "reboot gpu-1" not in harness.ran


async def test_a_person_who_deletes_the_case_cancels_it_and_it_is_not_opened_again(harness):
    await harness.policy()
    harness.answer("drain", RUNS)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)
        await harness.delete_case("gpu-1")
        await until(lambda: not harness.cases("gpu-1") and harness.clean("gpu-1"))
        await harness.quiet()
        assert harness.cases("gpu-1") == []
        await harness.condition("gpu-1", "False")
        await harness.condition("gpu-1", "True", since=now() - timedelta(hours=1))
        await until(lambda: harness.cases("gpu-1"))


async def test_a_case_deleted_while_it_waits_is_not_opened_again_either(harness):
    await harness.policy(mode="DryRun")
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1"))
        await harness.delete_case("gpu-1")
        await until(lambda: not harness.cases("gpu-1"))
        await harness.quiet()
    assert harness.cases("gpu-1") == []


async def test_after_the_intent_cancelling_waits_for_the_pod(harness):
    await harness.policy()
    harness.answer("reboot", RUNS)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "reboot gpu-1" in harness.ran)
        await harness.delete_case("gpu-1")
        await harness.quiet()
        assert harness.pods("reboot")[0]["status"]["phase"] == "Running", "it is not killed in the middle"
        assert harness.taints("gpu-1") == [names.CASE_TAINT], "and the node is not given back"
        await harness.finish("reboot", REBOOTED)
        await until(lambda: not harness.cases("gpu-1") and harness.clean("gpu-1"))


@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param(lambda harness: harness.delete_case("gpu-1"), id="the case is deleted"),
        pytest.param(
            lambda harness: harness.change(NODES, "gpu-1", spec={"taints": None}), id="a person takes the taint off"
        ),
        pytest.param(lambda harness: harness.condition("gpu-1", "False"), id="the fault goes"),
    ],
)
async def test_after_the_intent_no_pod_is_made_any_more_for_a_node_that_is_not_ours_or_is_well(harness, meanwhile):
    """The intent is written and the Pod refused; before it can be made, the reason for it goes."""
    drain, success = {"strategy": "Evict", "timeout": "30s"}, {"bootIDChanged": True, "nodeReady": True}
    await harness.template("brief", drain=drain, timeout="6s", success=success)
    await harness.policy(ladder=[{"operation": "brief", "attempts": 1}])
    harness.answer("drain", Answer(does=_refuse_pods))
    harness.answer("brief", REBOOTED)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: [one for one in harness.all(NODE_OPERATIONS) if one.get("status", {}).get("intent")])
        await meanwhile(harness)
        await harness.quiet()
        harness.server.faults.clear()
        await until(lambda: harness.clean("gpu-1"))
    assert harness.ran == ["collect-diagnostics gpu-1", "drain gpu-1"]


async def test_a_case_whose_operation_was_never_made_can_be_cancelled(harness):
    """The attempt is recorded before its operation is made: what lies between may be a crash."""
    await harness.policy()
    await harness.node("gpu-1", "True")
    harness.server.faults.refuse(500, times=999, when=_makes_an_operation)
    async with running(harness):
        await until(lambda: harness.cases("gpu-1") and harness.cases("gpu-1")[0].get("status", {}).get("attempts"))
        await harness.delete_case("gpu-1")
        harness.server.faults.clear()
        await until(lambda: not harness.cases("gpu-1") and harness.clean("gpu-1"))
    assert "reboot gpu-1" not in harness.ran


def _excluded(value):
    return NODES, "gpu-1", {"metadata": {"labels": {names.EXCLUDE: value}}}


def _paused(value):
    return NAMESPACES, SYSTEM, {"metadata": {"annotations": {names.PAUSED: value}}}


def _cordoned(value):
    return NODES, "gpu-1", {"spec": {"unschedulable": value}}


@pytest.mark.parametrize(
    ("reason", "stop", "value"),
    [("CordonedByUser", _cordoned, True), ("OptedOut", _excluded, "true"), ("Paused", _paused, "by alice")],
)
async def test_a_node_that_a_user_has_stopped_is_left_alone_until_that_is_undone(harness, reason, stop, value):
    await harness.policy()
    await harness.node("gpu-1", "True")
    kind, name, body = stop(value)
    await harness.change(kind, name, **body)
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == [reason])
        await harness.quiet()
        assert (harness.taints("gpu-1"), harness.ran) == ([], [])
        kind, name, body = stop(None)
        await harness.change(kind, name, **body)
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_an_uncordon_while_the_fault_stands_holds_the_case_until_the_fault_has_gone(harness):
    await harness.policy()
    harness.answer("drain", RUNS)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)
        await harness.change(NODES, "gpu-1", spec={"unschedulable": None})
        await until(lambda: harness.reasons("gpu-1") == ["UncordonedByUser"] and not harness.pods())
        notes = harness.look("gpu-1")["metadata"]["annotations"]
        assert (names.CORDONED_BY in notes, harness.taints("gpu-1")) == (False, [names.CASE_TAINT])
        await harness.quiet()
        assert [ran for ran in harness.ran if "reboot" in ran] == []
        await harness.condition("gpu-1", "False")
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_a_cordon_that_a_user_sets_after_having_taken_ours_off_is_theirs(harness):
    await harness.policy()
    harness.answer("drain", RUNS)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)
        await harness.change(NODES, "gpu-1", spec={"unschedulable": None})
        await until(lambda: names.CORDONED_BY not in harness.look("gpu-1")["metadata"]["annotations"])
        await harness.change(NODES, "gpu-1", spec={"unschedulable": True})
        await until(lambda: harness.reasons("gpu-1") == ["CordonedByUser"])
        await harness.condition("gpu-1", "False")
        await until(lambda: harness.phase("gpu-1") == "Recovered" and not harness.taints("gpu-1"))
        await harness.quiet()
    assert harness.look("gpu-1")["spec"]["unschedulable"] is True


async def test_a_user_who_gives_the_case_its_cordon_back_lets_it_go_on(harness):
    await harness.policy()
    harness.answer("drain", RUNS, Answer())
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)
        await harness.change(NODES, "gpu-1", spec={"unschedulable": None})
        await until(lambda: harness.reasons("gpu-1") == ["UncordonedByUser"])
        await harness.change(NODES, "gpu-1", spec={"unschedulable": True})
        uid = harness.cases("gpu-1")[0]["metadata"]["uid"]
        await harness.change(NODES, "gpu-1", metadata={"annotations": {names.CORDONED_BY: uid}})
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_a_rung_that_takes_a_node_out_for_a_person_outlives_the_case(harness):
    async def keep(harness, node):
        uid = harness.cases(node)[0]["metadata"]["uid"]
        notes = {names.CORDONED_BY: None, names.KEPT_CORDONED: uid}
        await harness.change(NODES, node, metadata={"annotations": notes})
        await harness.condition(node, "False")

    await harness.template("cordon", runOn="Elsewhere")
    await harness.policy(ladder=[{"operation": "cordon"}])
    harness.answer("cordon", Answer(message="stays cordoned", does=keep))
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Recovered" and not harness.taints("gpu-1"))
        await harness.quiet()
        assert harness.look("gpu-1")["spec"]["unschedulable"] is True
        await harness.condition("gpu-1", "True", since=now() + timedelta(seconds=2))  # another onset than the first
        await until(lambda: harness.reasons("gpu-1") == ["CordonedByUser"])


async def test_a_ladder_with_an_unknown_operation_starts_nothing_and_says_so(harness):
    await harness.policy(ladder=[{"operation": "reboot"}, {"operation": "power-cycle"}])
    await harness.node("gpu-1", "True")

    def ready():
        conditions = harness.all(POLICIES)[0].get("status", {}).get("conditions", ())
        return [(one["status"], one["reason"]) for one in conditions if one["type"] == "Ready"]

    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["UnknownOperation"])
        await until(lambda: ready() == [("False", "UnknownOperation")])
        assert harness.taints("gpu-1") == []
        await harness.template("power-cycle")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        assert ready() == [("True", "Ready")]


async def test_with_a_budget_of_one_the_second_node_waits_its_turn_and_is_marked(harness):
    await harness.policy()
    await harness.budget("all", 1)
    harness.answer("drain", RUNS)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)
        await harness.node("gpu-2", "True")
        await until(lambda: harness.reasons("gpu-2") == ["BudgetSpent"])
        await until(lambda: harness.taints("gpu-2") == [names.DEGRADED_TAINT])
        await harness.quiet()
        assert harness.claims() == ["gpu-1"]
        harness.answer("drain", Answer())
        await harness.finish("drain")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        await until(lambda: harness.ended("gpu-2", "Recovered"))


async def test_a_queued_node_whose_fault_goes_loses_its_mark(harness):
    await harness.policy()
    await harness.budget("all", 0)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.taints("gpu-1") == [names.DEGRADED_TAINT])
        await harness.condition("gpu-1", "False")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert harness.taints("gpu-1") == []


async def test_a_node_that_is_deleted_takes_its_case_with_it(harness):
    await harness.policy()
    harness.answer("drain", RUNS)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)
        await harness.client.delete(NODES, "gpu-1")
        await until(lambda: harness.phase("gpu-1") == "Cancelled" and not harness.claims() and not harness.pods())
        await until(lambda: not harness.cases("gpu-1")[0]["metadata"].get("finalizers"))
    assert harness.cases("gpu-1")[0]["status"]["reason"] == "NodeGone"


async def test_what_waits_for_a_start_recovers_while_everything_is_held(harness):
    """A hold stops starts, never recovery, however long it lasts."""
    await harness.policy(verify={"settle": "1s", "fresh": "1s", "timeout": "1s"})
    await harness.node("gpu-1", "True")
    held = Answer(exit=1, message="failed", does=lambda harness, node: harness.edit_case(node, hold=True))
    harness.answer("reboot", held)
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["HeldByUser"])
        ended = harness.cases("gpu-1")[0]["status"]["attempts"][0]["finishedAt"]
        await until(lambda: now() > datetime.fromisoformat(ended) + timedelta(seconds=1))
        await harness.condition("gpu-1", "False")
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_two_cases_of_one_node_never_work_on_it_together(harness):
    """One may be opened by hand."""
    await harness.policy()
    harness.answer("drain", RUNS)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)
        first = harness.cases("gpu-1")[0]["metadata"]["uid"]
        uid = harness.look("gpu-1")["metadata"]["uid"]
        await harness.make(CASES, "by-hand", nodeName="gpu-1", nodeUID=uid, policyName="gpu-lost")
        await until(
            lambda: any(one["metadata"]["name"] == "by-hand" and one.get("status") for one in harness.all(CASES))
        )
        await harness.quiet()
        assert [taint["value"] for taint in harness.look("gpu-1")["spec"]["taints"] if "value" in taint] == [first]
        by_hand = next(one for one in harness.all(CASES) if one["metadata"]["name"] == "by-hand")
        assert [one["reason"] for one in by_hand["status"]["blockedBy"]] == ["NodeBusy"]


async def test_a_case_that_a_person_made_is_worked_and_cannot_vanish_while_it_holds_the_node(harness):
    await harness.policy(when=[{"condition": "GpuLost", "for": "1h"}])
    harness.answer("drain", RUNS)
    await harness.node("gpu-1", "True")
    uid = harness.look("gpu-1")["metadata"]["uid"]
    async with running(harness):
        await harness.make(CASES, "by-hand", nodeName="gpu-1", nodeUID=uid, policyName="gpu-lost")
        await until(lambda: "drain gpu-1" in harness.ran)
        assert harness.cases("gpu-1")[0]["metadata"]["finalizers"] == [names.CASE_FINALIZER]
        await harness.delete_case("gpu-1")
        await until(lambda: not harness.cases("gpu-1") and harness.clean("gpu-1"))


async def test_a_template_that_is_gone_lets_nothing_be_done_without_a_drain(harness):
    await harness.policy()
    await harness.node("gpu-1", "True")
    template = next(one for one in harness.all(TEMPLATES) if one["metadata"]["name"] == "reboot")
    harness.server.faults.refuse(500, times=999, when=_makes_an_operation)
    async with running(harness):
        await until(lambda: harness.cases("gpu-1") and harness.cases("gpu-1")[0].get("status", {}).get("attempts"))
        await harness.client.delete(TEMPLATES, "reboot")
        harness.server.faults.clear()
        await until(lambda: harness.all(NODE_OPERATIONS))
        await harness.quiet()
        assert "intent" not in (harness.all(NODE_OPERATIONS)[0].get("status") or {})
        await harness.make(TEMPLATES, "reboot", **template["spec"])
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert harness.ran[1:] == ["drain gpu-1", "reboot gpu-1"]


async def test_another_leader_goes_on_where_one_was_killed(harness):
    await harness.policy()
    harness.answer("drain", RUNS)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)
    await harness.finish("drain")
    async with running(harness, "two"):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert harness.ran.count("reboot gpu-1") == 1


@pytest.mark.parametrize("status", ["Unknown", "False"])
async def test_without_clear_evidence_no_case_is_opened(harness, status):
    await harness.policy()
    await harness.node("gpu-1", status)
    async with running(harness):
        await until(lambda: harness.all(BUDGETS))
        await harness.quiet()
    assert (harness.cases("gpu-1"), harness.taints("gpu-1"), harness.ran) == ([], [], [])


async def test_unknown_evidence_stops_an_operation_before_its_intent(harness):
    await harness.policy()
    harness.answer("drain", RUNS)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)
        await harness.condition("gpu-1", "Unknown")
        await harness.finish("drain")
        await until(lambda: harness.all(NODE_OPERATIONS)[0]["status"].get("drainedAt"))
        await harness.quiet()
        assert "reboot gpu-1" not in harness.ran
        await harness.condition("gpu-1", "True")
        await until(lambda: harness.ended("gpu-1", "Recovered"))


@pytest.fixture
async def short(harness):
    """A reboot whose drain gets 2 seconds and whose Pod gets 20."""
    success = {"bootIDChanged": True, "nodeReady": True}
    await harness.template("reboot-2s", drain={"strategy": "Evict", "timeout": "2s"}, timeout="20s", success=success)
    await harness.policy(ladder=[{"operation": "reboot-2s"}], verify={"settle": "1s", "fresh": "1s", "timeout": "1s"})
    harness.answer("reboot-2s", REBOOTED)
    harness.answer(names.DRAIN_TEMPLATE, RUNS)
    await harness.node("gpu-1", "True")
    await harness.node("gpu-2")
    return harness


def _attempts(harness):
    found = harness.cases("gpu-1")[0]["status"]["attempts"]
    return [(one.get("outcome"), one.get("counts", True)) for one in found]


async def _pause(harness, value):
    await harness.change(NAMESPACES, SYSTEM, metadata={"annotations": {names.PAUSED: value}})


async def test_a_pause_that_is_longer_than_the_time_of_a_drain_fails_no_attempt(short):
    async with running(short):
        await until(lambda: short.pods(names.DRAIN_TEMPLATE))
        await _pause(short, "maintenance")
        await asyncio.sleep(3)
        short.answer(names.DRAIN_TEMPLATE, DONE)
        await _pause(short, None)
        await until(lambda: short.ended("gpu-1", "Recovered"))
    assert [outcome for outcome, _ in _attempts(short)] == ["Cancelled", "Succeeded"]


async def test_a_drain_that_ends_well_while_nobody_leads_is_no_failure(short):
    """Nobody leads for longer than the drain may take; the next leader finds it done."""
    async with running(short, "one"):
        await until(
            lambda: [one for one in short.pods(names.DRAIN_TEMPLATE) if one["status"].get("phase") == "Running"]
        )
    await short.finish(names.DRAIN_TEMPLATE)
    await asyncio.sleep(3)
    async with running(short, "two"):
        await until(lambda: short.ended("gpu-1", "Recovered"))
    assert _attempts(short) == [("Succeeded", True)]


async def test_a_drain_pod_that_was_killed_is_made_again_and_costs_no_attempt(short, monkeypatch):
    monkeypatch.setattr(operation_view, "LOST_PAUSE", timedelta(0))
    short.answer(names.DRAIN_TEMPLATE, Answer(exit=137, message="preempted"), DONE)
    async with running(short):
        await until(lambda: short.ended("gpu-1", "Recovered"))
    assert _attempts(short) == [("Succeeded", True)]
    assert short.ran.count("drain gpu-1") == 2


async def test_attempts_in_which_no_pod_could_be_placed_are_none_but_a_person_is_called_after_three(short):
    short.server.faults.refuse(
        500,
        times=9999,
        when=lambda asked: asked.method == "POST" and asked.path.endswith("/pods") and b"gpu-1-drain" in asked.body,
    )
    async with running(short):
        await until(lambda: short.phase("gpu-1") == "Escalated", 60)
    assert _attempts(short) == [("Cancelled", False)] * 3
    case = short.cases("gpu-1")[0]["status"]
    assert case["reason"] == "AttemptsSpent"
    assert "the drain never began" in case["message"]


async def close_breaker(harness, value):
    await harness.change(POLICIES, "gpu-lost", metadata={"annotations": {names.BREAKER_CLOSED_AT: value}})


def _held_by(harness, reason):
    return [node for node in (f"gpu-{number}" for number in range(6)) if harness.reasons(node) == [reason]]


async def test_four_reboots_in_vain_stop_all_others_until_a_user_says_so_whatever_restarts_or_is_deleted(harness):
    await harness.policy(ladder=[{"operation": "reboot"}])
    await harness.make(BUDGETS, "all", selector={}, maxUnavailable=1, maxQuarantined=100)
    harness.answer("reboot", FAILED)
    for number in range(6):
        await harness.node(f"gpu-{number}", "True")
    async with running(harness, "one"):
        await until(lambda: len(_held_by(harness, "PolicyFailing")) == 2)
        status = harness.all(POLICIES)[0]["status"]["breaker"]
        assert status["message"] == "4 of the last 4 attempts under policy gpu-lost were in vain"
        assert [attempt["inVain"] for attempt in status["attempts"]] == [True] * 4
    for case in harness.all(CASES):
        if case["status"]["phase"] == "Escalated":
            await harness.client.delete(CASES, case["metadata"]["name"])
    async with running(harness, "two"):
        await until(lambda: not [one for one in harness.all(CASES) if one["metadata"].get("deletionTimestamp")])
        await harness.quiet()
        assert len([ran for ran in harness.ran if ran.startswith("reboot")]) == 4
        assert len(_held_by(harness, "PolicyFailing")) == 2
        await close_breaker(harness, "now")
        await until(
            lambda: (
                "is no time"
                in harness.cases(_held_by(harness, "PolicyFailing")[0])[-1]["status"]["blockedBy"][0]["message"]
            )
        )
        await close_breaker(harness, (now() + timedelta(seconds=3)).strftime("%Y-%m-%dT%H:%M:%SZ"))
        await until(lambda: len([ran for ran in harness.ran if ran.startswith("reboot")]) == 6)


async def _reboots_and_falls_silent(harness, node):
    await reboot(harness, node)
    harness.beating = False


async def test_after_an_outage_a_node_that_was_being_verified_gets_the_time_for_a_new_heartbeat(harness):
    """Nobody leads for longer than the time for proof, and the newest heartbeats that are known are 16 minutes old."""
    harness.answer("reboot", Answer(exit=137, does=_reboots_and_falls_silent))
    await harness.policy(ladder=[{"operation": "reboot"}], verify={"settle": "1s", "fresh": "1s", "timeout": "2s"})
    await harness.node("gpu-1", "True")
    async with running(harness, "one"):
        await until(lambda: harness.phase("gpu-1") == "Verifying")
    harness.set_clock("gpu-1", -timedelta(minutes=16))
    for type in ("Ready", "GpuLost"):
        await harness.condition("gpu-1", "True" if type == "Ready" else "False", type)
    await asyncio.sleep(3)
    async with running(harness, "two"):
        await harness.quiet()
        assert harness.phase("gpu-1") == "Verifying"
        harness.set_clock("gpu-1", timedelta())
        harness.beating = True
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_broken_nodes_that_users_keep_out_do_not_stop_the_repair_of_one_that_breaks_weeks_later(harness):
    """Five boards wait for their vendor since three weeks, all gone within five minutes: the shipped correlation."""
    await harness.budget("all", 50)
    await harness.policy(correlation={"nodes": 5, "within": "10m", "by": ["reason"]})
    for number in range(5):
        await harness.node(f"rma-{number}", exclude="true")
        await harness.condition(f"rma-{number}", "True", since=now() - timedelta(days=21, minutes=number))
        await harness.change(NODES, f"rma-{number}", spec={"unschedulable": True})
    await harness.node("fresh", "True")
    async with running(harness):
        await until(lambda: harness.ended("fresh", "Recovered"))
    assert "SharedCause" not in harness.story("fresh")


async def test_five_nodes_that_break_together_are_held_for_what_they_have_in_common(harness):
    await harness.policy(correlation={"nodes": 5, "within": "10m", "by": ["reason"]})
    for number in range(5):
        await harness.node(f"gpu-{number}", "True")
    async with running(harness):
        await until(lambda: all(harness.reasons(f"gpu-{number}") == ["SharedCause"] for number in range(5)))
        await harness.quiet()
    assert harness.ran == []
    message = harness.cases("gpu-0")[-1]["status"]["blockedBy"][0]["message"]
    assert message.startswith("5 nodes show the same reason (gpu-0, gpu-1, gpu-2, gpu-3, gpu-4);")


async def test_a_node_rests_also_after_a_case_that_ended_before_its_first_attempt(harness):
    await harness.policy(cooldown="1h")
    harness.answer("collect-diagnostics", Answer(message='{"a": 1}', does=cure))
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        await harness.condition("gpu-1", "True", since=now() - timedelta(hours=1))
        await until(lambda: len(harness.cases("gpu-1")) == 2 and harness.reasons("gpu-1") == ["Cooldown"])
    assert (harness.ran, harness.taints("gpu-1")) == (["collect-diagnostics gpu-1"], [])


async def test_a_condition_that_flips_without_end_opens_six_cases(harness):
    await harness.policy(mode="DryRun")
    await harness.node("gpu-1")
    began = now() - timedelta(days=1)
    async with running(harness):
        for number in range(1, 9):
            await harness.condition("gpu-1", "True", since=began + timedelta(seconds=number))
            await until(lambda opened=number: len(harness.cases("gpu-1")) >= min(opened, 6))
            await harness.quiet()
            await harness.condition("gpu-1", "False", since=began + timedelta(seconds=number))
            await until(lambda: harness.phase("gpu-1") == "Recovered")
    assert len(harness.cases("gpu-1")) == 6
