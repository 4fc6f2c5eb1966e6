"""Alert/NAME: an alert that Alertmanagers list becomes a Condition, and policies act on it as on any other."""

from datetime import timedelta

import pytest

from remediator.controller.node_conditions import alerts
from remediator.prometheus.alerts import Alertmanagers
from tests.harness.alertmanager import AWAY, PlayedAlertmanager, listed
from tests.harness.controller import Answer, controller_harness, running, until
from tests.harness.kinds import POLICIES
from tests.harness.tickets import fires

pytestmark = pytest.mark.sampled("alerts")

TYPE = "Alert/NodeGpuXid"
ASKS = {"when": [{"alert": "NodeGpuXid", "for": "0s"}]}
XID = listed(fires("NodeGpuXid", node="gpu-1"), receiver="other")


@pytest.fixture
async def harness(monkeypatch):
    """Looks follow each other at once, and what is missing for half a second has ended."""
    monkeypatch.setattr(alerts, "EVERY", 0.05)
    monkeypatch.setattr(alerts, "QUIET", timedelta(seconds=0.5))
    async with controller_harness() as harness:
        yield harness


@pytest.fixture
def pair():
    return PlayedAlertmanager(), PlayedAlertmanager()


def condition(harness, node="gpu-1"):
    """Status and reason; None where nothing is said."""
    conditions = harness.look(node)["status"]["conditions"]
    ours = next((entry for entry in conditions if entry["type"] == TYPE), None)
    return ours and (ours["status"], ours["reason"])


async def test_an_alert_opens_a_case_which_recovers_once_it_has_stopped_firing(harness, pair):
    async def cured(harness, node):
        await harness.boot(node)
        pair[1].lists()

    harness.answer("reboot", Answer(exit=137, does=cured))
    await harness.policy("gpu-xid", **ASKS)
    await harness.node("gpu-1")
    pair[1].lists(XID)  # firing in one is firing
    async with running(harness, alertmanagers=Alertmanagers(pair, "remediator")):
        case = await until(lambda: next(iter(harness.cases("gpu-1")), None))
        assert condition(harness) == ("True", "Firing")
        trigger = case["spec"]["trigger"]
        assert (trigger["condition"], trigger["message"]) == (TYPE, "alert NodeGpuXid fires")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        assert condition(harness) == ("False", "NotFiring")
        assert harness.look("gpu-1")["spec"].get("unschedulable") is not True


async def test_while_one_alertmanager_cannot_tell_a_case_is_not_over(harness, pair):
    async def unheard(harness, node):
        await harness.boot(node)
        pair[0].reply = AWAY
        pair[1].lists()

    harness.answer("reboot", Answer(exit=137, does=unheard))
    await harness.policy("gpu-xid", **ASKS)
    await harness.node("gpu-1")
    pair[1].lists(XID)
    async with running(harness, alertmanagers=Alertmanagers(pair, "remediator")):
        await until(lambda: pair[0].reply is AWAY)
        asked = pair[0].asked
        await until(lambda: pair[0].asked > asked + 20)  # a second, in which half a second would have ended it
        assert condition(harness) == ("True", "Firing")
        assert not harness.ended("gpu-1", "Recovered")
        pair[0].lists()
        await until(lambda: harness.ended("gpu-1", "Recovered"))


UNTOLD = {
    "silenced": listed(fires("NodeGpuXid", node="gpu-1"), "suppressed"),
    "another alert": listed(fires("NodeDown", node="gpu-1")),
    "a node that is not there": listed(fires("NodeGpuXid", node="gpu-99")),
    "a node that the policy does not select": listed(fires("NodeGpuXid", node="system-1")),
}


@pytest.mark.parametrize("alert", UNTOLD.values(), ids=UNTOLD.keys())
async def test_an_alert_that_is_not_for_the_policy_writes_nothing(harness, pair, alert):
    await harness.policy("gpu-xid", **ASKS)
    await harness.node("gpu-1")
    pair[0].lists(alert)
    async with running(harness, alertmanagers=Alertmanagers(pair, "remediator")):
        await until(lambda: pair[0].asked > 3)
        await harness.quiet()
    assert condition(harness) is None
    assert condition(harness, "system-1") is None
    assert not list(harness.cases("gpu-1"))


async def test_where_no_policy_asks_for_an_alert_no_alertmanager_is_asked(harness, pair):
    await harness.policy("gpu-lost")
    await harness.node("gpu-1")
    async with running(harness, alertmanagers=Alertmanagers(pair, "remediator")):
        await harness.quiet()
        assert pair[0].asked == 0
        await harness.change(POLICIES, "gpu-lost", spec=ASKS)
        await until(lambda: pair[0].asked)


async def test_a_policy_says_that_nobody_is_asked(harness):
    await harness.policy("gpu-xid", **ASKS)
    async with running(harness):
        ready = await until(lambda: _ready(harness, "gpu-xid"))
    assert (ready["status"], ready["reason"]) == ("False", "NoAlertmanager")
    assert "NodeGpuXid" in ready["message"]
    assert "--alertmanager-url" in ready["message"]


async def _ready(harness, name):
    policy = await harness.client.get(POLICIES, name)
    return next(iter(policy.get("status", {}).get("conditions", [])), None)
