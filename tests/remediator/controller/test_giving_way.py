"""A case that has done nothing and only waits gives its node to a more severe one that may act."""

from datetime import timedelta

import pytest

from remediator.core.case import Block, Phase
from remediator.core.giving_way import gives_way
from remediator.core.reasons import Reason
from tests.builders import a_case, at
from tests.harness.controller import now, running, until
from tests.harness.kinds import CASES, PODS, POLICIES, TEMPLATES
from tests.remediator.controller.test_confirmations import CONFIRM, NO, Script

pytestmark = pytest.mark.sampled("giving way")

SHUT = [{"cron": "0 0 29 2 *", "duration": "1m"}]
ONCE = [{"operation": "reboot", "attempts": 1}]


def of_policy(harness, policy):
    return [case for case in harness.all(CASES) if case["spec"]["policyName"] == policy]


def said(case, field):
    return case.get("status", {}).get(field)


async def two_policies(harness):
    """One for a disk, which waits for an idle node, and one for a lost GPU, which is Critical."""
    await harness.policy("gpu-lost", severity="Critical", ladder=ONCE)
    when = [{"condition": "DiskBad", "for": "0s"}]
    await harness.policy("disk", when=when, severity="Info", ladder=ONCE, urgency={"mode": "WhenIdle"})


async def test_a_critical_fault_takes_the_node_of_a_case_that_waits_for_pods_which_is_opened_again_later(harness):
    await two_policies(harness)
    await harness.change(TEMPLATES, "reboot", spec={"drain": {"strategy": "None"}})
    await harness.node("gpu-1")
    pod = {"metadata": {"name": "train"}, "spec": {"nodeName": "gpu-1", "containers": [{"name": "c", "image": "i"}]}}
    await harness.client.create(PODS, pod, namespace="default")
    async with running(harness):
        await harness.condition("gpu-1", "True", "DiskBad", since=now() - timedelta(minutes=1))
        await until(lambda: harness.reasons("gpu-1") == ["WaitingForIdle"])
        await harness.condition("gpu-1", "True", since=now() - timedelta(minutes=1))
        await until(lambda: [said(case, "phase") for case in of_policy(harness, "gpu-lost")] == ["Recovered"])
        (first, *_) = of_policy(harness, "disk")
        assert (said(first, "phase"), said(first, "reason")) == ("Cancelled", "GaveWay")
        assert not said(first, "attempts")
        await until(lambda: [said(case, "phase") for case in of_policy(harness, "disk")] == ["Cancelled", "Draining"])
    assert harness.ran.count("reboot gpu-1") == 1


async def test_one_whose_window_is_shut_and_that_has_no_node_does_not_hide_a_critical_fault(harness):
    await two_policies(harness)
    await harness.change(POLICIES, "disk", spec={"urgency": None, "windows": SHUT})
    await harness.node("gpu-1")
    async with running(harness):
        await harness.condition("gpu-1", "True", "DiskBad", since=now() - timedelta(minutes=1))
        await until(lambda: harness.reasons("gpu-1") == ["OutsideWindow"])
        await harness.condition("gpu-1", "True", since=now() - timedelta(minutes=1))
        await until(lambda: [said(case, "phase") for case in of_policy(harness, "gpu-lost")] == ["Recovered"])
    assert [said(case, "phase") for case in of_policy(harness, "disk")] == ["Held"]


def held_by(case):
    return [block["reason"] for block in said(case, "blockedBy") or ()]


async def works(harness):
    """A Pod with a GPU works on gpu-1."""
    wanted = {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    pod = {"metadata": {"name": "train"}, "spec": {"nodeName": "gpu-1", "containers": [wanted]}}
    await harness.client.create(PODS, pod, namespace="default")
    runs = {"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}
    await harness.client.patch(PODS, "train", runs, namespace="default", subresource="status")


@pytest.mark.parametrize(
    ("asks", "held"),
    [({"confirm": CONFIRM}, "NotConfirmed"), ({"maxBlastRadius": {"jobs": 0}}, "BlastRadius")],
    ids=["Prometheus says no", "too many jobs"],
)
async def test_it_keeps_the_node_while_anything_else_holds_the_more_severe_one(harness, asks, held):
    await two_policies(harness)
    await harness.change(POLICIES, "gpu-lost", spec=asks)
    await harness.change(TEMPLATES, "reboot", spec={"drain": {"strategy": "None"}})
    await harness.node("gpu-1")
    await works(harness)
    async with running(harness, source=Script(NO)):
        await harness.condition("gpu-1", "True", "DiskBad", since=now() - timedelta(minutes=1))
        await until(lambda: harness.reasons("gpu-1") == ["WaitingForIdle"])
        await harness.condition("gpu-1", "True", since=now() - timedelta(minutes=1))
        await until(
            lambda: (
                [[each["reason"] for each in said(case, "blockedBy") or ()] for case in of_policy(harness, "gpu-lost")]
                == [[held]]
            )
        )
        assert [said(case, "phase") for case in of_policy(harness, "disk")] == ["Draining"]
        assert harness.look("gpu-1")["spec"]["unschedulable"]


@pytest.mark.parametrize(("approved", "gives"), [(False, True), (True, False)])
def test_one_that_a_person_has_approved_keeps_its_node(approved, gives):
    case = a_case(phase=Phase.DRAINING, started=at(0), approved=approved)
    assert gives_way(case, [Block(Reason.WAITING_FOR_IDLE, "1 Pod works on gpu-1")]) is gives
