"""DeviceInventory, NodeInventory, DevicesMissing: what a node had is known after it has gone, and blocks its return."""

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from remediator.controller.node_conditions import inventories
from remediator.core.device_count import DEVICE_INVENTORY, DEVICES_MISSING
from remediator.core.names import GROUP
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator_sim.apiserver.store import Entry
from tests.harness.controller import GPU, REBOOTED, Answer, controller_harness, now, reboot, running, stamp, until
from tests.harness.kinds import EVENTS, INVENTORIES, NODES

pytestmark = pytest.mark.sampled("inventories")

VERIFY = {"settle": "1s", "fresh": "1s", "timeout": "2s"}


@pytest.fixture
async def harness():
    async with controller_harness() as harness:
        yield harness


async def count(harness, node, message, status="True", at=None):
    """What the program on the node counts now."""
    times = {"lastTransitionTime": stamp(now()), "lastHeartbeatTime": stamp(at or harness._clock(node))}
    said = {"type": DEVICE_INVENTORY, "status": status, "reason": "Counted", "message": message}
    patch = {"status": {"conditions": [said | times]}}
    await harness.client.patch(NODES, node, patch, subresource="status", content_type=STRATEGIC_PATCH)


async def unreadable(harness, **status):
    """An inventory of gpu-1 that another version has written."""
    await harness.make(INVENTORIES, "gpu-1", nodeName="gpu-1")
    entries = harness.server.cluster.store.collection("nodeinventories.remediator.dev").entries
    for key, entry in entries.items():
        entries[key] = Entry({**entry.obj, "status": status}, entry.rv)


def learnt(harness, name="gpu-1"):
    """What is kept of a node; None where it has no inventory."""
    kept = next((one for one in harness.all(INVENTORIES) if one["metadata"]["name"] == name), None)
    return kept and kept.get("status", {}).get("counts")


def missing(harness, node="gpu-1"):
    """Status, reason and message of DevicesMissing; None where nothing is said."""
    conditions = harness.look(node)["status"]["conditions"]
    ours = next((one for one in conditions if one["type"] == DEVICES_MISSING), None)
    return ours and (ours["status"], ours["reason"], ours["message"])


async def test_the_most_that_a_node_had_is_kept_and_what_it_lacks_is_a_condition(harness):
    await harness.node("gpu-1")
    await count(harness, "gpu-1", "gpus=8 nics=2 digest=0123abcd")
    async with running(harness):
        await until(lambda: learnt(harness) == {"gpus": 8, "nics": 2})
        await harness.quiet()
        assert missing(harness) is None, "of a node that lacks nothing nothing is written"
        await count(harness, "gpu-1", "gpus=7 nics=3 digest=0123abce")
        lacks = ("True", "GpusMissing", "fewer than known: gpus 7 of 8")
        await until(lambda: missing(harness) == lacks)
        assert learnt(harness) == {"gpus": 8, "nics": 3}
        await count(harness, "gpu-1", "gpus=8 nics=3 digest=0123abcd")
        await until(lambda: missing(harness)[0] == "False")


async def test_a_kind_that_is_expected_and_that_nothing_counts_is_logged_once_however_many_nodes_it_is_about(harness):
    with capture_logs() as logs:
        for node in ("gpu-1", "gpu-2"):
            await harness.node(node, pool="h100")
            await count(harness, node, "gpus=8 dpus=1")
        pool = {"matchLabels": {f"{GROUP}/pool": "h100"}}
        await harness.make(INVENTORIES, "h100", nodeSelector=pool, expected={"gpus": 8, "nic": 9, "dpus": 1})
        async with running(harness):
            await until(lambda: learnt(harness) and learnt(harness, "gpu-2"))
            await harness.quiet()
    because = [entry["because"] for entry in logs if entry["event"] == "an inventory expects what nothing counts"]
    assert because == ["NodeInventory h100: spec.expected.nic: nothing counts this kind; did you mean nics?"]


async def test_what_cannot_be_counted_is_neither_learnt_nor_missed(harness):
    await harness.node("gpu-1")
    await count(harness, "gpu-1", "gpus=8")
    async with running(harness):
        await until(lambda: learnt(harness) == {"gpus": 8})
        await count(harness, "gpu-1", "/sys cannot be read", status="Unknown")
        await harness.quiet()
        await count(harness, "gpu-1", "no count at all")
        await harness.quiet()
        assert (missing(harness), learnt(harness)) == (None, {"gpus": 8})


