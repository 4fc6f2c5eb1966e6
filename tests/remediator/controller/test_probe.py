"""The probe of a policy: what must succeed on a node that looks healthy, before it is given back."""

from datetime import timedelta

import pytest

from remediator.controller import operation_view
from remediator.core import names, probe
from tests.harness.controller import REBOOTED, RUNS, Answer, running, until
from tests.harness.kinds import EVENTS, NAMESPACES, POLICIES, TEMPLATES
from tests.harness.kinds import OPERATIONS as NODE_OPERATIONS

pytestmark = pytest.mark.sampled("probe")

VERIFY = {"settle": "1s", "fresh": "1s", "timeout": "30s", "probe": "gpu-check"}
WRONG = Answer(exit=1, message="GPU 3 multiplies wrongly")
CANNOT_TELL = Answer(exit=2, message="no CUDA driver library in this container")
FINE = Answer(message="8 GPUs compute")


@pytest.fixture
async def probed(harness):
    """A harness with the template gpu-check, a policy that asks for it, and a node whose GPU is lost."""
    await harness.template("gpu-check")
    await harness.policy(verify=VERIFY)
    await harness.node("gpu-1", "True")
    harness.answer("gpu-check", FINE)
    return harness


def attempts(harness):
    """The attempts of the node's case: template, outcome and whether it was a probe."""
    made = harness.cases("gpu-1")[0]["status"]["attempts"]
    return [(one["template"], one.get("outcome", ""), one.get("probe", False)) for one in made]


async def test_a_node_comes_back_only_after_its_probe_has_succeeded_once(probed):
    harness = probed
    harness.answer("gpu-check", RUNS)
    async with running(harness):
        await until(lambda: "gpu-check gpu-1" in harness.ran)
        await harness.quiet()
        assert harness.phase("gpu-1") == "Verifying"
        assert (harness.taints("gpu-1"), harness.claims()) == ([names.CASE_TAINT], ["gpu-1"]), "it is still held"
        await harness.finish("gpu-check", FINE)
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert attempts(harness) == [("reboot", "Succeeded", False), ("gpu-check", "Succeeded", True)]
    assert harness.ran.count("gpu-check gpu-1") == 1
    message = harness.cases("gpu-1")[0]["status"]["message"]
    assert message == "healthy on fresh evidence, and gpu-check has succeeded; the node is back"


async def test_a_probe_that_fails_is_an_attempt_in_vain_and_the_next_one_comes(probed):
    harness = probed
    harness.answer("gpu-check", WRONG, FINE)
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert attempts(harness) == [
        ("reboot", "Succeeded", False),
        ("gpu-check", "Failed", True),
        ("reboot", "Succeeded", False),
        ("gpu-check", "Succeeded", True),
    ]


async def test_where_every_probe_fails_a_person_is_called_with_what_it_says(probed):
    harness = probed
    harness.answer("gpu-check", WRONG)
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        await harness.quiet()
    assert [template for template, *_ in attempts(harness)] == ["reboot", "gpu-check"] * 2
    status = harness.cases("gpu-1")[0]["status"]
    assert status["reason"] == "LadderExhausted"
    assert status["message"].endswith("gpu-check must succeed before the node is given back; Failed: " + WRONG.message)


@pytest.mark.parametrize("how", ["refuses", "is lost", "never starts", "drains in vain"])
async def test_a_probe_that_cannot_tell_is_made_again_and_is_neither_success_nor_failure(probed, monkeypatch, how):
    harness = probed
    monkeypatch.setattr(probe, "PAUSE", timedelta(0))
    lost, stuck = Answer(exit=137, message="killed"), Answer(starts=False)
    first = {"refuses": CANNOT_TELL, "is lost": lost, "never starts": stuck}.get(how)
    harness.answer("gpu-check", *([first] if first else []), FINE)
    if how == "never starts":
        await harness.change(TEMPLATES, "gpu-check", spec={"timeout": "1s"})
    if how == "drains in vain":
        await harness.change(TEMPLATES, "gpu-check", spec={"drain": {"strategy": "Evict", "timeout": "20s"}})
        blocked = Answer(exit=1, message="3 pods left")
        harness.answer("drain", Answer(message="no pods left"), blocked, Answer(message="no pods left"))
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    (rung, *_), *probes = attempts(harness)
    assert rung == "reboot"
    assert {template for template, *_ in probes} == {"gpu-check"}
    first, *others, last = (phase for _, phase, *_ in probes)
    assert (first, last) == ("Refused" if how == "refuses" else "Cancelled", "Succeeded")
    assert set(others) <= ({"Cancelled"} if how == "never starts" else set())  # 1 s is short on a busy machine


