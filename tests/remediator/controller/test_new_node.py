"""The gate of new nodes: a node with the taint of a policy's `admit` works only once its probe has succeeded."""

import pytest

from remediator.core import names
from tests.harness.controller import RUNS, Answer, running, until
from tests.harness.kinds import BUDGETS, NODES, POLICIES, TEMPLATES
from tests.remediator.test_cli_explain import explained

pytestmark = pytest.mark.sampled("new node")

GATE = "remediator.dev/unproven"
TAINT = {"key": GATE, "effect": "NoSchedule"}
ADMIT = {"probe": "gpu-check", "taint": GATE}
VERIFY = {"settle": "1s", "fresh": "1s", "timeout": "30s"}
FINE, WRONG = Answer(message="8 GPUs compute"), Answer(exit=1, message="GPU 3 multiplies wrongly")
CANNOT_TELL = Answer(exit=2, message="no CUDA driver library in this container")


@pytest.fixture
async def gated(harness):
    """A harness with the template gpu-check and a policy with a gate; its nodes come with `new`."""
    await harness.template("gpu-check")
    await harness.policy(verify=VERIFY, admit=ADMIT)
    harness.answer("gpu-check", FINE)
    return harness


async def new(harness, name, gpu="False", machine="machine-1"):
    """A node as its kubelet registers it with the taint."""
    await harness.node(name, gpu)
    await harness.machine(name, machine)
    await harness.change(NODES, name, spec={"taints": [TAINT]})


def note(harness, node):
    """By which gates the machine has come."""
    return harness.look(node)["metadata"].get("annotations", {}).get(names.ADMITTED, "")


def status(harness, node):
    """Of the newest case."""
    return harness.cases(node)[-1]["status"]


def counted(harness):
    """What the budget `all` counts."""
    return next(each["status"] for each in harness.all(BUDGETS) if each["metadata"]["name"] == "all")


async def test_a_new_node_works_once_its_probe_has_succeeded_and_no_budget_counts_it_meanwhile(gated):
    harness = gated
    await harness.budget("all", 1)
    harness.answer("gpu-check", RUNS)
    for name in ("gpu-1", "gpu-2"):  # two, where a budget lets one node be away
        await new(harness, name)
    async with running(harness):
        await until(lambda: {"gpu-check gpu-1", "gpu-check gpu-2"} <= set(harness.ran))
        await harness.quiet()
        assert (harness.phase("gpu-1"), harness.claims()) == ("Verifying", [])
        assert (counted(harness).get("total", 0), counted(harness).get("unavailable", 0)) == (0, 0)
        for _ in range(2):
            await harness.finish("gpu-check", FINE)
        await until(lambda: all(harness.ended(name, "Recovered") for name in ("gpu-1", "gpu-2")))
        await until(lambda: counted(harness).get("total") == 2)
    assert harness.taints("gpu-1") == []
    assert note(harness, "gpu-1") == f"{GATE}={names.machine('board-1', 'machine-1')}"
    assert status(harness, "gpu-1")["message"].endswith(f"gpu-check has succeeded; the node works: {GATE} is taken off")
    assert "reboot gpu-1" not in harness.ran


async def test_a_new_node_waits_as_long_as_its_detectors_have_not_spoken(gated):
    harness = gated
    await harness.client.create(NODES, {"metadata": {"name": "gpu-1"}, "spec": {"taints": [TAINT]}})
    await harness.report_boot("gpu-1")
    await harness.condition("gpu-1", "True", "Ready")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["HealthUnknown"])
        await harness.quiet()
        assert harness.taints("gpu-1") == [GATE]
        await harness.condition("gpu-1", "False")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert harness.ran.count("gpu-check gpu-1") == 1


async def test_a_probe_that_fails_keeps_the_node_out_and_a_person_is_called_who_may_have_it_probed_again(gated):
    harness = gated
    harness.answer("gpu-check", WRONG, FINE)
    await new(harness, "gpu-1")
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        await harness.quiet()
        assert GATE in harness.taints("gpu-1")
        assert harness.ran.count("gpu-check gpu-1") == 1
        standing = status(harness, "gpu-1")
        assert standing["reason"] == "LadderExhausted"
        assert standing["message"].endswith("gpu-check must succeed before the node works; Failed: " + WRONG.message)
        await harness.edit_case("gpu-1", retry=1)
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert harness.ran.count("gpu-check gpu-1") == 2
    assert (len(harness.cases("gpu-1")), harness.taints("gpu-1")) == (1, [])


