"""What a policy makes starts wait for, with the whole controller: windows, approvals, nodes without work."""

import asyncio
import re
from datetime import datetime, timedelta

import pytest

from remediator.clock import SYSTEM
from remediator.controller import idle
from remediator.controller.explain import explain, look_at, snapshot
from remediator.core import names
from remediator.core.breaker import Breaker
from tests.harness.controller import REBOOTED, RUNS, Answer, now, running, until
from tests.harness.kinds import CASES, PODS, POLICIES

pytestmark = pytest.mark.sampled("gates")

ALICE = "alice@example.com"
REQUIRED = {"approval": "Required"}
EACH_MINUTE = {"cron": "* * * * *", "duration": "2m"}


def closed():
    """A window that does not open within the next hour, nor has been open within the last one."""
    later = now() + timedelta(hours=2)
    return {"cron": f"{later.minute} {later.hour} * * *", "duration": "1h", "timeZone": "UTC"}


def patient(deadline):
    return {"urgency": {"mode": "WhenIdle", "deadline": deadline}}


async def train(harness, name="train", **metadata):
    """A Pod of a user on gpu-1."""
    spec = {"nodeName": "gpu-1", "containers": [{"name": "main", "image": "train"}]}
    await harness.client.create(PODS, {"metadata": {"name": name} | metadata, "spec": spec}, namespace="default")


async def explained(harness):
    cache = await snapshot(harness.client, harness.namespaces, SYSTEM)
    await look_at(cache, harness.client, "gpu-1", SYSTEM.now())
    return [line.strip() for line in explain(cache, cache.nodes.get("gpu-1"), Breaker(), SYSTEM.now())]


def blocked(harness):
    return harness.cases("gpu-1")[-1]["status"]["blockedBy"]


async def test_outside_of_its_windows_a_policy_claims_nothing_and_says_until_when(harness):
    window = closed()
    await harness.policy(windows=[window])
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["OutsideWindow"])
        await harness.quiet()
        (block,) = blocked(harness)
        minute, hour, *_ = window["cron"].split()
        assert block["until"][11:] == f"{int(hour):02}:{int(minute):02}:00Z"
        assert (harness.ran, harness.claims()) == ([], [])
        assert harness.taints("gpu-1") == [names.DEGRADED_TAINT], "it is repaired soon: new work had better not come"
        shown = next(line for line in await explained(harness) if line.startswith("held: OutsideWindow: "))
        since, ends = (f"{block[time][:10]} {block[time][11:19]} UTC" for time in ("since", "until"))
        assert re.search(rf"\(for \d+ s, since {since}; until {ends}\)$", shown)
        await harness.change(POLICIES, "gpu-lost", spec={"windows": [closed(), EACH_MINUTE]})
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_outside_of_its_windows_a_node_that_gets_well_needs_no_case(harness):
    await harness.policy(windows=[closed()])
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["OutsideWindow"])
        await harness.condition("gpu-1", "False")
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_when_the_window_closes_what_runs_goes_on_and_the_next_rung_waits(harness):
    await harness.policy(windows=[EACH_MINUTE])
    harness.answer("reboot", RUNS)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.pods("reboot"))
        await harness.change(POLICIES, "gpu-lost", spec={"windows": [closed()]})
        await harness.quiet()
        assert harness.phase("gpu-1") == "Operating"
        await harness.finish("reboot", Answer(exit=1, message="it did not come up"))
        await until(lambda: harness.reasons("gpu-1") == ["OutsideWindow"])
        attempts = harness.cases("gpu-1")[0]["status"]["attempts"]
        assert [one["outcome"] for one in attempts] == ["Failed"]
        assert harness.claims() == ["gpu-1"], "the case keeps its node"
        harness.answer("reboot", REBOOTED)
        await harness.change(POLICIES, "gpu-lost", spec={"windows": [EACH_MINUTE]})
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_an_attempt_that_has_not_begun_when_the_window_closes_is_none(harness):
    await harness.policy(windows=[EACH_MINUTE], attempts={"max": 1})
    await harness.node("gpu-1", "True")
    async with running(harness, drains=0):
        await until(lambda: harness.cases("gpu-1") and harness.cases("gpu-1")[0].get("status", {}).get("attempts"))
        await harness.change(POLICIES, "gpu-lost", spec={"windows": [closed()]})
        await until(lambda: harness.reasons("gpu-1") == ["OutsideWindow"])
    (attempt,) = harness.cases("gpu-1")[0]["status"]["attempts"]
    assert (attempt["outcome"], attempt["reason"]) == ("Cancelled", "OutsideWindow")
    await harness.change(POLICIES, "gpu-lost", spec={"windows": None})
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"), 60)