async def test_a_count_that_was_stale_and_says_the_same_again_is_learnt(harness, monkeypatch):
    monkeypatch.setattr(inventories, "BEAT", timedelta(seconds=0.1))
    harness.silent.add(DEVICE_INVENTORY)
    await harness.node("gpu-1")
    await count(harness, "gpu-1", "gpus=8", at=now() - timedelta(minutes=16))
    async with running(harness):
        await harness.quiet()
        assert learnt(harness) is None
        await count(harness, "gpu-1", "gpus=8")
        await until(lambda: learnt(harness) == {"gpus": 8}, 10)


async def test_a_user_has_a_device_forgotten_that_was_taken_out_for_good(harness):
    await harness.node("gpu-1")
    await count(harness, "gpu-1", "gpus=8")
    async with running(harness):
        await until(lambda: learnt(harness) == {"gpus": 8})
        await count(harness, "gpu-1", "gpus=7")
        await until(lambda: missing(harness) and missing(harness)[0] == "True")
        await harness.change(
            INVENTORIES, "gpu-1", spec={"nodeName": "gpu-1", "forgetBefore": stamp(now() + timedelta(seconds=1))}
        )
        await until(lambda: learnt(harness) == {"gpus": 7})
        await until(lambda: missing(harness)[0] == "False")


async def test_a_group_says_how_many_its_nodes_must_have_from_the_first_boot_on(harness):
    group = {"nodeSelector": {"matchLabels": {"remediator.dev/pool": "h100"}}, "expected": {"gpus": 8}}
    await harness.make(INVENTORIES, "h100-nodes", **group)
    await harness.node("gpu-1", pool="h100")
    await harness.node("gpu-2", pool="a100")
    for node in ("gpu-1", "gpu-2"):
        await count(harness, node, "gpus=7")
    async with running(harness):
        await until(lambda: missing(harness) == ("True", "GpusMissing", "fewer than known: gpus 7 of 8"))
        await until(lambda: learnt(harness, "gpu-2") == {"gpus": 7})
        assert missing(harness, "gpu-2") is None


async def test_a_node_whose_name_the_inventory_of_a_group_has_is_told_of_and_the_count_of_the_group_holds(harness):
    group = {"nodeSelector": {"matchLabels": {"remediator.dev/pool": "h100"}}, "expected": {"gpus": 8}}
    await harness.make(INVENTORIES, "gpu-1", **group)
    for node in ("gpu-1", "gpu-2"):
        await harness.node(node, pool="h100")
        await count(harness, node, "gpus=7")
    async with running(harness):
        await until(lambda: learnt(harness, "gpu-2") == {"gpus": 7})
        await until(lambda: harness.all(EVENTS))
        lacks = ("True", "GpusMissing", "fewer than known: gpus 7 of 8")
        await until(lambda: missing(harness) == missing(harness, "gpu-2") == lacks)
        (event,) = harness.all(EVENTS)
        assert (event["involvedObject"]["name"], event["reason"], event["type"]) == (
            "gpu-1",
            "InventoryNameTaken",
            "Warning",
        )
        assert "nothing is learnt of the node gpu-1: give the inventory of the group another name" in event["message"]
        assert (event["metadata"]["namespace"], learnt(harness)) == ("default", None)


async def test_what_is_known_outlives_the_node_for_it_may_register_again(harness):
    await harness.node("gpu-1")
    await count(harness, "gpu-1", "gpus=8")
    async with running(harness):
        await until(lambda: learnt(harness) == {"gpus": 8})
        await harness.client.delete(NODES, "gpu-1")
        await until(lambda: harness.all(INVENTORIES)[0]["status"].get("nodeGoneSince"))
        await harness.node("gpu-1")
        await count(harness, "gpu-1", "gpus=7")
        await until(lambda: missing(harness) == ("True", "GpusMissing", "fewer than known: gpus 7 of 8"))
        assert "nodeGoneSince" not in harness.all(INVENTORIES)[0]["status"]


