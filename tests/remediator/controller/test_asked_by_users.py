"""What users ask for, and whose names the controller tells where they hold or release a case."""

import json
from datetime import timedelta

import pytest

from remediator.core import manual, names
from remediator.core.breaker import Breaker
from tests.harness.controller import DONE, REBOOTED, RUNS, Answer, environment, running, until
from tests.harness.kinds import CASES, NODES, OPERATIONS, Object

pytestmark = pytest.mark.sampled("asked by users")

ALICE = "https://accounts.example.com#alice@example.com"
FAILED = Answer(exit=1, message="the machine did not take it")


async def ask(harness, name="by-hand", template="reboot", node="gpu-1", **spec) -> None:
    """What a user does with `kubectl create -f`."""
    uid = harness.look(node)["metadata"]["uid"]
    said = {"nodeName": node, "nodeUID": uid, "templateName": template, "requestedBy": ALICE}
    await harness.make(OPERATIONS, name, **said | spec)


def asked(harness, name="by-hand") -> Object:
    """The status of a user's operation."""
    made = next(one for one in harness.all(OPERATIONS) if one["metadata"]["name"] == name)
    return made.get("status", {})


def ended(harness, name="by-hand") -> str:
    """How a user's operation has ended, "" while it has not."""
    return asked(harness, name)["phase"] if asked(harness, name).get("finishedAt") else ""


async def test_a_user_asks_for_a_reboot_of_a_healthy_node_and_it_is_rebooted_once_and_given_back(harness) -> None:
    await harness.node("gpu-1")
    await harness.policy()
    async with running(harness):
        await ask(harness, parameters={"waitSeconds": "60"})
        await until(lambda: ended(harness) and harness.clean("gpu-1"))
    (case,) = harness.cases("gpu-1")
    assert case["spec"]["manual"]["requestedBy"] == ALICE
    assert "policyName" not in case["spec"]
    assert (harness.phase("gpu-1"), case["status"]["reason"]) == ("Recovered", "Verified")
    assert case["status"]["message"] == "reboot, Succeeded: new bootID boot-2; the node is Ready and back"
    assert harness.ran == ["collect-diagnostics gpu-1", "drain gpu-1", "reboot gpu-1"]
    assert (asked(harness)["phase"], asked(harness)["reason"]) == ("Succeeded", "Done")
    assert asked(harness)["caseName"] == case["metadata"]["name"]
    (own,) = [one for one in harness.all(OPERATIONS) if one["metadata"]["name"] != "by-hand"]
    assert own["spec"]["parameters"] == {"waitSeconds": "60"}


@pytest.mark.parametrize(("exit", "phase"), [(2, "Succeeded"), (1, "Failed")])
async def test_an_operation_whose_follow_up_has_nothing_to_do_has_succeeded_and_one_whose_follow_up_fails_has_not(
    harness, exit, phase
) -> None:
    """A GPU was reset on a node without a device plugin that could be restarted; or its restart fails."""
    await harness.template("restart-device-plugin", runOn="Elsewhere")
    await harness.template("reset-gpu", after=["restart-device-plugin"])
    harness.answer("reset-gpu", Answer(message="reset"))
    harness.answer("restart-device-plugin", Answer(exit=exit, message="no DaemonSet is a device plugin"))
    await harness.node("gpu-1")
    async with running(harness):
        await ask(harness, template="reset-gpu")
        await until(lambda: ended(harness) and harness.clean("gpu-1"))
    assert (ended(harness), harness.phase("gpu-1")) == (phase, "Recovered")


async def test_whose_drain_it_is_and_how_long_it_may_take_no_parameter_of_a_user_says(harness) -> None:
    await harness.node("gpu-1")
    wrong = {"case": "", "policy": "p", "namespace": "", "operationUID": "other", "timeoutSeconds": "1"}
    harness.answer("drain", RUNS)
    async with running(harness):
        await ask(harness, template="drain", parameters={**wrong, "perSecond": "2"})
        await until(lambda: bool(harness.pods("drain")))
        (pod,) = harness.pods("drain")
    orders = json.loads(environment(pod)["PARAMETERS"])
    assert [word for word in wrong if orders.get(word) == wrong[word]] == []
    assert (orders["perSecond"], orders["strategy"]) == ("2", "Evict")


