"""A Pod whose object is taken away by force is not made again: what it does goes on beside any other."""

import pytest

from remediator.clock import SYSTEM
from remediator.controller.explain import explain
from remediator.controller.perform import Performer
from remediator.controller.pods import pod_name
from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.core.operation_table import Move
from tests.harness.controller import OPERATIONS as SPACE
from tests.harness.controller import RUNS, reboot, running, until
from tests.harness.kinds import CASES, OPERATIONS, PODS
from tests.remediator.controller.test_silent_watch import LATE, passes, stale
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


async def time_is_over(harness):
    """The end of the time-out of the operation."""
    await passes(await Replica.now(harness), LATE)


async def test_a_pod_that_is_taken_away_by_force_is_not_made_again_and_fails_when_its_time_is_over(custom):
    await rung(custom, "mend")
    async with running(custom):
        name = await seen(custom, "mend")
        await take_away(custom, name)
        await custom.quiet()
    removed = f"somebody has removed Pod {name} by force: what it did to gpu-1 is unknown, and no second one is made"
    waits = f"{removed}; its program may go on, so its time-out is waited for"
    assert (operation(custom)["phase"], operation(custom)["message"]) == ("Operating", waits)
    cache = (await Replica.now(custom)).cache
    assert f"  mend: {waits}" in list(explain(cache, cache.nodes.get("gpu-1"), Breaker(), SYSTEM.now()))
    await time_is_over(custom)
    async with running(custom, "two"):
        await until(lambda: custom.phase("gpu-1") == "Escalated")
    (attempt,) = custom.cases("gpu-1")[0]["status"]["attempts"]
    assert (attempt["outcome"], attempt["reason"]) == ("Failed", "PodDeleted")
    assert attempt["message"] == f"no sign of success in time; {removed}"
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


async def made_and_seen(harness, replica):
    """Whether the operation says that its Pod was seen, after one more turn."""
    await replica.turn()
    return operation(harness).get("pod")


async def behind(harness):
    """A replica that is about to make the Pod, which another one has made meanwhile."""
    late = await stale(harness, "mend", lambda replica: replica.next() is Move.CREATE_POD)
    other = await Replica.now(harness)
    await until(lambda: made_and_seen(harness, other))
    return late


async def test_a_pod_that_only_a_late_watch_does_not_show_goes_on(custom):
    """This replica has heard of the operation alone."""
    late = await behind(custom)
    (made,) = late.cache.operations
    await Performer(custom.client, late.cache, lambda: True).operation(made.name)
    await passes(late)
    assert "message" not in operation(custom)
    assert pod_name(made) in {pod.name for pod in late.cache.pods}, "it has heard of the Pod by now"


async def test_it_is_not_made_again_by_a_replica_that_has_heard_neither_of_it_nor_of_its_end(custom):
    late = await behind(custom)
    await take_away(custom, operation(custom)["pod"])
    assert late.next() is Move.CREATE_POD
    await passes(late)
    assert not custom.pods("mend")
    assert "somebody has removed Pod" in operation(custom)["message"]


async def test_the_node_of_a_case_that_is_deleted_is_not_given_back_while_the_program_may_go_on(custom):
    await rung(custom, "mend")
    async with running(custom):
        await take_away(custom, await seen(custom, "mend"))
        await custom.client.delete(CASES, custom.cases("gpu-1")[0]["metadata"]["name"])
        await custom.quiet()
    assert custom.taints("gpu-1") == [names.CASE_TAINT]
    await time_is_over(custom)
    async with running(custom, "two"):
        await until(lambda: custom.clean("gpu-1"))


async def test_the_next_try_begins_when_the_time_of_the_first_is_over(custom):
    await rung(custom, "mend", attempts=2)
    async with running(custom):
        await take_away(custom, await seen(custom, "mend"))
        await custom.quiet()
    assert custom.ran.count("mend gpu-1") == 1
    await time_is_over(custom)
    async with running(custom, "two"):
        await until(lambda: custom.ran.count("mend gpu-1") == 2)