async def test_a_person_who_releases_the_case_lets_the_node_work(gated):
    harness = gated
    harness.answer("gpu-check", WRONG)
    await new(harness, "gpu-1")
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        await harness.edit_case("gpu-1", release=True)
        await until(lambda: harness.clean("gpu-1"))
        await harness.quiet()
    assert (len(harness.cases("gpu-1")), harness.taints("gpu-1")) == (1, [])


async def test_a_probe_that_cannot_tell_until_the_time_to_verify_is_over_goes_to_a_person(gated):
    harness = gated
    harness.answer("gpu-check", CANNOT_TELL)
    await harness.change(POLICIES, "gpu-lost", spec={"verify": VERIFY | {"timeout": "2s"}})
    await new(harness, "gpu-1")
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
    assert GATE in harness.taints("gpu-1")
    assert CANNOT_TELL.message in status(harness, "gpu-1")["message"]


async def test_a_new_node_that_shows_the_fault_is_repaired_first_and_probed_then(gated):
    harness = gated
    await new(harness, "gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.taints("gpu-1") == [])
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    tried = [line for line in harness.ran if line in ("reboot gpu-1", "gpu-check gpu-1")]
    assert tried == ["reboot gpu-1", "gpu-check gpu-1"]


async def test_a_fault_that_shows_in_the_middle_is_repaired_and_the_probe_comes_after_it(gated):
    harness = gated
    harness.answer("gpu-check", RUNS, FINE)
    await new(harness, "gpu-1")
    async with running(harness):
        await until(lambda: "gpu-check gpu-1" in harness.ran)
        await harness.condition("gpu-1", "True")
        await harness.finish("gpu-check", FINE)
        await until(lambda: harness.taints("gpu-1") == [])
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    ends = [(each["status"]["phase"], each["status"]["reason"]) for each in harness.cases("gpu-1")]
    assert sorted(ends) == [("Cancelled", "GaveWay"), ("Recovered", "Verified"), ("Recovered", "Verified")]
    assert harness.ran.count("reboot gpu-1") == 1


async def test_a_user_who_takes_the_taint_off_lets_the_node_work_and_the_probe_ends(gated):
    harness = gated
    harness.answer("gpu-check", RUNS)
    await new(harness, "gpu-1")
    async with running(harness):
        await until(lambda: "gpu-check gpu-1" in harness.ran)
        left = [taint for taint in harness.look("gpu-1")["spec"]["taints"] if taint["key"] != GATE]
        await harness.change(NODES, "gpu-1", spec={"taints": left})
        await harness.finish("gpu-check", FINE)
        await until(lambda: harness.ended("gpu-1", "Cancelled"))
        await harness.quiet()
    assert status(harness, "gpu-1")["reason"] == "AdmittedByUser"
    assert (len(harness.cases("gpu-1")), note(harness, "gpu-1")) == (1, "")


async def test_a_case_that_a_user_deletes_is_not_opened_again_and_the_taint_stays(gated):
    harness = gated
    harness.answer("gpu-check", RUNS)
    await new(harness, "gpu-1")
    async with running(harness):
        await until(lambda: "gpu-check gpu-1" in harness.ran)
        await harness.delete_case("gpu-1")
        await harness.finish("gpu-check", FINE)
        await until(lambda: not harness.cases("gpu-1"))
        await harness.quiet()
    assert (harness.cases("gpu-1"), harness.taints("gpu-1")) == ([], [GATE])


async def test_a_node_that_is_deleted_in_the_middle_ends_its_case_and_its_namesake_is_probed(gated):
    harness = gated
    harness.answer("gpu-check", RUNS, FINE)
    await new(harness, "gpu-1")
    async with running(harness):
        await until(lambda: "gpu-check gpu-1" in harness.ran)
        await harness.client.delete(NODES, "gpu-1")
        await harness.finish("gpu-check", FINE)
        await until(lambda: status(harness, "gpu-1").get("reason") == "NodeGone")
        await new(harness, "gpu-1")
        await until(lambda: harness.taints("gpu-1") == [] and harness.phase("gpu-1") == "Recovered")
    assert len(harness.cases("gpu-1")) == 2


async def test_without_the_template_the_case_says_so_and_goes_on_once_it_is_there(harness):
    await harness.policy(verify=VERIFY, admit=ADMIT)
    await new(harness, "gpu-1")
    harness.answer("gpu-check", FINE)
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["UnknownOperation"])
        assert GATE in harness.taints("gpu-1")
        await harness.template("gpu-check")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert harness.taints("gpu-1") == []