async def test_an_operation_that_fails_gives_a_ready_node_back_and_tells_the_user(harness) -> None:
    await harness.node("gpu-1")
    harness.answer("reboot", FAILED)
    async with running(harness):
        await ask(harness)
        await until(lambda: ended(harness) and harness.clean("gpu-1"))
    assert (ended(harness), asked(harness)["reason"]) == ("Failed", "ProgramFailed")
    assert asked(harness)["message"].startswith("the machine did not take it; case gpu-1-manual-")
    assert harness.ran.count("reboot gpu-1") == 1, "it is tried once"
    assert harness.phase("gpu-1") == "Recovered", "no condition shows a fault: the node is in service again"


async def test_a_node_that_is_not_ready_after_it_goes_to_a_person(harness, monkeypatch) -> None:
    monkeypatch.setattr(manual, "TIMEOUT", timedelta(seconds=1))
    await harness.template("restart-service")
    await harness.node("gpu-1")
    harness.answer("restart-service", RUNS)
    async with running(harness):
        await ask(harness, template="restart-service")
        await until(lambda: harness.pods("restart-service"))
        await harness.condition("gpu-1", "False", "Ready")
        await harness.finish("restart-service")
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        await until(lambda: ended(harness))
        assert (ended(harness), asked(harness)["reason"]) == ("Failed", "VerifyTimeout")
        assert "a person must look: the node is not Ready after restart-service, Succeeded" in asked(harness)["message"]
        await harness.client.delete(OPERATIONS, "by-hand")
        await harness.quiet()
        assert harness.taints("gpu-1") == [names.CASE_TAINT], "what a person has stays out until it is released"
        await harness.edit_case("gpu-1", release=True)
        await until(lambda: harness.clean("gpu-1"))


async def escalated(harness, monkeypatch) -> None:
    """A user's operation after which the node is not Ready; within the block of a controller that runs."""
    monkeypatch.setattr(manual, "TIMEOUT", timedelta(seconds=1))
    await ask(harness, template="restart-service", parameters={"service": "kubelet"})
    await until(lambda: harness.pods("restart-service"))
    await harness.condition("gpu-1", "False", "Ready")
    await harness.finish("restart-service")
    await until(lambda: harness.phase("gpu-1") == "Escalated" and ended(harness))


async def ready(harness, node: str) -> None:
    """What the operation brings about."""
    await harness.condition(node, "True", "Ready")


@pytest.mark.parametrize("deleted", [False, True])
async def test_a_case_of_a_users_operation_carries_it_out_again_when_a_user_says_so(
    harness, monkeypatch, deleted: bool
) -> None:
    """Also where that NodeOperation, which had ended, was deleted."""
    await harness.template("restart-service")
    await harness.node("gpu-1")
    harness.answer("restart-service", RUNS, Answer(does=ready))
    async with running(harness):
        await escalated(harness, monkeypatch)
        monkeypatch.setattr(manual, "TIMEOUT", timedelta(minutes=20))
        if deleted:
            await harness.client.delete(OPERATIONS, "by-hand")
        await harness.edit_case("gpu-1", retry=1)
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    (case,) = harness.cases("gpu-1")
    assert case["status"]["reason"] == "Verified"
    assert harness.ran.count("restart-service gpu-1") == 2
    own = [made for made in harness.all(OPERATIONS) if made["metadata"]["name"] != "by-hand"]
    assert [made["spec"]["parameters"] for made in own] == [{"service": "kubelet"}] * 2


async def test_a_node_that_is_not_ready_is_not_given_back_by_a_retry_whose_operation_was_deleted(
    harness, monkeypatch
) -> None:
    await harness.template("restart-service")
    await harness.node("gpu-1")
    harness.answer("restart-service", RUNS)
    async with running(harness):
        await escalated(harness, monkeypatch)
        await harness.client.delete(OPERATIONS, "by-hand")
        await harness.edit_case("gpu-1", retry=1)
        await harness.finish("restart-service", FAILED)
        await until(lambda: harness.phase("gpu-1") == "Escalated" and not harness.pods())
        assert harness.story("gpu-1")[-1] == "VerifyTimeout"
        assert harness.taints("gpu-1") == [names.CASE_TAINT]


