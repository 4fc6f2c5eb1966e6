"""A case that isolates one GPU: its node stays in service, and the rule ends with the case."""

import json

import pytest

from remediator.core import names
from remediator.kube.api import devices
from remediator_sim.plain import NODES
from tests.harness.controller import Answer, environment, running, until
from tests.harness.kinds import plain

pytestmark = pytest.mark.sampled("isolate gpu")

RULES = plain(devices.TAINT_RULE)


async def put_in_service(harness, node):
    """What the program does: a rule of the case, and the node without its cordon."""
    case = harness.cases(node)[-1]["metadata"]
    for uid, name in ((case["uid"], "ours"), ("another-case", "theirs")):
        meta = {"name": name, "labels": {names.CASE_UID_LABEL: uid}}
        taint = {"key": "remediator.dev/isolated", "effect": "NoSchedule"}
        await harness.client.create(RULES, {"metadata": meta, "spec": {"taint": taint}})
    marks = {names.CORDONED_BY: None, names.IN_SERVICE: case["uid"]}
    await harness.change(NODES, node, metadata={"annotations": marks}, spec={"unschedulable": None})


@pytest.fixture
async def isolating(harness):
    await harness.template(names.ISOLATE_TEMPLATE)
    harness.answer(names.ISOLATE_TEMPLATE, Answer(message="isolated gpu-1", does=put_in_service))
    await harness.policy(
        ladder=[{"operation": names.ISOLATE_TEMPLATE}], verify={"settle": "1s", "fresh": "1s", "timeout": "2s"}
    )
    await harness.node("gpu-1", "True")
    return harness


def rules(harness):
    return [rule["metadata"]["name"] for rule in harness.all(RULES)]


async def test_its_node_stays_in_service_for_as_long_as_the_case_waits_for_a_person(isolating):
    async with running(isolating):
        await until(lambda: isolating.phase("gpu-1") == "Escalated")
        await isolating.quiet()
        assert isolating.reasons("gpu-1") == []
        assert "unschedulable" not in isolating.look("gpu-1")["spec"]
        assert rules(isolating) == ["ours", "theirs"]
        await isolating.edit_case("gpu-1", release=True)
        await until(lambda: isolating.ended("gpu-1", "Escalated"))
        assert rules(isolating) == ["theirs"], "it ends with the case, and no other does"
    assert names.IN_SERVICE not in (isolating.look("gpu-1")["metadata"].get("annotations") or {})


async def test_a_gpu_that_is_well_again_is_given_back_with_its_node(isolating):
    async with running(isolating):
        await until(lambda: "ours" in rules(isolating))
        await isolating.condition("gpu-1", "False")
        await until(lambda: isolating.clean("gpu-1"))
        assert rules(isolating) == ["theirs"]


async def test_the_program_is_told_whose_gpus_the_fault_is_about(isolating):
    isolating.answer(names.ISOLATE_TEMPLATE, Answer(exit=None))
    uuids = {"gpus": [{"address": "0000:65:00.0", "uuid": "GPU-0"}, {"address": "0000:66:00.0", "uuid": "GPU-1"}]}
    isolating.answer(names.DIAGNOSTICS_TEMPLATE, Answer(message=json.dumps(uuids)))
    said = {"type": "GpuLost", "status": "True", "reason": "Lost", "message": "0000:66:00.0 is lost"}
    await isolating._node_status("gpu-1", {"conditions": [said]})
    async with running(isolating):
        (pod,) = await until(lambda: isolating.pods(names.ISOLATE_TEMPLATE))
        told = json.loads(environment(pod)["PARAMETERS"])
        case = isolating.cases("gpu-1")[0]["metadata"]
        assert told == {
            "case": case["name"],
            "caseUID": case["uid"],
            "gpus": "GPU-1",
            "fault": "0000:66:00.0 is lost",
        }
