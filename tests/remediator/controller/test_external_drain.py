"""A drain that another system does: it is asked by an annotation, and answers by a Condition of the node."""

from dataclasses import replace
from datetime import timedelta

import pytest

from remediator.controller import marks
from remediator.core import names
from remediator_sim.apiserver.store import Listener
from remediator_sim.plain import NODES
from tests.builders import a_sick_node, an_operation, at
from tests.harness.controller import now, running, until
from tests.harness.kinds import OPERATIONS as NODE_OPERATIONS
from tests.harness.kinds import PODS, TEMPLATES

pytestmark = pytest.mark.sampled("external drain")

DRAINED = "SlurmDrained"


def requested(harness, node="gpu-1"):
    """Since when the node says that another system is asked to drain it."""
    return (harness.look(node)["metadata"].get("annotations") or {}).get(names.DRAIN_REQUESTED, "")


async def hand_over(harness, timeout="5m"):
    drain = {"strategy": "External", "condition": DRAINED, "timeout": timeout}
    await harness.change(TEMPLATES, "reboot", spec={"drain": drain})
    await harness.policy(ladder=[{"operation": "reboot", "attempts": 1}])


async def test_another_system_is_asked_and_waited_for_and_no_pod_of_ours_drains(harness):
    await hand_over(harness)
    pod = {"metadata": {"name": "slurmd"}, "spec": {"nodeName": "gpu-1", "containers": [{"name": "c", "image": "i"}]}}
    await harness.client.create(PODS, pod, namespace="default")
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: requested(harness))
        assert harness.look("gpu-1")["spec"]["unschedulable"]
        await harness.quiet()
        assert harness.ran == ["collect-diagnostics gpu-1"]
        (operation,) = harness.all(NODE_OPERATIONS)
        assert operation["status"]["drainStartedAt"] == requested(harness)
        assert operation["status"]["message"] == "another system drains the node: waits for its condition SlurmDrained"
        assert "drainPod" not in operation["status"]
        await harness.condition("gpu-1", "True", DRAINED)
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert harness.ran == ["collect-diagnostics gpu-1", "reboot gpu-1"], "and the Pod of Slurm stays"
    assert requested(harness) == "", "the request ends with the case"


async def test_what_was_true_before_the_request_is_no_answer_and_the_time_runs_out(harness):
    await hand_over(harness, "2s")
    await harness.node("gpu-1", "True")
    harness.beating = False
    harness.set_clock("gpu-1", -timedelta(minutes=10))
    await harness.condition("gpu-1", "True", DRAINED, since=now() - timedelta(minutes=10))
    harness.set_clock("gpu-1", timedelta())
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
    (operation,) = harness.all(NODE_OPERATIONS)
    assert (operation["status"]["phase"], operation["status"]["reason"]) == ("Failed", "DrainTimeout")
    assert operation["status"]["message"].startswith("the condition SlurmDrained is True")
    assert "reboot gpu-1" not in harness.ran
    assert requested(harness) == "", "nobody waits for this drain any more"


async def test_a_fault_that_goes_while_it_waits_ends_the_case_and_the_request(harness):
    await hand_over(harness)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: requested(harness))
        await harness.condition("gpu-1", "False")
        await until(lambda: harness.ended("gpu-1", "Recovered") and not requested(harness))
    assert harness.ran == ["collect-diagnostics gpu-1"]


HOLDS = {"HeldByUser": {"hold": True}, "OptedOut": None}


@pytest.mark.parametrize("reason", HOLDS)
async def test_a_stop_in_the_middle_of_the_drain_takes_the_request_back_and_its_end_makes_another(harness, reason):
    await hand_over(harness)
    await harness.node("gpu-1", "True")
    exclude = {"metadata": {"labels": {names.EXCLUDE: "true"}}}
    async with running(harness):
        first = await until(lambda: requested(harness))
        await (
            harness.change(NODES, "gpu-1", **exclude)
            if HOLDS[reason] is None
            else harness.edit_case("gpu-1", hold=True)
        )
        await until(lambda: harness.reasons("gpu-1") == [reason])
        await until(lambda: not requested(harness))
        assert harness.taints("gpu-1") == [names.CASE_TAINT], "the case keeps its node"
        await until(lambda: now().strftime("%FT%TZ") > first)
        exclude["metadata"]["labels"][names.EXCLUDE] = None
        await (
            harness.change(NODES, "gpu-1", **exclude)
            if HOLDS[reason] is None
            else harness.edit_case("gpu-1", hold=False)
        )
        assert await until(lambda: requested(harness)) > first
        await harness.condition("gpu-1", "True", DRAINED)
        await until(lambda: harness.ended("gpu-1", "Recovered"))


def test_only_the_request_of_this_operation_on_this_node_is_taken_back():
    operation = an_operation(drain_started=at(5))
    asked = a_sick_node(drain_requested=at(5))
    take_back = marks.take_drain_back(operation)
    assert take_back(asked) is not None
    assert take_back(replace(asked, drain_requested=at(6))) is None, "somebody asks for another one"
    assert take_back(replace(asked, uid="another")) is None


async def test_a_request_that_somebody_takes_away_is_made_again(harness):
    await hand_over(harness)
    await harness.node("gpu-1", "True")
    async with running(harness):
        first = await until(lambda: requested(harness))
        await harness.change(NODES, "gpu-1", metadata={"annotations": {names.DRAIN_REQUESTED: None}})
        assert await until(lambda: requested(harness)) == first


class Slinky:
    """Plays slurm-operator on one node, and the small program that copies what it says of its Pod to the node.

    A node that is cordoned is drained in Slurm, for the reason that its annotation gives at that moment.
    """

    def __init__(self, harness, node):
        self.harness, self.node, self.reason = harness, node, ""
        harness.server.cluster.store.collection("nodes").listen(Listener(None, self._hear, lambda: None))

    def _hear(self, change):
        node = change.entry.obj
        if node["metadata"]["name"] == self.node and not self.reason and node["spec"].get("unschedulable"):
            self.reason = f"slurm-operator: {(node['metadata'].get('annotations') or {}).get(names.CORDON_REASON)}"

    async def jobs_end(self):
        """The last job of the node has ended: SlurmNodeStateDrain and SlurmNodeStateIdle of the Pod are True."""
        await self.harness.condition(self.node, "True", DRAINED)


async def test_slurm_is_told_why_in_the_moment_of_the_cordon_and_its_jobs_end_before_the_reboot(harness):
    await hand_over(harness)
    await harness.node("gpu-1", "True")
    slinky = Slinky(harness, "gpu-1")
    async with running(harness):
        await until(lambda: requested(harness))
        case = harness.cases("gpu-1")[0]["metadata"]["name"]
        seen = harness.cases("gpu-1")[0]["spec"]["trigger"]["message"]
        assert slinky.reason == f"slurm-operator: GpuLost: {seen} (remediator {case})"
        await harness.quiet()
        assert "reboot gpu-1" not in harness.ran, "its jobs run"
        await slinky.jobs_end()
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert "reboot gpu-1" in harness.ran
    assert names.CORDON_REASON not in (harness.look("gpu-1")["metadata"].get("annotations") or {})
