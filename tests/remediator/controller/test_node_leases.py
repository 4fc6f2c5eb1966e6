"""The Leases by which controllers of medik8s say who works on a node: respected, taken, renewed, given back.

They have the form that github.com/medik8s/common (pkg/lease, manager.go) gives them.
"""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from remediator.controller import node_leases
from remediator.core.node_lease import LENGTH
from remediator.kube.wire.times import micro_stamp
from remediator.metrics import REGISTRY
from tests.harness.controller import DONE, REBOOTED, RUNS, Answer, running, until
from tests.harness.kinds import LEASES, NAMESPACES
from tests.remediator.controller.test_outside_requests import others, repair, said

pytestmark = pytest.mark.sampled("node leases")

SPACE, NAME = "medik8s-leases", "node-gpu-1"
MAINTENANCE = "node-maintenance"
ON = {"node_leases": SPACE}


@pytest.fixture(autouse=True)
def short(monkeypatch) -> None:
    """All Leases are looked at so often that no test waits for it."""
    monkeypatch.setattr(node_leases, "LOOK", 0.05)
    monkeypatch.setattr(node_leases, "MOVED", node_leases.Retry(0.05, "the Lease of the node has changed"))


async def world(harness, *, namespace: bool = True) -> None:
    if namespace:
        await harness.client.create(NAMESPACES, {"metadata": {"name": SPACE}})
    await harness.policy()
    await harness.node("gpu-1")


def lease(harness) -> dict[str, Any] | None:
    """The Lease of gpu-1 as it is stored."""
    found = [each for each in harness.all(LEASES) if each["metadata"]["namespace"] == SPACE]
    return next((each for each in found if each["metadata"]["name"] == NAME), None)


def holder(harness) -> str:
    return (lease(harness) or {"spec": {"holderIdentity": ""}})["spec"]["holderIdentity"]


def spec_of(holder: str, renewed: timedelta, seconds: int) -> dict[str, Any]:
    """A Lease that was renewed so long ago."""
    at = micro_stamp(datetime.now(UTC) - renewed)
    times = {"acquireTime": at, "renewTime": at, "leaseDurationSeconds": seconds, "leaseTransitions": 3}
    return {"holderIdentity": holder, **times}


async def hold(harness, holder=MAINTENANCE, renewed=timedelta(0), seconds=3600) -> None:
    """What another system writes."""
    uid = harness.look("gpu-1")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "gpu-1", "uid": uid}
    meta = {"name": NAME, "ownerReferences": [owner]}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta}
    await harness.client.create(LEASES, body | {"spec": spec_of(holder, renewed, seconds)}, namespace=SPACE)


async def drop(harness) -> None:
    await harness.client.delete(LEASES, NAME, namespace=SPACE)


def of_leases(asked) -> bool:
    return f"/namespaces/{SPACE}/leases" in asked.path


def message(harness) -> str:
    (block,) = harness.cases("gpu-1")[-1]["status"]["blockedBy"]
    return block["message"]


