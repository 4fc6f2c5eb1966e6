"""Nothing is declared late by caches alone: a watch may be silent, for up to 150 seconds, while a time runs out."""

import asyncio
import json
from datetime import timedelta

import pytest

from remediator.clock import SYSTEM
from remediator.controller.case_view import case_view
from remediator.core import names
from remediator.core.case_table import CaseStep, case_step
from remediator.core.operation_table import Move
from remediator.metrics import FAILURES
from tests.harness.controller import BEAT, REBOOTED, RUNS, Answer, until
from tests.harness.controller import SYSTEM as SYSTEM_NAMESPACE
from tests.harness.kinds import NAMESPACES, NODES, OPERATIONS, PODS, POLICIES
from tests.remediator.controller.test_stops import Replica

LATE = timedelta(minutes=3)


@pytest.fixture
async def fleet(harness):
    """A node whose drain may take 30 seconds and whose operation 20; every Pod runs until a test ends it."""
    await harness.template("reboot-20s", timeout="20s", success={"bootIDChanged": True, "nodeReady": True})
    await harness.template("remount", timeout="20s")
    for template in (names.DRAIN_TEMPLATE, "reboot-20s", "remount"):
        harness.answer(template, RUNS)
    await harness.node("gpu-1", "True")
    return harness


async def stale(harness, operation, stage):
    """A replica that has seen the case come to this stage, and sees nothing but its own writes any more."""
    await harness.policy(ladder=[{"operation": operation}], verify={"settle": "1s", "fresh": "1s", "timeout": "30s"})
    for _ in range(200):
        replica = await Replica.now(harness)
        if stage(replica):
            return replica
        await replica.turn()
        await asyncio.sleep(BEAT)
    raise AssertionError("the case never came there")


def running(template):
    return lambda replica: any(pod.template == template and pod.phase == "Running" for pod in replica.cache.pods)


async def late(replica):
    """Two passes over the operation, minutes after its time."""
    await passes(replica, LATE)


async def passes(replica, later=timedelta(0)):
    """Two passes over the operation."""
    (operation,) = replica.cache.operations
    for _ in range(2):
        await replica.operations.reconcile(operation.name, SYSTEM.now() + later)


def status(harness):
    return harness.all(OPERATIONS)[0]["status"]


async def test_an_operation_whose_pod_succeeded_while_its_watch_was_silent_has_succeeded(fleet):
    replica = await stale(fleet, "remount", running("remount"))
    await fleet.finish("remount", Answer(message="mounted"))
    await late(replica)
    assert (status(fleet)["phase"], status(fleet)["message"]) == ("Succeeded", "mounted")


async def test_a_drain_that_succeeded_while_its_watch_was_silent_is_done(fleet):
    replica = await stale(fleet, "reboot", running(names.DRAIN_TEMPLATE))
    await fleet.finish(names.DRAIN_TEMPLATE)
    await late(replica)
    assert "drainedAt" in status(fleet)
    assert status(fleet)["phase"] not in ("Failed", "Cancelled")


UNHEARD = {  # what a user does, and what the operation that drains says then
    "HeldByUser": lambda harness: harness.edit_case("gpu-1", hold=True),
    "OptedOut": lambda harness: harness.change(NODES, "gpu-1", metadata={"labels": {names.EXCLUDE: "yes"}}),
    "PolicyPaused": lambda harness: harness.change(POLICIES, "gpu-lost", spec={"mode": "Paused"}),
    "ClaimLost": lambda harness: harness.change(NODES, "gpu-1", spec={"taints": None}),
}


@pytest.mark.parametrize(("reason", "stop"), UNHEARD.items(), ids=UNHEARD)
async def test_a_drain_that_fails_when_a_user_has_just_stopped_it_is_no_attempt(fleet, reason, stop):
    fleet.answer(names.DRAIN_TEMPLATE, Answer(exit=1))
    replica = await stale(fleet, "reboot", lambda replica: replica.next() is Move.DRAIN_FAILED)
    await stop(fleet)
    await passes(replica)
    assert (status(fleet)["phase"], status(fleet)["reason"]) == ("Cancelled", reason)


async def test_a_drain_that_is_late_when_a_user_has_just_held_its_case_is_no_attempt(fleet):
    replica = await stale(fleet, "reboot", running(names.DRAIN_TEMPLATE))
    await UNHEARD["HeldByUser"](fleet)
    await late(replica)
    assert (status(fleet)["phase"], status(fleet)["reason"]) == ("Cancelled", "HeldByUser")


async def test_a_drain_that_fails_when_everything_was_just_paused_has_not_failed(fleet):
    fleet.answer(names.DRAIN_TEMPLATE, Answer(exit=1))
    replica = await stale(fleet, "reboot", lambda replica: replica.next() is Move.DRAIN_FAILED)
    await fleet.change(NAMESPACES, SYSTEM_NAMESPACE, metadata={"annotations": {names.PAUSED: ""}})
    await passes(replica)
    assert status(fleet)["phase"] == "Draining"


