"""An upgrade brings a new criterion: older policies show it and disturb nobody, until a user trusts it."""

from datetime import timedelta

import pytest

from remediator.clock import SYSTEM
from remediator.core import names, new_criteria
from remediator.core.new_criteria import Criterion
from remediator.core.quiet import QuietRule
from tests.harness.controller import running, until
from tests.harness.kinds import EVENTS, POLICIES

SIX = [f"gpu-{number}" for number in range(6)]
TRUSTED = {"annotations": {names.TRUSTED_CRITERIA: "LinkNew"}}


@pytest.fixture(autouse=True)
def table(monkeypatch):
    """LinkNew is new."""
    monkeypatch.setattr(new_criteria, "TABLE", (Criterion("LinkNew", "9.1.0"),))


class AnHourAgo:
    """The clock of an API server at which a policy was made before the upgrade."""

    def wall(self):
        return SYSTEM.wall() - timedelta(hours=1)


async def older_policy(harness, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(harness.server.cluster, "_clock", AnHourAgo())
        await harness.policy("links", when=[{"condition": "LinkNew", "for": "0s"}])


async def fleet(harness, sick):
    for number, node in enumerate(SIX):
        await harness.node(node)
        await harness.condition(node, "True" if number < sick else "False", "LinkNew")


def states(harness):
    (policy,) = [each for each in harness.all(POLICIES) if each["metadata"]["name"] == "links"]
    return [row["state"] for row in policy.get("status", {}).get("criteria", [])]


def held_by(harness, reason):
    return [node for node in SIX if harness.reasons(node) == [reason]]


def untouched(harness):
    return not harness.ran and not harness.claims() and not any(map(harness.taints, SIX))


async def test_a_new_criterion_on_half_of_the_fleet_disturbs_nobody_and_is_told_whoever_leads(harness, monkeypatch):
    await older_policy(harness, monkeypatch)
    await fleet(harness, sick=3)
    for leader in ("one", "two"):
        async with running(harness, leader):
            await until(lambda: len(held_by(harness, "CriterionMuted")) == 3)
            await until(lambda: states(harness) == ["Muted"])
            await harness.quiet()
        assert untouched(harness)
    told = [each for each in harness.all(EVENTS) if each["reason"] == "CriterionMuted"]
    (event,) = [each for each in told if each["involvedObject"]["kind"] == "RemediationPolicy"]
    assert event["involvedObject"]["name"] == "links"


async def test_one_node_is_held_until_a_user_trusts_the_criterion_and_then_repaired(harness, monkeypatch):
    await older_policy(harness, monkeypatch)
    await fleet(harness, sick=1)
    async with running(harness, "one"):
        await until(lambda: held_by(harness, "NewCriterion") == ["gpu-0"])
        await until(lambda: states(harness) == ["Quiet"])
        await harness.quiet()
        assert untouched(harness)
    async with running(harness, "two"):
        await harness.quiet()
        assert untouched(harness)
        await harness.change(POLICIES, "links", metadata=TRUSTED)
        await until(lambda: any(ran.startswith("reboot") for ran in harness.ran), 40)
        await until(lambda: states(harness) == ["Acts"])


async def test_a_policy_that_was_written_after_the_upgrade_acts_at_once(harness):
    await harness.policy("links", when=[{"condition": "LinkNew", "for": "0s"}])
    await fleet(harness, sick=1)
    async with running(harness):
        await until(lambda: any(ran.startswith("reboot") for ran in harness.ran), 40)
    assert states(harness) == ["Acts"]


async def test_with_a_period_of_0_an_older_policy_acts_at_once(harness, monkeypatch):
    await older_policy(harness, monkeypatch)
    await fleet(harness, sick=1)
    async with running(harness, quiet=QuietRule(timedelta())):
        await until(lambda: any(ran.startswith("reboot") for ran in harness.ran), 40)
