"""What a person does to a node or its case in mid-flight: every deed in every phase has a defined end."""

from contextlib import suppress

import pytest

from remediator.core import names
from remediator.kube.wire import errors
from tests.harness.controller import REBOOTED, RUNS, Answer, running, until
from tests.harness.kinds import CASES, NODES, POLICIES
from tests.remediator.controller.test_recurrence import lines

pytestmark = pytest.mark.sampled("midflight")

PHASES = ("Held", "Draining", "Operating", "Verifying", "Escalated")


async def reach(harness, phase):
    """A case in this phase; what would end it waits."""
    answers = {"Draining": ("drain", RUNS), "Operating": ("reboot", RUNS)}
    if phase in answers:
        harness.answer(answers[phase][0], answers[phase][1])
    if phase == "Escalated":
        harness.answer("reboot", Answer(exit=1, message="the kernel did not come up"))
    if phase == "Verifying":

        async def cure_and_fall_silent(harness, node):
            await REBOOTED.does(harness, node)
            harness.beating = False

        harness.answer("reboot", Answer(exit=137, does=cure_and_fall_silent))
    await harness.policy(ladder=[{"operation": "reboot", "attempts": 1}])
    await harness.node("gpu-1", "True", **{"exclude": "true"} if phase == "Held" else {})


async def there(harness, phase):
    """Wait until the case is in this phase and rests there."""
    await until(lambda: harness.phase("gpu-1") == phase)
    if phase in ("Draining", "Operating"):
        template = "drain" if phase == "Draining" else "reboot"
        await until(lambda: any(pod["status"].get("phase") == "Running" for pod in harness.pods(template)))
    await harness.quiet()


async def go_on(harness, phase):
    """Let what waits end."""
    harness.beating = True
    if phase == "Operating":
        await harness.finish("reboot", REBOOTED)


@pytest.mark.parametrize("phase", PHASES)
async def test_a_case_that_a_person_deletes_ends_and_leaves_nothing(harness, phase):
    await reach(harness, phase)
    async with running(harness):
        await there(harness, phase)
        await harness.delete_case("gpu-1")
        if phase == "Operating":
            await harness.quiet()
            assert harness.taints("gpu-1") == [names.CASE_TAINT], "what runs on the node runs to its end first"
        await go_on(harness, phase)
        await until(lambda: not harness.cases("gpu-1") and harness.clean("gpu-1"))
        assert names.HANDLED in harness.look("gpu-1")["metadata"]["annotations"], "it is not opened again"


async def test_a_fault_gets_another_case_once_its_policy_that_was_edited_is_edited_back(harness):
    """The case that was held is over meanwhile, since the other Condition is False; the fault is the one of before."""
    await reach(harness, "Held")
    await harness.condition("gpu-1", "False", "DiskBad")
    async with running(harness):
        await there(harness, "Held")
        await harness.change(POLICIES, "gpu-lost", spec={"when": [{"condition": "DiskBad", "for": "0s"}]})
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        await harness.change(POLICIES, "gpu-lost", spec={"when": [{"condition": "GpuLost", "for": "0s"}]})
        await until(lambda: sorted(phases(harness)) == ["Held", "Recovered"])


def phases(harness):
    return [case.get("status", {}).get("phase", "") for case in harness.cases("gpu-1")]


@pytest.mark.parametrize("phase", PHASES[1:])
async def test_a_taint_that_a_person_takes_off_ends_the_case(harness, phase):
    await reach(harness, phase)
    async with running(harness):
        await there(harness, phase)
        await harness.change(NODES, "gpu-1", spec={"taints": None})
        await go_on(harness, phase)
        await until(lambda: harness.cases("gpu-1")[0]["status"].get("endedAt") and harness.clean("gpu-1"))
    status = harness.cases("gpu-1")[0]["status"]
    assert status["reason"] == "TaintRemovedByUser"
    assert status["phase"] == ("Escalated" if phase == "Escalated" else "Cancelled")