async def test_a_drain_pod_is_told_where_what_stops_it_is_looked_up(fleet):
    replica = await stale(fleet, "reboot", running(names.DRAIN_TEMPLATE))
    (case,) = replica.cache.cases
    (pod,) = (pod for pod in fleet.all(PODS) if pod["metadata"]["name"].startswith("gpu-1-drain"))
    env = {entry["name"]: entry.get("value") for entry in pod["spec"]["containers"][0]["env"]}
    named = json.loads(env["PARAMETERS"])
    assert (named["case"], named["policy"], named["namespace"]) == (case.name, "gpu-lost", SYSTEM_NAMESPACE)


async def test_a_node_that_came_back_while_the_watch_of_nodes_was_silent_has_been_rebooted(fleet):
    replica = await stale(fleet, "reboot-20s", running("reboot-20s"))
    await fleet.finish("reboot-20s", REBOOTED)
    await late(replica)
    assert (status(fleet)["phase"], status(fleet)["message"]) == ("Succeeded", "new bootID boot-2")


async def test_an_operation_that_is_late_on_the_server_as_well_times_out(fleet):
    replica = await stale(fleet, "remount", running("remount"))
    await late(replica)
    assert (status(fleet)["phase"], status(fleet)["reason"]) == ("Failed", "TimedOut")


async def test_an_operation_that_another_leader_has_ended_stays_as_it_was_ended(fleet):
    replica = await stale(fleet, "remount", running("remount"))
    await fleet.finish("remount")
    await late(await Replica.now(fleet))
    before = status(fleet)
    await late(replica)
    assert status(fleet) == before


async def test_evidence_that_came_while_the_watch_of_pods_was_silent_is_kept(fleet):
    fleet.answer(names.DIAGNOSTICS_TEMPLATE, RUNS)
    replica = await stale(fleet, "remount", running(names.DIAGNOSTICS_TEMPLATE))
    await fleet.finish(names.DIAGNOSTICS_TEMPLATE, Answer(message='{"kernel": "NVRM: Xid 79"}'))
    (case,) = replica.cache.cases
    await replica.cases.reconcile(case.name, SYSTEM.now() + timedelta(days=1))
    assert fleet.cases("gpu-1")[0]["status"]["evidence"] == {"kernel": "NVRM: Xid 79"}


async def test_a_node_that_proved_its_health_while_the_watch_of_nodes_was_silent_is_not_handed_to_a_user(fleet):
    fleet.answer("remount", Answer(exit=0))
    replica = await stale(fleet, "remount", lambda replica: replica.next() is CaseStep.VERIFY)
    (case,) = replica.cache.cases
    await fleet.condition("gpu-1", "False")
    heartbeats = fleet.look("gpu-1")["status"]["conditions"]
    await until(lambda: fleet.look("gpu-1")["status"]["conditions"] != heartbeats)
    later = SYSTEM.now() + LATE
    assert case_step(case_view(replica.cache, case, later).observation) is CaseStep.ESCALATE
    await replica.cases.reconcile(case.name, later)
    assert fleet.phase("gpu-1") == "Verifying"
    await fleet.condition("gpu-1", "True")
    await (await Replica.now(fleet)).cases.reconcile(case.name, later)
    assert fleet.phase("gpu-1") == "Escalated"


def looked_at(replica):
    return any(pod.template == names.DIAGNOSTICS_TEMPLATE and pod.ended for pod in replica.cache.pods)


async def test_no_attempt_begins_for_a_fault_that_went_while_the_watch_was_silent(fleet):
    replica = await stale(fleet, "reboot", looked_at)
    (case,) = replica.cache.cases
    await replica.cases.reconcile(case.name, SYSTEM.now())
    assert replica.next() is CaseStep.START
    await fleet.condition("gpu-1", "False")
    await replica.turn()
    assert "attempts" not in fleet.cases("gpu-1")[0]["status"]


async def test_an_attempt_whose_node_cannot_be_read_begins_two_seconds_later_and_is_no_unforeseen_failure(fleet):
    replica = await stale(fleet, "reboot", looked_at)
    (case,) = replica.cache.cases
    await replica.cases.reconcile(case.name, SYSTEM.now())
    before = FAILURES.labels("admission")._value.get()
    fleet.server.faults.refuse(500, times=1, when=lambda asked: asked.method == "GET" and "/nodes/gpu-1" in asked.path)
    assert await replica.admissions.run(SYSTEM.now()) == 2.0
    assert "attempts" not in fleet.cases("gpu-1")[0]["status"]
    assert FAILURES.labels("admission")._value.get() == before
    await replica.admissions.run(SYSTEM.now())
    assert len(fleet.cases("gpu-1")[0]["status"]["attempts"]) == 1


async def test_no_drain_begins_for_a_fault_that_went_while_the_watch_was_silent(fleet):
    replica = await stale(fleet, "reboot", lambda replica: list(replica.cache.operations))
    await fleet.condition("gpu-1", "False")
    await passes(replica)
    assert (status(fleet)["phase"], fleet.pods(names.DRAIN_TEMPLATE)) == ("Cancelled", [])
