"""Neighbours to which a probe measures, by a whole controller: which are taken, what both ends are told, and that each
is given back.
"""

import json
from datetime import timedelta

import pytest

from remediator.controller import idle_tests
from remediator.core import names, neighbour
from tests.harness import yaml_files
from tests.harness.controller import RUNS, Answer, running, until
from tests.harness.kinds import EVENTS, INVENTORIES, NODES, PODS, POLICIES, TEMPLATES
from tests.remediator.controller.test_idle_tests import GPU, PRIORITIES, ROOT
from tests.remediator.test_cli_explain import explained

pytestmark = pytest.mark.sampled("neighbours")

VERIFY = {"settle": "1s", "fresh": "1s", "timeout": "30s", "probe": "gpu-check"}
RACK = f"{names.GROUP}/rack"
FINE, STUCK = Answer(message="all 8 GPUs work"), Answer(starts=False)
ADDRESSES = {"gpu-1": "10.0.0.1", "gpu-2": "10.0.0.2", "gpu-3": "10.0.0.3", "gpu-4": "10.0.0.4"}


@pytest.fixture
async def racked(harness, monkeypatch):
    """A probe that measures to neighbours in the same rack, and a node whose GPU is lost."""
    monkeypatch.setattr(idle_tests, "LOOK", 0.2)
    monkeypatch.setattr(idle_tests, "SOON", 0.01)
    await harness.client.create(PRIORITIES, yaml_files.read(ROOT / "deploy" / "idle-tests.yaml"))
    await harness.template("gpu-check", neighbours={"sameLabel": RACK, "atOnce": 2})
    await harness.policy(verify=VERIFY)
    await harness.budget("all", 4)
    await a_node(harness, "gpu-1", "a", gpu="True")
    harness.answer("gpu-check", FINE)
    return harness