async def test_a_policy_whose_windows_nobody_can_tell_is_not_ready_and_starts_nothing(harness):
    await harness.policy(windows=[EACH_MINUTE, EACH_MINUTE | {"timeZone": "Asia/Tokio"}])
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["WindowInvalid"])
        await harness.quiet()
        (policy,) = harness.all(POLICIES)
        (ready,) = policy["status"]["conditions"]
        assert (ready["status"], ready["reason"]) == ("False", "WindowInvalid")
        assert ready["message"].startswith("spec.windows[1].timeZone: 'Asia/Tokio' is unknown")
        assert harness.ran == []
        await harness.change(POLICIES, "gpu-lost", spec={"windows": [EACH_MINUTE]})
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_a_case_claims_nothing_until_a_person_approves_it_and_the_next_one_is_asked_about_anew(harness):
    await harness.policy(**REQUIRED)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["ApprovalNeeded"])
        await harness.quiet()
        assert (harness.ran, harness.claims()) == ([], [])
        await harness.edit_case("gpu-1", approved=True, approvedBy=ALICE)
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        claimed = next(one for one in harness.cases("gpu-1")[0]["status"]["timeline"] if one["reason"] == "Claimed")
        assert claimed["message"].endswith(f"; approved by {ALICE}")
        await asyncio.sleep(1.1)  # another onset: conditions know whole seconds
        await harness.condition("gpu-1", "True")
        await until(lambda: len(harness.cases("gpu-1")) == 2 and harness.reasons("gpu-1") == ["ApprovalNeeded"])
        assert harness.ran.count("reboot gpu-1") == 1


async def test_a_case_that_holds_its_node_waits_for_the_pods_on_it_and_lets_no_new_ones_come(harness):
    await harness.policy(**patient("1h"))
    await harness.node("gpu-1", "True")
    await train(harness)
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["WaitingForIdle"])
        (block,) = blocked(harness)
        assert block["message"].startswith("1 Pod works on gpu-1 (default/train); wait for the Pods to end")
        assert harness.look("gpu-1")["spec"]["unschedulable"] is True
        assert harness.ran == ["collect-diagnostics gpu-1"], "evidence is there before anything waits"
        assert any(line.startswith("held: WaitingForIdle: 1 Pod works on gpu-1") for line in await explained(harness))
        (claim,) = (one for one in harness.all(CASES)[0]["status"]["timeline"] if one["reason"] == "Claimed")
        assert block["until"][11:] == _an_hour_after(claim["at"])


def _an_hour_after(stamp):
    return (datetime.fromisoformat(stamp) + timedelta(hours=1)).strftime("%H:%M:%SZ")


@pytest.fixture
def often(monkeypatch):
    """Nodes are looked at again at once."""
    monkeypatch.setattr(idle, "EVERY", timedelta(milliseconds=50))
    monkeypatch.setattr("remediator.controller.waits.LOOK_AGAIN", 0.1)


async def test_once_the_last_pod_has_ended_the_attempt_begins(harness, often):
    await harness.policy(**patient("None"))
    await harness.node("gpu-1", "True")
    daemon = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "a", "controller": True}
    await train(harness)
    await train(harness, "agent", ownerReferences=[daemon])
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["WaitingForIdle"])
        assert "until" not in blocked(harness)[0]
        ended = {"status": {"phase": "Succeeded"}}
        await harness.client.patch(PODS, "train", ended, namespace="default", subresource="status")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert harness.ran == ["collect-diagnostics gpu-1", "drain gpu-1", "reboot gpu-1"]


async def test_after_the_deadline_pods_are_waited_for_no_more(harness):
    await harness.policy(**patient("1s"))
    await harness.node("gpu-1", "True")
    await train(harness)
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)


async def test_a_node_that_gets_well_while_it_waits_is_given_back_untouched(harness):
    await harness.policy(**patient("1h"))
    await harness.node("gpu-1", "True")
    await train(harness)
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["WaitingForIdle"])
        await harness.condition("gpu-1", "False")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert harness.ran == ["collect-diagnostics gpu-1"]


async def test_a_node_that_looks_well_waits_for_no_pod_nor_for_a_probe_that_would_find_them(harness):
    """Its time for proof was over before the fault went; the next heartbeats prove its health."""
    verify = {"settle": "2s", "fresh": "1s", "timeout": "1s", "probe": "gpu-check"}
    await harness.template("gpu-check")
    await harness.policy(verify=verify, **patient("1h"))
    await harness.node("gpu-1", "True")
    await train(harness)
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["WaitingForIdle"])
        await harness.condition("gpu-1", "False")
        await until(lambda: (harness.phase("gpu-1"), harness.reasons("gpu-1")) == ("Verifying", []))
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert harness.ran == ["collect-diagnostics gpu-1"]
    assert harness.cases("gpu-1")[0]["status"]["message"] == "healthy on fresh evidence; the node is back"


async def test_health_that_is_unknown_for_long_escalates_no_case_that_waits(harness):
    """The time for proof is over long before the deadline: what waits has not failed."""
    await harness.policy(verify={"settle": "1s", "fresh": "1s", "timeout": "1s"}, **patient("1h"))
    await harness.node("gpu-1", "True")
    await train(harness)
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["WaitingForIdle"])
        await harness.condition("gpu-1", "Unknown")
        await asyncio.sleep(1.5)
        await harness.quiet()
        assert (harness.phase("gpu-1"), harness.reasons("gpu-1")) == ("Draining", ["WaitingForIdle"])
        await harness.condition("gpu-1", "False")
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_a_list_that_is_refused_starts_nothing(harness, often):
    await harness.policy(**patient("1h"))
    await harness.node("gpu-1", "True")
    selected = ("fieldSelector", "spec.nodeName=gpu-1")
    harness.server.faults.refuse(
        500, times=10, when=lambda asked: asked.path == "/api/v1/pods" and selected in asked.query
    )
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["WaitingForIdle"])
        assert blocked(harness)[0]["message"].startswith("the Pods of gpu-1 are about to be listed")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