@pytest.mark.parametrize("phase", PHASES)
async def test_the_case_of_a_node_that_is_deleted_ends(harness, phase):
    await reach(harness, phase)
    async with running(harness):
        await there(harness, phase)
        await harness.client.delete(NODES, "gpu-1")
        with suppress(errors.NotFound):  # the kubelet is gone with its machine
            await go_on(harness, phase) if phase != "Operating" else None
        await until(lambda: harness.cases("gpu-1")[0]["status"].get("endedAt"), 40)
        await until(lambda: not harness.cases("gpu-1")[0]["metadata"].get("finalizers"))
    status = harness.cases("gpu-1")[0]["status"]
    assert status["reason"] == "NodeGone"
    assert status["phase"] == ("Escalated" if phase == "Escalated" else "Cancelled")
    assert harness.claims() == []


@pytest.mark.parametrize(
    ("phase", "ends"),
    [("Draining", "held"), ("Operating", "recovers"), ("Verifying", "recovers"), ("Escalated", "waits")],
)
async def test_a_node_that_a_person_uncordons_is_not_disturbed_any_more(harness, phase, ends):
    await reach(harness, phase)
    async with running(harness):
        await there(harness, phase)
        await harness.change(NODES, "gpu-1", spec={"unschedulable": False})
        await go_on(harness, phase)
        if ends == "held":
            await until(lambda: harness.reasons("gpu-1") == ["UncordonedByUser"])
            await until(lambda: not harness.pods())
            assert "reboot gpu-1" not in harness.ran
            await harness.condition("gpu-1", "False")
        if ends == "waits":
            await harness.quiet()
            assert harness.taints("gpu-1") == [names.CASE_TAINT]
            told = "a user has uncordoned gpu-1: new work may come to it, though nobody has proven that it is well"
            assert f"{told}; `kubectl cordon gpu-1` keeps it off" in await lines(harness, "gpu-1")
            await harness.edit_case("gpu-1", release=True)
        await until(lambda: harness.ended("gpu-1", "Escalated" if ends == "waits" else "Recovered"))


async def test_a_release_is_refused_until_a_person_has_the_case_and_the_node_stays_out_of_service(harness):
    early = "spec.release: .*gives back the node of an Escalated case, .* to end the case now, delete it"
    harness.answer("reboot", RUNS)
    await harness.policy(ladder=[{"operation": "reboot", "attempts": 1}])
    await harness.node("gpu-1", "True")
    async with running(harness):
        await there(harness, "Operating")
        with pytest.raises(errors.Invalid, match=early):
            await harness.edit_case("gpu-1", release=True)
        await harness.edit_case("gpu-1", release=False)
        await harness.finish("reboot", Answer(exit=1, message="the kernel did not come up"))
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        await harness.quiet()
        assert harness.taints("gpu-1") == [names.CASE_TAINT]
        await harness.edit_case("gpu-1", release=True)
        await until(lambda: harness.ended("gpu-1", "Escalated"))
    assert harness.cases("gpu-1")[0]["status"]["reason"] == "ReleasedByUser"


@pytest.mark.parametrize("deed", ["delete", "untaint", "uncordon"])
async def test_every_deed_ends_a_probe_too(harness, deed):
    await harness.template("gpu-check")
    harness.answer("gpu-check", RUNS)
    await harness.policy(verify={"settle": "1s", "fresh": "1s", "timeout": "30s", "probe": "gpu-check"})
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "gpu-check gpu-1" in harness.ran)
        name = harness.cases("gpu-1")[0]["metadata"]["name"]
        if deed == "delete":
            await harness.client.delete(CASES, name)
        elif deed == "untaint":
            await harness.change(NODES, "gpu-1", spec={"taints": None})
        else:
            await harness.change(NODES, "gpu-1", spec={"unschedulable": False})
        await harness.quiet()
        await harness.finish("gpu-check")
        await until(lambda: harness.clean("gpu-1"))
    phases = [case["status"]["phase"] for case in harness.cases("gpu-1")]
    assert phases == {"delete": [], "untaint": ["Cancelled"]}.get(deed, ["Recovered"])
