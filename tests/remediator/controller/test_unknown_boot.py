"""A node whose kubelet has not told its boot: an operation that is for one boot alone waits, and so does its case."""

import pytest

from remediator.controller.operation_view import succeeded
from remediator.core import names
from tests.builders import a_node, a_template, an_operation, at, condition
from tests.harness.controller import DONE, RUNS, Answer, running, until
from tests.harness.kinds import NODES, TEMPLATES

pytestmark = pytest.mark.sampled("unknown boot")


async def forget_boot(harness, node="gpu-1"):
    """The kubelet has just registered the node, or somebody has taken away what it told."""
    await harness.client.patch(NODES, node, {"status": {"nodeInfo": None}}, subresource="status")


async def test_a_node_without_a_boot_is_not_taken_and_is_repaired_once_its_kubelet_has_told_it(harness):
    await harness.policy()
    await harness.node("gpu-1", "True")
    await forget_boot(harness)
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["HealthUnknown"])
        await harness.quiet()
        assert (harness.ran, harness.taints("gpu-1")) == ([], [])
        said = harness.cases("gpu-1")[0]["status"]["blockedBy"][0]["message"]
        assert said.startswith(
            "the kubelet has not told in which boot the node is (status.nodeInfo.bootID), and reboot "
        )
        await harness.report_boot("gpu-1")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert harness.ran.count("reboot gpu-1") == 1
    assert [one["intent"] for one in harness.cases("gpu-1")[0]["status"]["attempts"]] == [{"bootID": "boot-1"}]


@pytest.mark.parametrize("told", [True, False], ids=["it is told again", "it is never told again"])
async def test_a_boot_that_is_forgotten_while_the_node_is_drained_is_waited_for_before_the_intent(harness, told):
    """Without it any boot would be another one: the reboot would count as done before it was."""
    harness.answer("drain", RUNS, DONE)
    await harness.change(TEMPLATES, "reboot", spec={"drain": {"strategy": "Evict", "timeout": "3s"}})
    await harness.policy(ladder=[{"operation": "reboot", "attempts": 1}])
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.pods("drain", "Running"))
        await forget_boot(harness)
        await harness.finish("drain")
        await harness.quiet()
        assert "reboot gpu-1" not in harness.ran
        if told:
            await harness.report_boot("gpu-1")
            await until(lambda: harness.ended("gpu-1", "Recovered"))
        else:
            await until(lambda: harness.phase("gpu-1") == "Escalated")
    assert harness.ran.count("reboot gpu-1") == told
    (attempt,) = harness.cases("gpu-1")[0]["status"]["attempts"]
    assert attempt["outcome"] == ("Succeeded" if told else "Failed"), "the drain has disturbed it"
    assert told or attempt["message"].endswith("has not told in which boot the node is (status.nodeInfo.bootID)")


async def test_an_operation_that_runs_elsewhere_and_is_for_no_boot_needs_none(harness):
    async def cure(harness, node):
        await harness.condition(node, "False")

    await harness.template("restart-plugin", runOn="Elsewhere", timeout="20s")
    harness.answer("restart-plugin", Answer(does=cure))
    await harness.policy(ladder=[{"operation": "restart-plugin", "attempts": 1}])
    await harness.node("gpu-1", "True")
    await forget_boot(harness)
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert harness.ran[-1] == "restart-plugin gpu-1"


async def test_a_new_node_of_which_nothing_is_known_is_probed_once_its_kubelet_has_told_of_it(harness):
    """What was asked for before that was of no machine: the one that is told must pass as itself."""
    gate = f"{names.GROUP}/unproven"
    await harness.template("gpu-check")
    harness.answer("gpu-check", DONE)
    await harness.policy(admit={"probe": "gpu-check", "taint": gate})
    await harness.node("gpu-1")
    await harness.change(NODES, "gpu-1", spec={"taints": [{"key": gate, "effect": "NoSchedule"}]})
    await forget_boot(harness)
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["HealthUnknown"])
        await harness.quiet()
        assert (harness.ran, harness.taints("gpu-1")) == ([], [gate])
        await harness.machine("gpu-1", "m1")
        await harness.report_boot("gpu-1")
        await until(lambda: harness.taints("gpu-1") == [] and harness.clean("gpu-1"))
    passed = harness.look("gpu-1")["metadata"]["annotations"][names.ADMITTED]
    assert passed == f"{gate}={names.machine('board-1', 'm1')}"


@pytest.mark.parametrize(("intended", "done"), [("boot-1", True), ("boot-2", False), ("", False)])
def test_a_boot_is_another_one_only_than_one_that_is_known(intended, done):
    node = a_node("gpu-1", condition("Ready"), boot_id="boot-2")
    operation = an_operation(intent_boot_id=intended, intent_at=at(1))
    assert succeeded(operation, a_template(boot_id_changed=True), node, None) is done