@pytest.mark.parametrize(
    ("board", "lacks"),
    [("board-1", ("True", "GpusMissing", "fewer than known: gpus 0 of 8")), ("board-2", None)],
    ids=["the same machine", "another machine under its name"],
)
async def test_a_machine_that_registers_under_the_name_of_another_one_lacks_nothing_that_the_other_had(
    harness, board, lacks
):
    await harness.node("gpu-1")
    await harness.machine("gpu-1", "system-1", "board-1")
    await count(harness, "gpu-1", "gpus=8 nics=9")
    async with running(harness):
        await until(lambda: learnt(harness) == {"gpus": 8, "nics": 9})
        await harness.client.delete(NODES, "gpu-1")
        await until(lambda: harness.all(INVENTORIES)[0]["status"].get("nodeGoneSince"))
        hour_ago = {"status": {"since": stamp(now() - timedelta(hours=1))}}
        await harness.client.patch(INVENTORIES, "gpu-1", hour_ago, subresource="status")
        await harness.node("gpu-1")
        await harness.machine("gpu-1", "system-2", board)
        await count(harness, "gpu-1", "gpus=0 nics=9")
        await until(lambda: "nodeGoneSince" not in harness.all(INVENTORIES)[0]["status"])
        await harness.quiet()
        assert missing(harness) == lacks
        assert learnt(harness) == {"gpus": 8 if lacks else 0, "nics": 9}
        assert ("remediator.dev/gpu.present" in harness.look("gpu-1")["metadata"].get("labels", {})) == bool(lacks)


def reboots_into(message):
    """A reboot that cures the condition, after which the node counts this."""

    async def does(harness, node):
        await reboot(harness, node)
        await count(harness, node, message)

    return Answer(exit=REBOOTED.exit, does=does)


@pytest.mark.parametrize(
    ("after", "phase"),
    [("gpus=7", "Escalated"), ("gpus=8", "Recovered")],
    ids=["a GPU does not come back", "all are back"],
)
async def test_a_node_that_has_lost_a_device_in_its_reboot_does_not_come_back(harness, after, phase):
    await harness.policy(verify=VERIFY, ladder=[{"operation": "reboot", "attempts": 1}])
    harness.answer("reboot", reboots_into(after))
    await harness.node("gpu-1")
    await count(harness, "gpu-1", "gpus=8")
    async with running(harness):
        await until(lambda: learnt(harness) == {"gpus": 8})
        await harness.condition("gpu-1", "True")
        await until(lambda: harness.phase("gpu-1") == phase or harness.ended("gpu-1", phase))
        case = harness.cases("gpu-1")[0]["status"]
    assert ("gpu-1 has fewer devices than before: gpus 7 of 8" in case["message"]) == (phase == "Escalated")


@pytest.mark.parametrize("after", ["gpus=? nics=2", "nics=2"], ids=["not read", "not counted any more"])
async def test_a_node_that_could_not_count_its_gpus_since_its_reboot_is_given_to_a_person(harness, after):
    await harness.policy(verify=VERIFY, ladder=[{"operation": "reboot", "attempts": 1}])
    harness.answer("reboot", reboots_into(after))
    await harness.node("gpu-1")
    await count(harness, "gpu-1", "gpus=8 nics=2")
    async with running(harness):
        await until(lambda: learnt(harness) == {"gpus": 8, "nics": 2})
        await harness.condition("gpu-1", "True")
        await until(lambda: harness.phase("gpu-1") == "Escalated" or harness.ended("gpu-1", "Recovered"))
        case = harness.cases("gpu-1")[0]["status"]
    assert case["reason"] == "HealthUnknown"
    assert "gpu-1 could not count its gpus since: look at its detector device_inventory" in case["message"]
    assert ("; it names no gpus: if that is for good, say 0 in spec.expected" in case["message"]) == ("?" not in after)
    assert ("(remediator inventory gpu-1 --reset)" in case["message"]) == ("?" not in after)
    assert harness.look("gpu-1")["spec"]["unschedulable"], "nobody knows whether all GPUs have come back"


async def test_gpus_that_could_not_be_counted_end_no_fault_and_are_not_forgotten(harness):
    await harness.node("gpu-1")
    await count(harness, "gpu-1", "gpus=8 nics=2")
    async with running(harness):
        await until(lambda: learnt(harness) == {"gpus": 8, "nics": 2})
        await count(harness, "gpu-1", "gpus=7 nics=2")
        await until(lambda: missing(harness) and missing(harness)[0] == "True")
        await count(harness, "gpu-1", "gpus=? nics=2")
        await until(lambda: missing(harness)[0] != "True")
        assert missing(harness) == ("Unknown", "DevicesUnread", "the node could not count its gpus")
        assert learnt(harness) == {"gpus": 8, "nics": 2}