async def test_a_user_asks_for_a_drain_and_the_drain_itself_is_the_operation(harness) -> None:
    await harness.node("gpu-1")
    harness.answer("drain", RUNS)
    async with running(harness):
        await ask(harness, template="drain")
        await until(lambda: any(pod["status"].get("phase") == "Running" for pod in harness.pods("drain")))
        (pod,) = harness.pods("drain")
        (own,) = [one for one in harness.all(OPERATIONS) if one["metadata"]["name"] != "by-hand"]
        assert own["status"]["drainPod"] == pod["metadata"]["name"], "which may write its progress there"
        env = {entry["name"]: entry["value"] for entry in pod["spec"]["containers"][0]["env"]}
        for word in (
            own["metadata"]["name"],
            own["metadata"]["uid"],
            '"strategy": "Evict"',
            harness.cases("gpu-1")[0]["metadata"]["name"],
        ):
            assert word in env["PARAMETERS"]
        assert '"policy"' not in env["PARAMETERS"]
        await harness.finish("drain")
        await until(lambda: ended(harness) == "Succeeded" and harness.clean("gpu-1"))


async def test_the_cordon_of_an_operation_that_a_user_asked_for_outlives_its_case(harness) -> None:
    async def mark(harness, node):
        uid = harness.cases(node)[0]["metadata"]["uid"]
        notes = {names.CORDONED_BY: None, names.KEPT_CORDONED: uid}
        await harness.client.patch(NODES, node, {"metadata": {"annotations": notes}})

    await harness.template("cordon", runOn="Elsewhere")
    harness.answer("cordon", Answer(does=mark))
    await harness.node("gpu-1")
    async with running(harness):
        await ask(harness, template="cordon")
        await until(lambda: ended(harness) == "Succeeded" and not harness.taints("gpu-1"))
    assert harness.look("gpu-1")["spec"]["unschedulable"] is True


@pytest.mark.parametrize("stop", ["excluded", "cordoned", "budget", "breaker", "unknown"])
async def test_every_guard_holds_it_and_the_user_reads_which(harness, stop: str) -> None:
    await harness.node("gpu-1", **{"exclude": "true"} if stop == "excluded" else {})
    if stop == "cordoned":
        await harness.change(NODES, "gpu-1", spec={"unschedulable": True})
    if stop == "budget":
        await harness.budget("none", 0)
    word = {"excluded": "OptedOut", "cordoned": "CordonedByUser", "budget": "BudgetSpent", "breaker": "BreakerOpen"}
    reason = word.get(stop, "UnknownOperation")
    harness.answer("reboot", RUNS)
    async with running(harness, breaker=Breaker(starts=1 if stop == "breaker" else 100)):
        if stop == "breaker":
            await harness.node("gpu-2")
            await ask(harness, "first", node="gpu-2")
            await until(lambda: "reboot gpu-2" in harness.ran)
        await ask(harness, template="no-such" if stop == "unknown" else "reboot")
        await until(lambda: harness.reasons("gpu-1") == [reason])
        await until(lambda: asked(harness).get("message", "").startswith(f"held: {reason}: "))
        await harness.quiet()
        assert asked(harness)["phase"] == "Pending"
    assert "reboot gpu-1" not in harness.ran
    assert names.CASE_TAINT not in harness.taints("gpu-1")


async def test_the_second_operation_on_a_node_waits_until_the_first_has_given_it_back(harness) -> None:
    await harness.node("gpu-1")
    harness.answer("reboot", RUNS, REBOOTED)
    async with running(harness):
        await ask(harness, "first")
        await until(lambda: "reboot gpu-1" in harness.ran)
        await ask(harness, "second")
        await until(lambda: "held: NodeBusy" in asked(harness, "second").get("message", ""))
        await harness.finish("reboot", REBOOTED)
        await until(lambda: ended(harness, "second") == "Succeeded" and harness.clean("gpu-1"))
    assert ended(harness, "first") == "Succeeded"
    assert harness.ran.count("reboot gpu-1") == 2


