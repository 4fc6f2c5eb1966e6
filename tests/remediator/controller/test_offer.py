"""A case that a person has says when its node is healthy, and is released by itself where its policy says so."""

from datetime import timedelta

import pytest

from remediator.clock import SYSTEM
from remediator.controller.explain import explain, snapshot
from remediator.core import names
from remediator.core.breaker import Breaker
from tests.harness.controller import REBOOTED, Answer, cure, now, running, until
from tests.harness.kinds import NODES, POLICIES

pytestmark = pytest.mark.sampled("offer")

FAILED = Answer(exit=1, message="the kernel did not come up")
ONCE = [{"operation": "reboot", "attempts": 1}]
WHEN_HEALTHY = {"release": "WhenHealthy"}
WRONG, FINE = Answer(exit=1, message="GPU 3 multiplies wrongly"), Answer(message="8 GPUs compute")


async def escalated(harness, **spec):
    """A policy, and a node whose one reboot has failed."""
    await harness.policy(**{"ladder": ONCE} | spec)
    harness.answer("reboot", FAILED)
    await harness.node("gpu-1")
    await harness.condition("gpu-1", "True", since=now() - timedelta(minutes=1))


def since(harness):
    """What the case says of its node's health."""
    return harness.cases("gpu-1")[-1]["status"].get("healthySince")


async def test_a_node_that_becomes_healthy_is_offered_and_stays_out_until_a_person_releases_it(harness):
    await escalated(harness)
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated" and not harness.pods())
        await harness.quiet()
        assert since(harness) is None
        await harness.condition("gpu-1", "False")
        await until(lambda: since(harness))
        assert harness.story("gpu-1")[-1] == "HealthyAgain"
        name = harness.cases("gpu-1")[0]["metadata"]["name"]
        told = harness.cases("gpu-1")[0]["status"]["timeline"][-1]["message"]
        assert told.endswith(f'kubectl patch noderemediation {name} --type=merge -p \'{{"spec":{{"release":true}}}}\'')
        assert harness.cases("gpu-1")[0]["status"]["reason"] == "LadderExhausted", "why a person was called stays"
        cache = await snapshot(harness.client, harness.namespaces, SYSTEM)
        lines = [line.strip() for line in explain(cache, cache.nodes.get("gpu-1"), Breaker(), now())]
        assert told in lines, lines
        await harness.quiet()
        assert harness.taints("gpu-1") == [names.CASE_TAINT]
        await harness.edit_case("gpu-1", release=True)
        await until(lambda: harness.ended("gpu-1", "Escalated"))
    assert harness.story("gpu-1")[-1] == "ReleasedByUser"


async def test_an_offer_is_taken_back_when_the_fault_comes_back_and_the_timeline_says_it_once(harness):
    await escalated(harness)
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        for _ in range(3):
            await harness.condition("gpu-1", "False")
            await until(lambda: since(harness))
            await harness.condition("gpu-1", "True")
            await until(lambda: not since(harness))
    assert harness.story("gpu-1").count("HealthyAgain") == 1


async def test_where_the_policy_says_so_a_node_that_has_proven_its_health_is_given_back_by_itself(harness):
    await escalated(harness, escalation=WHEN_HEALTHY)
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        await harness.quiet()
        await harness.condition("gpu-1", "False")
        await until(lambda: harness.ended("gpu-1", "Escalated"))
    assert harness.story("gpu-1")[-1] == "ReleasedHealthy"
    assert "the policy gives the node back by itself" in harness.cases("gpu-1")[0]["status"]["message"]


SHUT = [{"cron": "0 0 29 2 *", "duration": "1m"}]


@pytest.mark.parametrize("gate", [{"windows": SHUT}, {"approval": "Required"}], ids=lambda gate: next(iter(gate)))
async def test_what_a_policy_makes_starts_wait_for_keeps_no_release_back(harness, gate):
    """The case has rungs left, as one whose health could not be proven in time."""
    await escalated(harness, escalation=WHEN_HEALTHY)
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        await harness.quiet()
        again = {"ladder": [{"operation": "reboot", "attempts": 2}]}
        await harness.change(POLICIES, "gpu-lost", spec=again | gate)
        await harness.condition("gpu-1", "False")
        await until(lambda: harness.ended("gpu-1", "Escalated"))
    assert harness.story("gpu-1")[-1] == "ReleasedHealthy"


