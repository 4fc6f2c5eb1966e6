"""A node that needs a repair which is not urgent empties by itself: work goes elsewhere, then it is repaired."""

import asyncio
import json
from datetime import timedelta

from remediator.clock import SYSTEM
from remediator.controller import idle
from remediator.core import names
from remediator.scheduler.extender import Extender
from tests.harness.controller import ControllerHarness, running, until
from tests.harness.kinds import NODES, PODS
from tests.harness.replica import state_of
from tests.harness.scheduler import GPU, names_body, pod

FLEET = ["gpu-1", "gpu-2"]
PATIENT = {"mode": "WhenIdle", "deadline": "24h"}


async def room(harness: ControllerHarness, *nodes: str) -> None:
    """Eight GPUs on each."""
    for name in nodes:
        await harness.node(name)
        status = {"capacity": {GPU: "8"}, "allocatable": {GPU: "8"}}
        await harness.client.patch(NODES, name, {"status": status}, subresource="status")


class Scheduler:
    """Places Pods one after the other as kube-scheduler does, by the extender and by cordons, and ends them."""

    def __init__(self, harness: ControllerHarness, extender: Extender) -> None:
        self.harness, self.extender = harness, extender
        self.places: dict[str, str] = {}  # of Pods that run

    async def place(self, name: str, gpus: int = 1) -> str:
        """The node that a Pod came to."""
        cordoned = [each for each in FLEET if self.harness.look(each).get("spec", {}).get("unschedulable")]
        open_nodes = [each for each in FLEET if each not in cordoned]
        left = json.loads(self.extender.filter(names_body(open_nodes, pod(name, gpus))))["NodeNames"]
        answer = json.loads(self.extender.prioritize(names_body(left, pod(name, gpus))))
        node = max(answer, key=lambda entry: entry["Score"])["Host"]
        await self.bind(name, node, gpus)
        return node

    async def bind(self, name: str, node: str, gpus: int = 1) -> None:
        """A Pod that runs on a node."""
        await self.harness.client.create(PODS, pod(name, gpus, node), namespace="default")
        await self.status(name, "Running")
        self.places[name] = node
        await until(lambda: self.used(node) == self.expected(node))

    async def end(self, name: str) -> None:
        """Its work is done."""
        await self.status(name, "Succeeded")
        node = self.places.pop(name)
        await until(lambda: self.used(node) == self.expected(node))

    async def status(self, name: str, phase: str) -> None:
        body = {"status": {"phase": phase}}
        await self.harness.client.patch(PODS, name, body, namespace="default", subresource="status")

    def used(self, node: str) -> int:
        return dict(state_of(self.extender, node).used).get(GPU, 0)

    def expected(self, node: str) -> int:
        return sum(place == node for place in self.places.values())


def ends_of_user_pods(harness: ControllerHarness) -> list[str]:
    """All requests that would end a Pod of a user: evictions and deletions."""
    ours = f"/namespaces/{names.OPERATIONS_NAMESPACE}/"
    writes = [entry for entry in harness.server.audit if "/pods/" in entry.path and ours not in entry.path]
    return [entry.path for entry in writes if entry.verb == "delete" or entry.path.endswith("/eviction")]


async def test_a_node_that_waits_for_idle_empties_as_new_work_goes_elsewhere_and_is_repaired(
    harness: ControllerHarness, monkeypatch
) -> None:
    """gpu-1 has three Pods and the next would go there too. It falls ill; three more come, its own end one by one."""
    monkeypatch.setattr(idle, "EVERY", timedelta(milliseconds=50))
    monkeypatch.setattr("remediator.controller.waits.LOOK_AGAIN", 0.1)
    await harness.policy(urgency=PATIENT)
    await room(harness, *FLEET)
    made: list[Extender] = []
    async with running(harness, beside=lambda informers, _: made.append(Extender(harness.client, informers, SYSTEM))):
        work = asyncio.ensure_future(made[0].run())
        await until(made[0].ready)
        scheduler = Scheduler(harness, made[0])
        for name in ("a", "b"):
            await scheduler.bind(name, "gpu-1")
        assert await scheduler.place("c") == "gpu-1", "packing prefers the fuller node"
        await harness.condition("gpu-1", "True")
        await until(lambda: harness.reasons("gpu-1") == ["WaitingForIdle"])
        for name in ("d", "e", "f"):
            assert await scheduler.place(name) == "gpu-2"
            await scheduler.end("abc"["def".index(name)])
            assert name == "f" or "reboot gpu-1" not in harness.ran, "a Pod still works there"
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        work.cancel()
    assert [ran for ran in harness.ran if ran.startswith("reboot")] == ["reboot gpu-1"]
    assert sorted(scheduler.places) == ["d", "e", "f"]
    assert ends_of_user_pods(harness) == []
    await harness.client.delete(PODS, "d", namespace="default")
    assert len(ends_of_user_pods(harness)) == 1, "who ends a Pod is seen"


async def test_a_node_that_waits_for_its_budget_is_used_last_so_that_it_empties_too(harness: ControllerHarness) -> None:
    """The budget lets no node be unavailable: nothing is claimed, and Pods go to the other node while it has room."""
    await harness.policy(urgency=PATIENT)
    await harness.budget("all", 0)
    await room(harness, *FLEET)
    made: list[Extender] = []
    async with running(harness, beside=lambda informers, _: made.append(Extender(harness.client, informers, SYSTEM))):
        work = asyncio.ensure_future(made[0].run())
        await until(made[0].ready)
        scheduler = Scheduler(harness, made[0])
        await scheduler.bind("a", "gpu-1", 1)
        await harness.condition("gpu-1", "True")
        await until(lambda: state_of(made[0], "gpu-1").health.value == "WaitingForRepair")
        assert [await scheduler.place(f"p{index}") for index in range(9)] == ["gpu-2"] * 8 + ["gpu-1"]
        work.cancel()
    assert harness.ran == []
    assert ends_of_user_pods(harness) == []