@pytest.mark.parametrize("moment", ["held", "operating"])
async def test_whoever_deletes_their_operation_cancels_its_case(harness, moment: str) -> None:
    await harness.node("gpu-1", **{"exclude": "true"} if moment == "held" else {})
    harness.answer("reboot", RUNS)
    async with running(harness):
        await ask(harness)
        await until(lambda: harness.reasons("gpu-1") if moment == "held" else "reboot gpu-1" in harness.ran)
        await harness.client.delete(OPERATIONS, "by-hand")
        if moment == "operating":
            await harness.quiet()
            assert harness.phase("gpu-1") == "Operating", "what runs on a node runs to its end"
            await harness.finish("reboot", REBOOTED)
        await until(lambda: harness.ended("gpu-1", "Cancelled"))
    assert harness.cases("gpu-1")[0]["status"]["reason"] == "OperationDeleted"


async def test_whoever_deletes_its_case_cancels_the_operation_for_good(harness) -> None:
    await harness.node("gpu-1", exclude="true")
    async with running(harness):
        await ask(harness)
        await until(lambda: harness.reasons("gpu-1"))
        await harness.delete_case("gpu-1")
        await until(lambda: ended(harness) == "Cancelled" and not harness.cases("gpu-1"))
        assert asked(harness)["reason"] == "CaseDeleted"
        await harness.quiet()
        assert harness.cases("gpu-1") == []


async def test_a_case_that_was_taken_away_by_force_is_not_opened_again(harness) -> None:
    await harness.node("gpu-1", exclude="true")
    async with running(harness):
        await ask(harness)
        await until(lambda: harness.reasons("gpu-1") and asked(harness).get("caseName"))
        name = harness.cases("gpu-1")[0]["metadata"]["name"]
    await harness.change(CASES, name, metadata={"finalizers": None})
    await harness.client.delete(CASES, name)
    async with running(harness):
        await until(lambda: ended(harness))
        await harness.quiet()
    assert (ended(harness), asked(harness)["reason"], harness.cases("gpu-1")) == ("Cancelled", "CaseGone", [])


async def test_an_operation_on_a_node_of_another_uid_is_refused(harness) -> None:
    await harness.node("gpu-1")
    async with running(harness):
        await ask(harness, nodeUID="another")
        await until(lambda: ended(harness) == "Refused")
    assert asked(harness)["message"] == (
        "no node gpu-1 with the uid another; write metadata.uid of the node into spec.nodeUID of another NodeOperation"
    )
    assert harness.cases("gpu-1") == []


async def test_a_controller_that_dies_after_any_write_carries_it_out_once(harness) -> None:
    await harness.node("gpu-1")
    harness.answer("reboot", REBOOTED, DONE)
    await ask(harness)
    for number in range(30):
        if ended(harness):
            break
        writes = len(harness.server.audit)
        async with running(harness, f"replica-{number}"):
            await until(lambda writes=writes: ended(harness) or len(harness.server.audit) > writes + 12)
    async with running(harness, "last"):
        await until(lambda: ended(harness) and harness.clean("gpu-1"))
    assert (len(harness.cases("gpu-1")), harness.ran.count("reboot gpu-1")) == (1, 1)


async def test_who_holds_and_who_releases_a_case_is_told(harness) -> None:
    await harness.node("gpu-1", "True")
    await harness.policy(ladder=[{"operation": "reboot", "attempts": 1}])
    harness.answer("reboot", Answer(exit=1, message="failed"))
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        await harness.edit_case("gpu-1", release=True, releaseSetBy=ALICE)
        await until(lambda: harness.ended("gpu-1", "Escalated"))
        assert harness.cases("gpu-1")[0]["status"]["message"] == (
            f"node gpu-1 is given back: spec.release is true, set by {ALICE}"
        )