@pytest.mark.parametrize("stop", ["hold", "excluded", "paused"])
async def test_nothing_is_released_by_itself_that_a_user_stops(harness, stop):
    await escalated(harness, escalation=WHEN_HEALTHY)
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated" and not harness.pods())
        if stop == "hold":
            await harness.edit_case("gpu-1", hold=True)
        elif stop == "excluded":
            await harness.change(NODES, "gpu-1", metadata={"labels": {names.EXCLUDE: "true"}})
        else:
            await harness.change(POLICIES, "gpu-lost", spec={"mode": "Paused"})
        await harness.quiet()
        await harness.condition("gpu-1", "False")
        await until(lambda: since(harness))
        await harness.quiet()
        assert harness.taints("gpu-1") == [names.CASE_TAINT]


async def test_a_node_that_is_unhealthy_again_after_it_was_given_back_by_itself_goes_to_a_person(harness):
    await escalated(harness, escalation=WHEN_HEALTHY)
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        await harness.condition("gpu-1", "False")
        await until(lambda: harness.ended("gpu-1", "Escalated"))
        await harness.condition("gpu-1", "True")
        await until(lambda: len(harness.cases("gpu-1")) == 2 and harness.phase("gpu-1") == "Escalated")
        await harness.condition("gpu-1", "False")
        await until(lambda: since(harness))
        await harness.quiet()
        assert harness.taints("gpu-1") == [names.CASE_TAINT], "not a second time"


@pytest.mark.parametrize("answer", [WRONG, FINE])
async def test_a_release_by_itself_needs_the_probe_of_a_recovery(harness, answer):
    await harness.template("gpu-check")
    verify = {"settle": "1s", "fresh": "1s", "timeout": "30s", "probe": "gpu-check"}
    await escalated(harness, escalation=WHEN_HEALTHY, verify=verify)
    harness.answer("gpu-check", answer)
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        assert "gpu-check gpu-1" not in harness.ran
        await harness.condition("gpu-1", "False")
        await until(lambda: "gpu-check gpu-1" in harness.ran)
        if answer is FINE:
            await until(lambda: harness.ended("gpu-1", "Escalated"))
            assert harness.story("gpu-1")[-1] == "ReleasedHealthy"
            return
        await until(lambda: not harness.pods())
        await harness.quiet()
        assert (harness.phase("gpu-1"), harness.ran.count("gpu-check gpu-1")) == ("Escalated", 1), "once in each boot"
        assert harness.cases("gpu-1")[0]["status"]["reason"] == "LadderExhausted"
        harness.answer("gpu-check", FINE)
        await REBOOTED.does(harness, "gpu-1")
        await until(lambda: harness.ended("gpu-1", "Escalated"))


async def test_a_case_that_a_person_lets_try_again_begins_on_its_last_rung_and_stays_out_until_it_is_cured(harness):
    ladder = [{"operation": "reset-gpu", "attempts": 1}, {"operation": "reboot", "attempts": 1}]
    await harness.template("reset-gpu")
    harness.answer("reset-gpu", FAILED)
    await escalated(harness, ladder=ladder)
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        harness.answer("reboot", REBOOTED)
        await harness.edit_case("gpu-1", retry=1, retrySetBy="olga")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    status = harness.cases("gpu-1")[-1]["status"]
    assert [attempt["rung"] for attempt in status["attempts"]] == [1, 2, 2]
    assert status["retries"] == 1
    (told,) = (event["message"] for event in status["timeline"] if event["reason"] == "RetriedByUser")
    assert told == "spec.retry is 1, set by olga: it tries again from rung 2, reboot"


async def test_a_case_whose_attempts_are_spent_stays_with_the_person_and_says_what_to_raise(harness):
    await escalated(harness, attempts={"max": 1, "window": "24h"})
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        await harness.edit_case("gpu-1", retry=1)
        await until(lambda: harness.cases("gpu-1")[-1]["status"].get("retries") == 1)
        await harness.quiet()
        assert harness.phase("gpu-1") == "Escalated"
        status = harness.cases("gpu-1")[-1]["status"]
        assert status["reason"] == "AttemptsSpent"
        assert "raise attempts.max of policy gpu-lost, which is 1, then raise spec.retry again" in status["message"]
        assert len(status["attempts"]) == 1


