"""What an upgrade brings is only shown, and muted where many nodes show it, until a user lets the policy act on it."""

import asyncio
import shlex
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from remediator.clock import SYSTEM
from remediator.core.quiet_hold import command_in
from remediator.kube.wire import errors, times
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator_sim import manifests
from remediator_sim.scenarios.timescale import policy
from remediator_sim.tasks import TaskExitStack
from tests.cluster.e2e.stage import AT_ONCE, TEAM, Stage, registered
from tests.harness.kinds import CASES, EVENTS, POLICIES
from tests.harness.kinds import NODES as NODE_KIND
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]
NODE = "gpu-17"
NODES = [NODE]
OTHERS = ["bare-1", "bare-2"]  # registered, without a machine
POLICY = "kernel-fault"
HEARTBEAT = 1.0


class Detector:
    """What the kernel of each node shows, with a heartbeat every second; a node that was rebooted is healthy."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.names = stage, [NODE]
        self.since, self.healthy_since = times.stamp(SYSTEM.now()), ""

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            for name in list(self.names):
                body = {"status": {"conditions": list(self._said(name))}}
                patch = self.stage.client.patch(
                    NODE_KIND, name, body, subresource="status", content_type=STRATEGIC_PATCH
                )
                with suppress(errors.NotFound):
                    await patch
            await asyncio.sleep(HEARTBEAT)

    def _said(self, name: str) -> Iterator[dict[str, str]]:
        now = times.stamp(SYSTEM.now())
        booted = name == NODE and self.stage.machines[NODE].reboots()
        if booted:
            self.healthy_since = self.healthy_since or now
        healthy = ("False", "KernelSound", self.healthy_since)
        status, reason, since = healthy if booted else ("True", "KernelFault", self.since)
        beat = {"lastHeartbeatTime": now, "lastTransitionTime": since}
        yield {"type": "KernelFault", "status": status, "reason": reason, "message": "oops", **beat}
        if name in OTHERS:
            yield {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready", **beat}


async def test_what_is_new_disturbs_no_node_whoever_leads_until_the_command_of_the_hold_is_given(stage: Stage) -> None:
    await older_policy(stage)
    async with TaskExitStack() as ends:
        detector = Detector(stage)
        ends.run(detector.run())
        await stage.start_controller()
        block = await until(lambda: held(stage, "NewCriterion"), 60)
        assert block["message"].startswith("KernelFault is new in 0.1.0: policy kernel-fault acts on it from ")
        assert "held: NewCriterion" in " ".join((await stage.explain(NODE)).split())
        assert await state(stage) == "Quiet"

        await stage.replicas[-1].program.kill()
        for name in OTHERS:
            await stage.client.create(NODE_KIND, registered(name))
            ends.push_async_callback(forget, stage, name)
        detector.names += OTHERS
        await stage.start_controller()
        block = await until(lambda: held(stage, "CriterionMuted"), 60)
        assert await until(lambda: told(stage), 30) == ["too many of its nodes show KernelFault, which is new"]
        assert await state(stage) == "Muted"
        assert not (await stage.node(NODE))["spec"].get("unschedulable")
        assert stage.machines[NODE].reboots() == []

        detector.names = [NODE]
        for name in OTHERS:
            await forget(stage, name)
        await stage.kubectl(*shlex.split(command_in(block["message"]))[1:])
        case = await until(lambda: stage.over(NODE), 120)
        assert case["status"]["phase"] == "Recovered"
        assert await state(stage) == "Acts"
        assert len(stage.machines[NODE].reboots()) == 1


async def older_policy(stage: Stage) -> None:
    """The shipped policy as the controller of the new release left it a day after the upgrade.

    A server says itself when an object was made, so that none can be made that is older.
    """
    (shipped,) = manifests.documents((f"deploy/policies/{POLICY}.yaml",))
    document = policy(shipped, AT_ONCE)
    document["spec"]["nodeSelector"] = {"matchLabels": TEAM}
    await manifests.create(stage.client, document)
    since = SYSTEM.now() - timedelta(days=1)
    ends = {"since": times.stamp(since), "until": times.stamp(since + timedelta(days=7))}
    status = {"criteria": [{"criterion": "KernelFault", "state": "Quiet", **ends}]}
    async with stage.server.controller() as client:
        await client.patch(POLICIES, POLICY, {"status": status}, subresource="status")


async def forget(stage: Stage, node: str) -> None:
    """A node goes, and what is known of it."""
    with suppress(errors.NotFound):
        await stage.client.delete(NODE_KIND, node)
    for case in await stage.of_node(CASES, node):
        await stage._remove(CASES, case)


async def held(stage: Stage, reason: str) -> dict[str, Any] | None:
    """The hold of the node's case, where it is for this reason."""
    case = await stage.case(NODE, "Held")
    blocks = (case or {}).get("status", {}).get("blockedBy") or []
    return next((block for block in blocks if block["reason"] == reason), None)


async def state(stage: Stage) -> str:
    """What the policy does by the criterion."""
    (row,) = (await stage.client.get(POLICIES, POLICY))["status"]["criteria"]
    return str(row["state"])


async def told(stage: Stage) -> list[str]:
    """What Events on the policy say of the mute, up to their first colon."""
    events = [event for event in await stage.client.list_all(EVENTS) if event["reason"] == "CriterionMuted"]
    on_policy = [event for event in events if event["involvedObject"]["kind"] == "RemediationPolicy"]
    return [event["message"].partition(":")[0] for event in on_policy]
