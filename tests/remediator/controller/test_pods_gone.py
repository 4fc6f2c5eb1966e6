"""A Pod whose object is taken away by force is not made again: what it does goes on beside any other."""

import pytest

from remediator.clock import SYSTEM
from remediator.controller.perform import Performer
from remediator.core import names
from remediator.core.operation_table import Move
from tests.harness.controller import OPERATIONS as SPACE
from tests.harness.controller import RUNS, reboot, running, until
from tests.harness.kinds import OPERATIONS, PODS
from tests.remediator.controller.test_silent_watch import stale
from tests.remediator.controller.test_stops import Replica

REBOOTS = {"bootIDChanged": True, "nodeReady": True}


@pytest.fixture
async def custom(harness):
    """A sick node, and two operations of a user, which mark nothing on the node and run until a test ends them."""
    await harness.template("mend", timeout="60s")
    await harness.template("reboot-60s", timeout="60s", success=REBOOTS)
    for template in ("mend", "reboot-60s"):
        harness.answer(template, RUNS)
    await harness.node("gpu-1", "True")
    return harness


async def rung(harness, operation, attempts=1):
    """The policy with this rung alone."""
    await harness.policy(
        ladder=[{"operation": operation, "attempts": attempts}],
        verify={"settle": "1s", "fresh": "1s", "timeout": "30s"},
    )


async def seen(harness, template):
    """The name of the Pod of this template, once it runs and its operation says so."""
    (pod,) = await until(lambda: harness.pods(template, "Running"))
    await until(lambda: operation(harness).get("pod") == pod["metadata"]["name"])
    return pod["metadata"]["name"]


def operation(harness):
    return harness.all(OPERATIONS)[-1]["status"]


async def delete_by_force(harness, name):
    """What `kubectl delete pod --force` asks for."""
    path = PODS.path(name, SPACE)
    await harness.client.transport.request("DELETE", path, body=b'{"gracePeriodSeconds": 0}')


async def take_away(harness, name):
    """The same, with our finalizer taken off before."""
    await harness.client.patch(PODS, name, {"metadata": {"finalizers": None}}, namespace=SPACE)
    await delete_by_force(harness, name)
    assert not harness.pods(operation_of(name))


def operation_of(name):
    return next(template for template in ("mend", "reboot-60s") if f"-{template}-" in name)


async def test_a_pod_that_is_taken_away_by_force_has_failed_and_is_not_made_again(custom):
    await rung(custom, "mend")
    async with running(custom):
        await take_away(custom, await seen(custom, "mend"))
        await until(lambda: custom.phase("gpu-1") == "Escalated")
    (attempt,) = custom.cases("gpu-1")[0]["status"]["attempts"]
    assert (attempt["outcome"], attempt["reason"]) == ("Failed", "PodDeleted")
    assert attempt["message"] == "somebody has removed its Pod by force: it may have acted, so no second one is made"
    assert custom.ran.count("mend gpu-1") == 1


async def test_it_is_not_made_again_by_the_next_leader_either(custom):
    await rung(custom, "mend")
    async with running(custom):
        name = await seen(custom, "mend")
    await take_away(custom, name)
    async with running(custom, "two"):
        await until(lambda: custom.phase("gpu-1") == "Escalated")
    assert custom.ran.count("mend gpu-1") == 1


async def test_while_our_finalizer_is_there_a_pod_that_is_deleted_by_force_is_waited_for(custom):
    """Its kubelet ends it, and its result is known."""
    await rung(custom, "mend")
    custom.dead.add("gpu-1")
    async with running(custom):
        name = await seen(custom, "mend")
        await delete_by_force(custom, name)
        await custom.quiet()
        (pod,) = custom.pods("mend")
        assert (pod["metadata"]["name"], pod["metadata"]["finalizers"]) == (name, [names.POD_FINALIZER])
        assert operation(custom)["phase"] == "Operating"
        custom.dead.clear()
        await until(lambda: custom.phase("gpu-1") == "Escalated")
    assert operation(custom)["reason"] == "PodDeleted"
    assert custom.ran.count("mend gpu-1") == 1


async def test_a_reboot_whose_pod_is_taken_away_succeeds_where_the_node_shows_it(custom):
    await rung(custom, "reboot-60s")
    async with running(custom):
        await take_away(custom, await seen(custom, "reboot-60s"))
        await custom.quiet()
        assert operation(custom)["phase"] == "Operating"
        await reboot(custom, "gpu-1")
        await until(lambda: custom.ended("gpu-1", "Recovered"))
    assert custom.ran.count("reboot-60s gpu-1") == 1


async def test_a_pod_that_only_a_late_watch_does_not_show_goes_on(custom):
    """Another replica has made it, and this one has heard of the operation alone."""
    late = await stale(custom, "mend", lambda replica: replica.next() is Move.CREATE_POD)
    other = await Replica.now(custom)
    while not operation(custom).get("pod"):
        await other.turn()
    (made,) = late.cache.operations
    await Performer(custom.client, late.cache, lambda: True).operation(made.name)
    assert late.next() is Move.FAIL
    await late.operations.reconcile(made.name, SYSTEM.now())
    assert operation(custom)["phase"] == "Operating"
    assert late.next() is Move.WAIT, "it has heard of the Pod by now"


async def test_it_is_not_made_again_by_a_replica_that_has_heard_neither_of_it_nor_of_its_end(custom):
    late = await stale(custom, "mend", lambda replica: replica.next() is Move.CREATE_POD)
    other = await Replica.now(custom)
    while not operation(custom).get("pod"):
        await other.turn()
    await take_away(custom, operation(custom)["pod"])
    assert late.next() is Move.CREATE_POD
    (made,) = late.cache.operations
    await late.operations.reconcile(made.name, SYSTEM.now())
    assert not custom.pods("mend")
    assert late.next() is Move.FAIL, "it has heard of both by now"