async def a_node(harness, name, rack, gpu="False"):
    """A node of a rack with 8 GPUs that nobody uses, and an address."""
    await harness.node(name, gpu, **({"rack": rack} if rack else {}))
    addresses = [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": ADDRESSES[name]}]
    status = {"allocatable": {GPU: "8"}, "addresses": addresses}
    await harness.client.patch(NODES, name, {"status": status}, subresource="status")


def ends(harness, phase=""):
    """The Pods that are the other end, by node."""
    marked = [pod for pod in harness.pods("gpu-check", phase) if names.NEIGHBOUR_OF in pod["metadata"]["labels"]]
    return {pod["metadata"]["annotations"][names.IDLE_TEST].split("/")[1]: pod for pod in marked}


def probes(harness, phase=""):
    """The Pods of the probe itself."""
    return [pod for pod in harness.pods("gpu-check", phase) if names.NEIGHBOUR_OF not in pod["metadata"]["labels"]]


def parameters(pod):
    """What the program in it is told."""
    (entry,) = [each for each in pod["spec"]["containers"][0]["env"] if each["name"] == "PARAMETERS"]
    return json.loads(entry["value"])


async def end(harness, pod):
    """Let the probe succeed."""
    ended = {"terminated": {"exitCode": 0, "message": FINE.message, "reason": "Ended"}}
    status = {"phase": "Succeeded", "containerStatuses": [{"name": "main", "state": ended}]}
    where = {"namespace": names.OPERATIONS_NAMESPACE, "subresource": "status"}
    await harness.client.patch(PODS, pod["metadata"]["name"], {"status": status}, **where)


async def probe(harness):
    """The Pod of the probe, once it runs."""
    return (await until(lambda: probes(harness, "Running")))[0]


async def test_two_idle_nodes_of_the_rack_are_the_other_ends_and_are_given_back_at_the_end(racked):
    harness = racked
    harness.answer("gpu-check", RUNS)
    await a_node(harness, "gpu-2", "a")
    await a_node(harness, "gpu-3", "a")
    await a_node(harness, "gpu-4", "b")
    async with running(harness):
        pod = await probe(harness)
        others = ends(harness)
        told = parameters(pod)["neighbours"]
        assert (harness.taints("gpu-2"), harness.claims()) == ([], ["gpu-1"]), "a neighbour stays in service"
        await end(harness, pod)
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    uid = others["gpu-2"]["metadata"]["labels"][names.NEIGHBOUR_OF]
    assert set(others) == {"gpu-2", "gpu-3"}
    nodes = sorted((node["name"], node["address"]) for node in told["nodes"])
    assert (nodes, told["port"], told["token"]) == ([("gpu-2", "10.0.0.2"), ("gpu-3", "10.0.0.3")], 18514, uid)
    served = parameters(others["gpu-2"])["serve"]
    assert served == {"address": "10.0.0.2", "port": 18514, "client": "10.0.0.1", "token": uid, "seconds": 290}
    spec = others["gpu-2"]["spec"]
    assert (spec["priorityClassName"], "nodeName" in spec) == ("remediator-idle-test", False)
    assert (spec["containers"][0]["resources"]["limits"][GPU], spec["activeDeadlineSeconds"]) == ("8", 300)
    assert [each for each in harness.all(INVENTORIES) if each.get("status", {}).get("idleTest")] == []


async def test_a_template_that_asks_for_no_neighbour_takes_none(racked):
    harness = racked
    await harness.template("other-check")
    await harness.policy("gpu-lost-too", verify=VERIFY | {"probe": "other-check"})
    harness.answer("other-check", RUNS)
    await harness.client.delete(POLICIES, "gpu-lost")
    await a_node(harness, "gpu-2", "a")
    async with running(harness):
        pod = (await until(lambda: harness.pods("other-check", "Running")))[0]
    assert ("neighbours" in parameters(pod), ends(harness)) == (False, {})


@pytest.mark.parametrize("neighbour_is", ["elsewhere", "cordoned", "in use"])
async def test_without_an_idle_neighbour_the_rest_is_probed_and_the_program_is_told_why(racked, neighbour_is):
    harness = racked
    harness.answer("gpu-check", RUNS)
    await a_node(harness, "gpu-2", "b" if neighbour_is == "elsewhere" else "a")
    if neighbour_is == "cordoned":
        await harness.client.patch(NODES, "gpu-2", {"spec": {"unschedulable": True}})
    if neighbour_is == "in use":
        container = {"name": "main", "image": "train", "resources": {"limits": {GPU: "1"}}}
        body = {"metadata": {"name": "work"}, "spec": {"nodeName": "gpu-2", "containers": [container]}}
        await harness.client.create(PODS, body, namespace="default")
    async with running(harness):
        pod = await probe(harness)
    assert (parameters(pod)["neighbours"], ends(harness)) == ({"why": f"no idle node has {RACK}=a"}, {})


@pytest.mark.parametrize("address", ["1" * 200_000, "fe80::2%" + "x" * 200_000, "gpu-2.example"])
async def test_what_a_neighbour_says_and_is_no_ip_address_gets_into_no_pod(racked, monkeypatch, address):
    harness = racked
    monkeypatch.setattr(neighbour, "STARTS_WITHIN", timedelta(seconds=5))
    harness.answer("gpu-check", RUNS)
    await a_node(harness, "gpu-2", "a")
    await a_node(harness, "gpu-3", "a")
    status = {"addresses": [{"type": "InternalIP", "address": address}]}
    await harness.client.patch(NODES, "gpu-2", {"status": status}, subresource="status")
    async with running(harness):
        pod = await probe(harness)
    assert parameters(pod)["neighbours"]["nodes"] == [{"name": "gpu-3", "address": "10.0.0.3"}]
    assert set(ends(harness)) == {"gpu-3"}


async def test_a_neighbour_whose_pod_does_not_start_holds_nothing_up_for_long(racked, monkeypatch):
    harness = racked
    monkeypatch.setattr(neighbour, "STARTS_WITHIN", timedelta(seconds=1))
    harness.answer("gpu-check", STUCK, FINE)
    await a_node(harness, "gpu-2", "a")
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert harness.ran.count("gpu-check gpu-1") == 1


async def test_a_neighbour_that_the_api_server_refuses_is_asked_for_once_and_the_rest_is_probed_at_once(racked):
    """A refused request is repeated after 30 s at the soonest: the whole case takes less."""
    harness = racked
    await harness.client.delete(PRIORITIES, "remediator-idle-test")
    harness.answer("gpu-check", RUNS)
    await a_node(harness, "gpu-2", "a")
    async with running(harness):
        pod = await probe(harness)
        await end(harness, pod)
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    why = parameters(pod)["neighbours"]["why"]
    assert why.startswith("no Pod can be made on a neighbour: "), why
    assert ("remediator-idle-test" in why, ends(harness)) == (True, {}), why


async def test_a_neighbour_that_falls_ill_is_given_back_at_once_and_the_measurement_ends_without_it(racked):
    harness = racked
    harness.answer("gpu-check", RUNS)
    await a_node(harness, "gpu-2", "a")
    async with running(harness):
        pod = await probe(harness)
        harness.answer("gpu-check", FINE)  # to gpu-2, once it is repaired
        await harness.condition("gpu-2", "True")
        await until(lambda: "gpu-2" not in ends(harness))
        assert probes(harness, "Running"), "the probe goes on"
        await end(harness, pod)
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        await until(lambda: harness.ended("gpu-2", "Recovered"))


async def test_a_leader_that_goes_on_in_the_middle_uses_the_same_neighbours_and_gives_them_back(racked):
    harness = racked
    harness.answer("gpu-check", STUCK, RUNS)
    await a_node(harness, "gpu-2", "a")
    async with running(harness):
        await until(lambda: ends(harness))
    first = ends(harness)["gpu-2"]["metadata"]["uid"]
    harness.forget_pods()
    async with running(harness, "two"):
        pod = await probe(harness)
        assert ends(harness)["gpu-2"]["metadata"]["uid"] == first
        await end(harness, pod)
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_a_neighbour_that_has_booted_while_nobody_led_is_given_back(racked):
    harness = racked
    harness.answer("gpu-check", RUNS)
    await a_node(harness, "gpu-2", "a")
    async with running(harness):
        await probe(harness)
    await harness.client.patch(NODES, "gpu-2", {"status": {"nodeInfo": {"bootID": "boot-9"}}}, subresource="status")
    async with running(harness, "two"):
        await until(lambda: not ends(harness))


async def test_all_operations_together_take_no_more_neighbours_than_the_template_says(racked, monkeypatch):
    harness = racked
    monkeypatch.setattr(neighbour, "STARTS_WITHIN", timedelta(seconds=3))
    await harness.change(TEMPLATES, "gpu-check", spec={"neighbours": {"atOnce": 1}})
    harness.answer("gpu-check", RUNS)
    for name, gpu in (("gpu-2", "False"), ("gpu-3", "True"), ("gpu-4", "False")):
        await a_node(harness, name, "a", gpu)
    async with running(harness):
        await until(lambda: len(probes(harness, "Running")) == 2)
        told = [parameters(pod)["neighbours"] for pod in probes(harness)]
        assert (len(ends(harness)), [len(each.get("nodes", ())) for each in told].count(1)) == (1, 1)
    full = "as many neighbours as may be are measured to by other operations"
    assert [each["why"] for each in told if "why" in each] == [full]


async def test_explain_says_what_the_pod_does_on_the_neighbour_and_no_test_is_counted(racked):
    harness = racked
    harness.answer("gpu-check", RUNS)
    await a_node(harness, "gpu-2", "a")
    async with running(harness):
        await probe(harness)
        _, lines, _ = await explained(harness, "gpu-2")
    assert any("idle test: another node measures its InfiniBand to this one" in line for line in lines), lines
    assert [each for each in harness.all(EVENTS) if each.get("reason", "").startswith("IdleTest")] == []