async def test_a_node_that_lacks_a_device_after_a_boot_is_booted_again_where_its_ladder_says_so(harness):
    await harness.policy(verify=VERIFY, ladder=[{"operation": "reboot", "attempts": 2}])
    harness.answer("reboot", reboots_into("ports=7"), reboots_into("ports=8"))
    await harness.node("gpu-1")
    await count(harness, "gpu-1", "ports=8")
    async with running(harness):
        await until(lambda: learnt(harness) == {"ports": 8})
        await harness.condition("gpu-1", "True")
        await until(lambda: harness.ended("gpu-1", "Recovered") or harness.phase("gpu-1") == "Escalated")
        attempts = harness.cases("gpu-1")[0]["status"]["attempts"]
    assert [attempt["outcome"] for attempt in attempts] == ["Succeeded", "Succeeded"]


async def test_a_node_whose_clock_is_ten_minutes_behind_does_not_come_back_with_fewer_devices(harness):
    await harness.policy(verify=VERIFY, ladder=[{"operation": "reboot", "attempts": 1}])
    harness.answer("reboot", reboots_into("gpus=7"))
    harness.set_clock("gpu-1", timedelta(minutes=-10))
    await harness.node("gpu-1")
    await count(harness, "gpu-1", "gpus=8")
    async with running(harness):
        await until(lambda: learnt(harness) == {"gpus": 8})
        for kind in ("Ready", GPU):
            await harness.condition("gpu-1", "True", kind, since=now() - timedelta(hours=1))
        await until(lambda: harness.phase("gpu-1") == "Escalated" or harness.ended("gpu-1", "Recovered"))
        assert "fewer devices than before: gpus 7 of 8" in harness.cases("gpu-1")[0]["status"]["message"]


async def test_an_inventory_that_cannot_be_read_gives_no_node_back_and_is_not_written(harness):
    await harness.policy(verify=VERIFY, ladder=[{"operation": "reboot", "attempts": 1}])
    harness.answer("reboot", reboots_into("gpus=7"))
    await harness.node("gpu-1")
    await count(harness, "gpu-1", "gpus=8")
    await unreadable(harness, counts={"gpus": "eight"})
    async with running(harness) as controller:
        await until(lambda: controller.cache.inventories.unreadable() == 1)
        await harness.condition("gpu-1", "True")
        await until(lambda: harness.phase("gpu-1") == "Escalated" or harness.ended("gpu-1", "Recovered"))
        case = harness.cases("gpu-1")[0]["status"]
    assert case["reason"] == "HealthUnknown"
    assert "the NodeInventory gpu-1 cannot be read: correct it, or delete it" in case["message"]
    assert learnt(harness) == {"gpus": "eight"}


async def test_a_node_that_counted_and_has_not_since_its_reboot_is_given_to_a_person_and_back_once_it_counts(harness):
    await harness.policy(
        verify=VERIFY, ladder=[{"operation": "reboot", "attempts": 1}], escalation={"release": "WhenHealthy"}
    )
    harness.answer("reboot", REBOOTED)
    harness.silent.add(DEVICE_INVENTORY)
    await harness.node("gpu-1")
    await count(harness, "gpu-1", "gpus=8")
    async with running(harness):
        await until(lambda: learnt(harness) == {"gpus": 8})
        await harness.condition("gpu-1", "True")
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        case = harness.cases("gpu-1")[0]["status"]
        assert case["reason"] == "HealthUnknown"
        assert "gpu-1 has not counted its devices since: look at its detector device_inventory" in case["message"]
        assert harness.look("gpu-1")["spec"]["unschedulable"], "nobody knows whether all GPUs have come back"
        await count(harness, "gpu-1", "gpus=8")
        await until(lambda: harness.ended("gpu-1", "Escalated"))


async def test_a_detector_that_was_taken_away_long_before_the_case_keeps_no_node(harness):
    await harness.policy(verify=VERIFY, ladder=[{"operation": "reboot", "attempts": 1}])
    harness.answer("reboot", REBOOTED)
    harness.silent.add(DEVICE_INVENTORY)
    await harness.node("gpu-1")
    await count(harness, "gpu-1", "gpus=8")
    async with running(harness):
        await until(lambda: learnt(harness) == {"gpus": 8})
        await count(harness, "gpu-1", "gpus=8", at=now() - timedelta(hours=2))
        await harness.condition("gpu-1", "True")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
