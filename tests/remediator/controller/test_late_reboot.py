"""A reboot that comes after its attempt was given up: the node proves itself before anything more is done to it."""

import asyncio
from datetime import timedelta

import pytest

from remediator.clock import SYSTEM
from remediator.controller.case_view import case_view
from remediator.core.case_table import CaseStep, case_step
from remediator.core.operation_table import Move
from tests.harness.controller import BEAT, Answer
from tests.harness.kinds import OPERATIONS
from tests.remediator.controller.test_stops import Replica


@pytest.fixture
async def fleet(harness):
    """A node whose first reboot fails, as far as its program can tell."""
    harness.answer("reboot", Answer(exit=1, message="still here"))
    await harness.policy(verify={"settle": "1s", "fresh": "1s", "timeout": "5m"})
    await harness.node("gpu-1", "True")
    return harness


async def reach(harness, step, attempts):
    """A replica that is about to take this step when the case has made so many attempts."""
    for _ in range(400):
        replica = await Replica.now(harness)
        made = harness.cases("gpu-1")[0].get("status", {}).get("attempts", []) if harness.cases("gpu-1") else []
        if replica.next() is step and len(made) == attempts:
            return replica
        await replica.turn()
        await asyncio.sleep(BEAT)
    raise AssertionError(f"{step} never came")


async def turns(harness, replica, until):
    for _ in range(400):
        await replica.turn()
        await asyncio.sleep(BEAT)
        if until():
            return
        replica = await Replica.now(harness)
    raise AssertionError("it never came there")


def outcomes(harness):
    attempts = harness.cases("gpu-1")[0]["status"]["attempts"]
    return [(attempt.get("outcome", ""), attempt.get("reason", "")) for attempt in attempts]


async def failed(harness):
    """A replica that has recorded that the first attempt failed, and does nothing more."""
    replica = await reach(harness, CaseStep.RECORD, attempts=1)
    (case,) = replica.cache.cases
    await replica.cases.reconcile(case.name, SYSTEM.now())
    assert outcomes(harness) == [("Failed", "ProgramFailed")]
    assert replica.next() is CaseStep.START
    return replica


async def test_after_a_late_reboot_no_other_attempt_begins_and_the_node_recovers_on_what_it_shows_then(fleet):
    await failed(fleet)
    await fleet.boot("gpu-1")
    replica = await Replica.now(fleet)
    assert replica.next() is CaseStep.VERIFY
    await fleet.condition("gpu-1", "False")
    await turns(fleet, replica, lambda: fleet.ended("gpu-1", "Recovered"))
    assert (fleet.ran.count("reboot gpu-1"), outcomes(fleet)) == (1, [("Failed", "ProgramFailed")])


async def test_after_a_late_reboot_that_cured_nothing_the_next_attempt_begins_when_the_time_for_proof_is_over(fleet):
    replica = await failed(fleet)
    await fleet.boot("gpu-1")
    replica = await Replica.now(fleet)
    (case,) = replica.cache.cases
    for minutes, step in ((4, CaseStep.VERIFY), (6, CaseStep.START)):
        later = SYSTEM.now() + timedelta(minutes=minutes)
        assert case_step(case_view(replica.cache, case, later).observation) is step, minutes


@pytest.mark.parametrize("move", [Move.DRAIN, Move.WRITE_INTENT])
async def test_a_late_reboot_that_no_watch_has_told_of_ends_the_next_attempt_before_its_intent(fleet, move):
    replica = await reach(fleet, move, attempts=2)
    await fleet.boot("gpu-1")
    for _ in range(3):
        await replica.turn()
    assert not any(one.get("status", {}).get("intent") for one in fleet.all(OPERATIONS)[1:])
    await turns(fleet, await Replica.now(fleet), lambda: outcomes(fleet)[1:] == [("Cancelled", "Rebooted")])
    replica = await Replica.now(fleet)
    assert replica.next() is CaseStep.VERIFY
    await fleet.condition("gpu-1", "False")
    await turns(fleet, replica, lambda: fleet.ended("gpu-1", "Recovered"))
    assert fleet.ran.count("reboot gpu-1") == 1


async def test_a_late_reboot_after_the_next_intent_is_what_that_attempt_asks_for_and_its_pod_is_not_made(fleet):
    await reach(fleet, Move.CREATE_POD, attempts=2)
    await fleet.boot("gpu-1")
    await turns(fleet, await Replica.now(fleet), lambda: outcomes(fleet)[1:] == [("Succeeded", "Done")])
    assert fleet.ran.count("reboot gpu-1") == 1