async def test_where_it_cannot_tell_until_the_time_to_verify_is_over_a_person_is_called(probed):
    harness = probed
    harness.answer("gpu-check", CANNOT_TELL)
    await harness.change(POLICIES, "gpu-lost", spec={"verify": VERIFY | {"timeout": "2s"}})
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
    status = harness.cases("gpu-1")[0]["status"]
    assert status["reason"] == "VerifyTimeout"
    assert CANNOT_TELL.message in status["message"]


async def test_a_fault_that_comes_back_while_the_probe_runs_goes_before_its_success(probed):
    harness = probed
    harness.answer("gpu-check", RUNS, FINE)
    await harness.change(POLICIES, "gpu-lost", spec={"verify": VERIFY | {"timeout": "2s"}})
    async with running(harness):
        await until(lambda: "gpu-check gpu-1" in harness.ran)
        await harness.condition("gpu-1", "True")
        await harness.finish("gpu-check", FINE)
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert attempts(harness)[:3] == [
        ("reboot", "Succeeded", False),
        ("gpu-check", "Succeeded", True),
        ("reboot", "Succeeded", False),
    ]


async def test_a_pause_stops_the_probe_and_its_end_lets_it_go_on(probed):
    harness = probed

    async def pause(harness, node):
        await REBOOTED.does(harness, node)
        await harness.change(NAMESPACES, "remediator-system", metadata={"annotations": {names.PAUSED: "now"}})

    harness.answer("reboot", Answer(exit=137, does=pause))
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["Paused"])
        await harness.quiet()
        assert "gpu-check gpu-1" not in harness.ran
        await harness.change(NAMESPACES, "remediator-system", metadata={"annotations": {names.PAUSED: None}})
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_a_policy_whose_probe_does_not_exist_claims_nothing(harness):
    await harness.policy(verify=VERIFY)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["UnknownOperation"])
    assert "no template gpu-check" in harness.cases("gpu-1")[0]["status"]["blockedBy"][0]["message"]
    assert harness.taints("gpu-1") == []


async def test_a_template_that_is_deleted_in_the_middle_of_a_probe_is_told_at_once_with_what_to_do(probed):
    harness = probed

    async def reboot_and_delete(harness, node):
        await REBOOTED.does(harness, node)
        await harness.client.delete(TEMPLATES, "gpu-check")

    harness.answer("reboot", Answer(exit=137, does=reboot_and_delete))
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["UnknownOperation"])
        assert harness.cases("gpu-1")[0]["status"]["message"] == (
            "gpu-check is under way on gpu-1, and no template gpu-check is there any more: without it the operation is "
            "given up 30 minutes after it began; create the NodeOperationTemplate that the policy names, or correct "
            "the policy"
        )
        await until(lambda: any(event["reason"] == "UnknownOperation" for event in harness.all(EVENTS)))
        await harness.template("gpu-check")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert harness.reasons("gpu-1") == []


async def test_a_template_that_is_deleted_in_the_middle_of_a_probe_leaves_it_undecided(probed, monkeypatch):
    harness = probed
    monkeypatch.setattr(operation_view, "WITHOUT_TEMPLATE", timedelta(seconds=1))
    await harness.change(POLICIES, "gpu-lost", spec={"verify": VERIFY | {"timeout": "4s"}})

    async def reboot_and_delete(harness, node):
        await REBOOTED.does(harness, node)
        await harness.client.delete(TEMPLATES, "gpu-check")

    harness.answer("reboot", Answer(exit=137, does=reboot_and_delete))
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated", 30)
    assert all(outcome == "Cancelled" for _, outcome, is_probe in attempts(harness) if is_probe)
    assert len(harness.all(NODE_OPERATIONS)) >= 2
