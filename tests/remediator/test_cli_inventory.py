"""`remediator inventory`: what a node is known to have beside what it has, and how it is forgotten."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from remediator.core.device_count import DEVICE_INVENTORY
from tests.harness.cluster import MemoryCluster
from tests.harness.controller import stamp
from tests.harness.kinds import INVENTORIES, NODES
from tests.remediator.test_cli import beside


async def cluster(message: str, age: timedelta = timedelta(0), **expected: int) -> MemoryCluster:
    """gpu-1, which counts this and was once seen with eight GPUs and two cards."""
    made = MemoryCluster()
    at = stamp(datetime.now(UTC) - age)
    said = {"type": DEVICE_INVENTORY, "status": "True", "message": message, "lastHeartbeatTime": at}
    await made.client.create(NODES, {"metadata": {"name": "gpu-1"}})
    await made.client.patch(NODES, "gpu-1", {"status": {"conditions": [said]}}, subresource="status")
    await made.make(INVENTORIES, "gpu-1", nodeName="gpu-1", **({"expected": expected} if expected else {}))
    learnt = {"status": {"counts": {"gpus": 8, "nics": 2}, "since": "2026-01-01T00:00:00Z"}}
    await made.client.patch(INVENTORIES, "gpu-1", learnt, subresource="status")
    return made


async def asked(made: MemoryCluster, *args: str) -> tuple[int, str, str]:
    async with made.server.serve() as endpoint:
        return await beside("inventory", *args, "--kubeconfig", str(endpoint.kubeconfig))


async def test_what_is_missing_stands_first() -> None:
    code, out, err = await asked(await cluster("gpus=7 mounts=2/3 cpus=192"), "gpu-1")
    assert (code, err) == (0, "")
    first, *rows = out.splitlines()
    assert first == "gpu-1: gpus 7 of 8, mounts 2 of 3, and could not count its nics"
    assert [line.split() for line in rows] == [
        ["cpus", "192", "of", "unknown"],
        ["gpus", "7", "of", "8"],
        ["mounts", "2", "of", "3"],
        ["nics", "2", "expected,", "but", "could", "not", "be", "read", "now"],
    ]


async def test_a_kind_that_nothing_counts_is_told_in_the_first_line_and_is_not_one_that_could_not_be_read() -> None:
    made = await cluster("gpus=8", nvm=8)
    await made.client.patch(NODES, "gpu-1", {"metadata": {"labels": {"pool": "h100"}}})
    await made.make(INVENTORIES, "h100", nodeSelector={"matchLabels": {"pool": "h100"}}, expected={"nic": 9})
    _, out, _ = await asked(made, "gpu-1")
    assert out.splitlines()[:2] == [
        "NodeInventory gpu-1: spec.expected.nvm: nothing counts this kind; did you mean nvme?",
        "NodeInventory h100: spec.expected.nic: nothing counts this kind; did you mean nics?",
    ]
    assert [line.split(maxsplit=1) for line in out.splitlines()[3:]] == [
        ["gpus", "8 of 8"],
        ["nic", "9 expected, but nothing counts this kind"],
        ["nics", "2 expected, but could not be read now"],
        ["nvm", "8 expected, but nothing counts this kind"],
    ]
    _, out, _ = await asked(made, "gpu-1", "-o", "json")
    assert json.loads(out)["notCounted"] == {
        "nic": "nothing counts this kind",
        "nics": "could not be read now",
        "nvm": "nothing counts this kind",
    }


async def test_kinds_that_could_not_be_read_are_named_also_where_nobody_expects_any_and_by_json() -> None:
    made = await cluster("gpus=? mounts=? cpus=192 ports=?")
    code, out, err = await asked(made, "gpu-1")
    assert (code, err) == (0, "")
    assert [" ".join(line.split()) for line in out.splitlines()] == [
        "gpu-1: could not count its gpus, nics, mounts",
        "cpus 192 of unknown",
        "gpus 8 expected, but could not be read now",
        "mounts unknown expected, but could not be read now",
        "nics 2 expected, but could not be read now",
        "ports unknown expected, but could not be read now",
    ]
    told = json.loads((await asked(made, "gpu-1", "-o", "json"))[1])
    assert (told["unread"], told["lacking"], told["has"]) == (["gpus", "mounts", "nics", "ports"], {}, {"cpus": 192})


async def test_a_node_that_reads_all_has_no_kind_unread_and_of_one_that_is_silent_nobody_can_tell() -> None:
    for age, unread in ((timedelta(0), []), (timedelta(hours=1), None)):
        _, out, _ = await asked(await cluster("gpus=7 nics=2", age), "gpu-1", "-o", "json")
        assert json.loads(out)["unread"] == unread


async def test_a_user_may_expect_fewer_and_then_nothing_is_missing() -> None:
    code, out, _ = await asked(await cluster("gpus=7 nics=2", gpus=7), "gpu-1")
    assert (code, out.splitlines()[0]) == (0, "gpu-1: has what it is known to have")


async def test_a_count_of_an_hour_ago_says_nothing() -> None:
    code, out, _ = await asked(await cluster("gpus=7", timedelta(hours=1)), "gpu-1")
    assert (code, out.splitlines()[0]) == (0, "gpu-1: the node has not counted within 15 minutes")


async def test_of_a_node_that_is_silent_what_a_user_expects_of_it_and_its_group_stands_beside_what_was_learnt() -> None:
    made = await cluster("gpus=7", timedelta(hours=1), nvme=4)
    await made.client.patch(NODES, "gpu-1", {"metadata": {"labels": {"pool": "h100"}}})
    await made.make(INVENTORIES, "h100", nodeSelector={"matchLabels": {"pool": "h100"}}, expected={"nics": 9})
    _, out, _ = await asked(made, "gpu-1")
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["gpus", "8", "expected"],
        ["nics", "9", "expected"],
        ["nvme", "4", "expected"],
    ]
    _, out, _ = await asked(made, "gpu-1", "-o", "json")
    assert json.loads(out)["expected"] == {"gpus": 8, "nics": 9, "nvme": 4}


async def test_a_reset_of_a_node_of_which_nothing_is_known_says_so_and_fails() -> None:
    made = MemoryCluster()
    await made.client.create(NODES, {"metadata": {"name": "gpu-1"}})
    code, out, err = await asked(made, "gpu-1", "--reset")
    why = "its detector device_inventory has not counted yet"
    assert (code, out, " ".join(err.split())) == (
        2,
        "",
        f"remediator: nothing is known of gpu-1 that could be forgotten: {why}",
    )


async def test_a_reset_sets_the_time_before_which_all_is_forgotten_and_leaves_what_a_user_expects() -> None:
    made = await cluster("gpus=7", gpus=6)
    code, out, _ = await asked(made, "gpu-1", "--reset")
    assert (code, "is forgotten; it is learnt anew" in out) == (0, True)
    spec: dict[str, Any] = (await made.client.get(INVENTORIES, "gpu-1"))["spec"]
    assert spec["expected"] == {"gpus": 6}
    assert datetime.now(UTC) - datetime.fromisoformat(spec["forgetBefore"]) < timedelta(minutes=5)


async def test_a_node_that_nobody_knows_is_answered_with_the_nearest_name() -> None:
    code, _, err = await asked(await cluster("gpus=7"), "gpu-9")
    assert (code, err.strip()) == (
        1,
        "remediator: nothing is known of a node gpu-9: no node gpu-9 in the cluster; did you mean gpu-1?",
    )


async def test_the_inventory_of_a_group_that_has_the_name_of_the_node_is_told_of_and_is_not_reset() -> None:
    made = MemoryCluster()
    await made.client.create(NODES, {"metadata": {"name": "gpu-1"}})
    await made.make(INVENTORIES, "gpu-1", nodeSelector={"matchLabels": {"pool": "h100"}}, expected={"gpus": 8})
    code, out, _ = await asked(made, "gpu-1")
    remedy = "nothing is learnt of the node gpu-1: give the inventory of the group another name"
    assert (code, remedy in " ".join(out.split())) == (0, True)
    code, _, err = await asked(made, "gpu-1", "--reset")
    assert (code, remedy in " ".join(err.split())) == (2, True)
    assert "forgetBefore" not in (await made.client.get(INVENTORIES, "gpu-1"))["spec"]