async def test_a_case_takes_the_lease_of_its_node_before_it_marks_it_and_gives_it_back_at_its_end(harness) -> None:
    await world(harness)
    harness.answer("reboot", RUNS)
    async with running(harness, **ON):
        await harness.condition("gpu-1", "True")
        await until(lambda: "reboot gpu-1" in harness.ran)
        taken, case, node = lease(harness), harness.cases("gpu-1")[0], harness.look("gpu-1")
        assert taken["spec"]["holderIdentity"] == f"remediator/{case['metadata']['name']}"
        assert taken["spec"]["leaseDurationSeconds"] == 600
        (owner,) = taken["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("Node", "gpu-1", node["metadata"]["uid"])
        await harness.finish("reboot", REBOOTED)
        await until(lambda: harness.ended("gpu-1", "Recovered") and lease(harness) is None)
    writes = [one.path for one in harness.server.audit]
    taking = next(number for number, path in enumerate(writes) if f"/namespaces/{SPACE}/leases" in path)
    assert taking < writes.index("/api/v1/nodes/gpu-1")


async def test_a_lease_of_another_holds_the_case_with_its_name_until_it_is_given_back(harness) -> None:
    await world(harness)
    await hold(harness)
    async with running(harness, **ON):
        await harness.condition("gpu-1", "True")
        await until(lambda: harness.reasons("gpu-1") == ["UnderMaintenance"])
        assert message(harness).startswith("node-maintenance works on gpu-1 (it holds the Lease node-gpu-1)")
        await harness.quiet()
        assert (harness.taints("gpu-1"), harness.claims(), harness.ran) == ([], [], [])
        assert holder(harness) == MAINTENANCE
        await drop(harness)
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert harness.ran.count("reboot gpu-1") == 1


@pytest.mark.parametrize(
    ("renewed", "seconds"),
    [(timedelta(hours=2), 3600), (timedelta(days=-9), 3600)],
    ids=["expired", "renewed in the future"],
)
async def test_a_lease_that_its_holder_has_let_expire_is_taken_over(harness, renewed, seconds) -> None:
    await world(harness)
    await hold(harness, renewed=renewed, seconds=seconds)
    harness.answer("reboot", RUNS)
    async with running(harness, **ON):
        await harness.condition("gpu-1", "True")
        await until(lambda: "reboot gpu-1" in harness.ran)
        assert holder(harness).startswith("remediator/gpu-1-gpu-lost")
        assert lease(harness)["spec"]["leaseTransitions"] == 4


async def test_one_that_expired_by_less_than_clocks_may_differ_is_held_still(harness) -> None:
    await world(harness)
    await hold(harness, renewed=timedelta(minutes=4), seconds=60)
    async with running(harness, **ON):
        await harness.condition("gpu-1", "True")
        await until(lambda: harness.reasons("gpu-1") == ["UnderMaintenance"])


async def test_no_pod_is_made_while_another_has_taken_the_lease_from_a_case_and_its_status_says_so(harness) -> None:
    """Somebody edits it in the middle of a drain; afterwards the case takes it again and goes on."""
    await world(harness)
    harness.answer("drain", RUNS, DONE)
    async with running(harness, **ON):
        await harness.condition("gpu-1", "True")
        await until(lambda: "drain gpu-1" in harness.ran)
        await harness.client.patch(LEASES, NAME, {"spec": spec_of("fence", timedelta(0), 3600)}, namespace=SPACE)
        await harness.finish("drain", DONE)
        await until(lambda: harness.reasons("gpu-1") == ["UnderMaintenance"])
        assert message(harness).startswith("fence works on gpu-1")
        await harness.quiet()
        assert "reboot gpu-1" not in harness.ran
        assert holder(harness) == "fence"
        await drop(harness)
        await until(lambda: harness.ended("gpu-1", "Recovered") and lease(harness) is None)
    assert harness.ran.count("reboot gpu-1") == 1


async def test_one_that_a_person_has_holds_it_no_longer(harness) -> None:
    """So that they may put the node into maintenance."""
    await world(harness)
    harness.answer("reboot", Answer(exit=1, message="in vain"))
    async with running(harness, **ON):
        await harness.condition("gpu-1", "True")
        await until(lambda: harness.phase("gpu-1") == "Escalated" and lease(harness) is None)


async def test_it_is_renewed_while_the_case_works(harness) -> None:
    await world(harness)
    harness.answer("reboot", RUNS)
    async with running(harness, **ON):
        await harness.condition("gpu-1", "True")
        await until(lambda: "reboot gpu-1" in harness.ran)
        old = micro_stamp(datetime.now(UTC) - LENGTH * 0.6)
        await harness.client.patch(LEASES, NAME, {"spec": {"renewTime": old}}, namespace=SPACE)
        acquired = lease(harness)["spec"]["acquireTime"]
        await until(lambda: lease(harness)["spec"]["renewTime"] != old)
        assert lease(harness)["spec"]["acquireTime"] == acquired


async def test_a_new_leader_goes_on_with_the_lease_of_its_case_and_takes_away_those_of_cases_that_are_gone(
    harness,
) -> None:
    await world(harness)
    await harness.node("gpu-2")
    harness.answer("reboot", RUNS)
    async with running(harness, "one", **ON):
        await harness.condition("gpu-1", "True")
        await until(lambda: "reboot gpu-1" in harness.ran)
    transitions = lease(harness)["spec"]["leaseTransitions"]
    left = {"metadata": {"name": "node-gpu-2"}, "spec": spec_of("remediator/gone", timedelta(0), 600)}
    await harness.client.create(LEASES, left, namespace=SPACE)
    async with running(harness, "two", **ON):
        await until(lambda: [each["metadata"]["name"] for each in harness.all(LEASES) if SPACE in str(each)] == [NAME])
        assert lease(harness)["spec"]["leaseTransitions"] == transitions
        await harness.finish("reboot", REBOOTED)
        await until(lambda: harness.ended("gpu-1", "Recovered") and lease(harness) is None)


@pytest.mark.parametrize("allowed", [False, True], ids=["no right", "no namespace"])
async def test_without_the_right_or_the_namespace_nodes_are_repaired_all_the_same_and_that_is_told(
    harness, allowed
) -> None:
    await world(harness, namespace=not allowed)
    if not allowed:
        harness.server.faults.refuse(403, times=10**6, when=of_leases)
    async with running(harness, **ON):
        await harness.condition("gpu-1", "True")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        assert REGISTRY.get_sample_value("remediator_node_leases_usable") == 0
    assert lease(harness) is None


async def test_while_nobody_answers_for_leases_nothing_starts(harness) -> None:
    await world(harness)
    silent = True
    harness.server.faults.refuse(503, times=10**6, when=lambda asked: silent and of_leases(asked))
    async with running(harness, **ON):
        await harness.condition("gpu-1", "True")
        await until(lambda: bool(harness.cases("gpu-1")))
        await asyncio.sleep(0.5)
        assert (harness.taints("gpu-1"), harness.ran) == ([], [])
        silent = False
        await until(lambda: harness.ended("gpu-1", "Recovered"), 20)


async def test_a_lease_that_cannot_be_written_is_a_hold_that_says_so_until_it_can(harness) -> None:
    """422, as for a name that is too long: the node keeps its Pods, no budget is spent, and somebody is told."""
    await world(harness)
    refused = True
    harness.server.faults.refuse(
        422, times=10**6, when=lambda asked: refused and asked.method == "POST" and of_leases(asked)
    )
    async with running(harness, **ON):
        await harness.condition("gpu-1", "True")
        await until(lambda: harness.reasons("gpu-1") == ["UnderMaintenance"])
        assert message(harness).startswith("nobody can tell who works on gpu-1: the Lease of the node: 422 ")
        assert "; look at the Lease node-gpu-1; " in message(harness)
        await until(lambda: harness.claims() == [])
        assert (harness.taints("gpu-1"), harness.ran) == ([], [])
        refused = False
        await until(lambda: harness.ended("gpu-1", "Recovered"), 20)


@pytest.mark.parametrize("code", [401, 403])
async def test_a_refusal_that_passes_frees_no_node_that_another_holds(harness, code) -> None:
    """Leases were read before; now one list and each read is refused: a token that is renewed, a server that starts."""
    await world(harness)
    await hold(harness)
    async with running(harness, **ON):
        await harness.condition("gpu-1", "True")
        await until(lambda: harness.reasons("gpu-1") == ["UnderMaintenance"])
        refused: list[str] = []

        def passing(asked) -> bool:
            lease_asked = of_leases(asked) and len(refused) < 6
            refused.extend([asked.method] * lease_asked)
            return lease_asked

        harness.server.faults.refuse(code, times=10**6, when=passing)
        await until(lambda: len(refused) == 6)
        await harness.quiet()
        assert (harness.reasons("gpu-1"), harness.taints("gpu-1"), harness.ran) == (["UnderMaintenance"], [], [])


async def test_the_lease_of_the_node_health_check_that_asks_for_a_repair_does_not_hold_that(harness) -> None:
    """It keeps the Lease until the repair is told, so that ours would wait for ever."""
    await others(harness)
    await harness.client.create(NAMESPACES, {"metadata": {"name": SPACE}})
    await hold(harness, "NodeHealthCheck-workers", seconds=660)
    async with running(harness, requests_from=("node-repairs",), **ON):
        await repair(harness)
        await until(lambda: said(harness)[0] == "True" and harness.clean("gpu-1"))
    assert holder(harness) == "NodeHealthCheck-workers"


async def test_that_of_another_node_health_check_does(harness) -> None:
    await others(harness)
    await harness.client.create(NAMESPACES, {"metadata": {"name": SPACE}})
    await hold(harness, "NodeHealthCheck-others", seconds=660)
    async with running(harness, requests_from=("node-repairs",), **ON):
        await repair(harness)
        await until(lambda: "NodeHealthCheck-others works on gpu-1" in said(harness)[2])
    assert harness.ran == []


async def test_without_the_setting_no_lease_is_read_or_written(harness) -> None:
    await world(harness)
    await hold(harness)
    async with running(harness):
        await harness.condition("gpu-1", "True")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert holder(harness) == MAINTENANCE