async def test_another_machine_under_the_name_of_one_that_has_passed_must_pass_too(gated):
    harness = gated
    await new(harness, "gpu-1")
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        await harness.machine("gpu-1", "machine-2")
        await until(lambda: harness.ran.count("gpu-check gpu-1") == 2)
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert note(harness, "gpu-1") == f"{GATE}={names.machine('board-1', 'machine-2')}"
    assert len(harness.cases("gpu-1")) == 2


async def test_a_node_that_was_there_before_the_gate_and_one_that_has_passed_are_left_alone(gated):
    harness = gated
    await harness.node("gpu-old")
    await new(harness, "gpu-1")
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        await harness.change(NODES, "gpu-1", spec={"taints": [TAINT]})
        await harness.quiet()
    assert (harness.cases("gpu-old"), harness.taints("gpu-1"), len(harness.cases("gpu-1"))) == ([], [GATE], 1)


async def test_a_second_leader_makes_neither_a_second_case_nor_a_second_probe(gated):
    harness = gated
    harness.answer("gpu-check", RUNS)
    await new(harness, "gpu-1")
    async with running(harness):
        await until(lambda: "gpu-check gpu-1" in harness.ran)
    async with running(harness):
        await harness.quiet()
        assert GATE in harness.taints("gpu-1")
        await harness.finish("gpu-check", FINE)
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert (len(harness.cases("gpu-1")), harness.ran.count("gpu-check gpu-1")) == (1, 1)


async def test_in_dry_run_the_gate_stays_shut_and_the_case_says_what_it_would_do(gated):
    harness = gated
    await harness.change(POLICIES, "gpu-lost", spec={"mode": "DryRun"})
    await new(harness, "gpu-1")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["DryRun"])
        await harness.quiet()
    blocks = status(harness, "gpu-1")["blockedBy"]
    assert blocks[0]["message"].startswith("would try gpu-check")
    assert (harness.ran, harness.taints("gpu-1")) == ([], [GATE])


@pytest.mark.parametrize("disk", [{"mode": "DryRun"}, {"urgency": {"mode": "Never"}, "ladder": []}])
async def test_a_case_of_a_policy_that_only_watches_keeps_no_probe_back(gated, disk):
    harness = gated
    await harness.policy("disk", when=[{"condition": "DiskBad", "for": "0s"}], **disk)
    await new(harness, "gpu-1")
    await harness.condition("gpu-1", "True", "DiskBad")
    async with running(harness):
        await until(lambda: harness.taints("gpu-1") == [] and "gpu-check gpu-1" in harness.ran)
    assert [case["spec"]["policyName"] for case in harness.cases("gpu-1") if "newNode" not in case["spec"]] == ["disk"]


async def test_a_fault_of_another_policy_that_a_person_has_released_keeps_no_probe_back(gated):
    harness = gated
    await harness.policy("disk", when=[{"condition": "DiskBad", "for": "0s"}])
    harness.answer("reboot", Answer(exit=2, message="this disk is soldered"))
    await new(harness, "gpu-1")
    await harness.condition("gpu-1", "True", "DiskBad")
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        await harness.edit_case("gpu-1", release=True)
        await until(lambda: harness.taints("gpu-1") == [] and "gpu-check gpu-1" in harness.ran)


async def test_a_gate_that_the_policy_has_no_more_holds_the_case_and_says_so(gated):
    harness = gated
    await harness.change(TEMPLATES, "gpu-check", spec={"timeout": "20s"})
    await harness.change(POLICIES, "gpu-lost", spec={"mode": "Paused"})
    await new(harness, "gpu-1")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["PolicyPaused"])
        await harness.change(POLICIES, "gpu-lost", spec={"admit": None, "mode": "Enforce"})
        await until(lambda: harness.reasons("gpu-1") == ["PolicyMissing"])
    assert status(harness, "gpu-1")["blockedBy"][0]["message"].startswith(
        "no policy gpu-lost with admit.taint remediator.dev/unproven; "
    )


async def test_explain_says_what_keeps_work_off_a_new_node_and_the_command_that_lets_it_work(gated):
    harness = gated
    harness.answer("gpu-check", WRONG)
    await new(harness, "gpu-1")
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        code, lines, _ = await explained(harness, "gpu-1")
    name = harness.cases("gpu-1")[0]["metadata"]["name"]
    assert code == 0
    assert (
        f"  new node: {GATE} keeps work off until case {name} is over; to let the node work without: "
        f"kubectl taint node gpu-1 {GATE}-"
    ) in lines