async def test_a_case_that_is_held_waits_for_the_end_of_the_hold_before_it_tries_again(harness):
    await escalated(harness)
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        harness.answer("reboot", REBOOTED)
        await harness.edit_case("gpu-1", retry=1, hold=True)
        await until(lambda: harness.phase("gpu-1") == "Verifying")
        await harness.quiet()
        assert len(harness.cases("gpu-1")[-1]["status"]["attempts"]) == 1
        await harness.edit_case("gpu-1", hold=False)
        await until(lambda: harness.ended("gpu-1", "Recovered"))


@pytest.mark.parametrize(("turns", "attempts"), [("True", 2), ("False", 1)])
async def test_a_case_tries_again_only_once_it_is_known_whether_its_node_is_healthy(harness, turns, attempts):
    """Nothing starts and nothing ends meanwhile."""
    await escalated(harness)
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated" and not harness.pods())
        await harness.condition("gpu-1", "Unknown")
        harness.answer("reboot", REBOOTED)
        await harness.edit_case("gpu-1", retry=1)
        await until(lambda: harness.reasons("gpu-1") == ["HealthUnknown"])
        await harness.quiet()
        status = harness.cases("gpu-1")[-1]["status"]
        assert (status["phase"], len(status["attempts"])) == ("Verifying", 1)
        assert status["message"].startswith("GpuLost is Unknown; ")
        await harness.condition("gpu-1", turns)
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert len(harness.cases("gpu-1")[-1]["status"]["attempts"]) == attempts


OR_BY_HAND = "then raise spec.retry again; or repair the node by hand, then set spec.release of the case to true"


async def lose_the_ladder(harness):
    """As lint lets a user stop a policy."""
    await harness.change(POLICIES, "gpu-lost", spec={"ladder": [], "urgency": {"mode": "Never"}})


async def lose_the_policy(harness):
    await harness.client.delete(POLICIES, "gpu-lost")


async def spoil_the_policy(harness):
    """As a newer version writes it."""
    await harness.newer(POLICIES, "gpu-lost", spec={"mode": "EnforceGently"})


UNREADABLE = "run the version of Remediator that wrote it, or write it again for this version, "


@pytest.mark.parametrize(
    ("edit", "reason", "why"),
    [
        (spoil_the_policy, "PolicyUnreadable", f"policy gpu-lost cannot be read: {UNREADABLE}"),
        (lose_the_ladder, "LadderExhausted", "the ladder of policy gpu-lost is empty: write spec.ladder of it, "),
        (lose_the_policy, "PolicyMissing", "policy gpu-lost does not exist: create it again, "),
    ],
)
async def test_a_case_whose_policy_has_nothing_to_try_any_more_says_so_and_is_released(harness, edit, reason, why):
    await escalated(harness)
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated" and not harness.pods())
        await edit(harness)
        await harness.edit_case("gpu-1", retry=1, retrySetBy="olga")
        await until(lambda: harness.cases("gpu-1")[-1]["status"].get("retries") == 1)
        status = harness.cases("gpu-1")[-1]["status"]
        assert (status["phase"], status["reason"]) == ("Escalated", reason)
        assert status["message"] == f"a person must look: spec.retry is 1, set by olga, but {why}{OR_BY_HAND}"
        await harness.edit_case("gpu-1", release=True)
        await until(lambda: harness.ended("gpu-1", "Escalated"))
    assert harness.story("gpu-1")[-1] == "ReleasedByUser"


async def test_a_case_tries_again_on_the_last_rung_of_a_ladder_that_became_shorter(harness):
    ladder = [{"operation": "reset-gpu", "attempts": 1}, {"operation": "reboot", "attempts": 1}]
    await harness.template("reset-gpu")
    harness.answer("reset-gpu", FAILED)
    await escalated(harness, ladder=ladder)
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        await harness.change(POLICIES, "gpu-lost", spec={"ladder": ladder[:1]})
        harness.answer("reset-gpu", Answer(does=cure))
        await harness.edit_case("gpu-1", retry=1)
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert [attempt["rung"] for attempt in harness.cases("gpu-1")[-1]["status"]["attempts"]] == [1, 2, 1]
