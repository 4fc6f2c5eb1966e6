"""Marks of cases that nobody knows any more are swept; those of a case whose Pod may still act are not."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from remediator.clock import SYSTEM
from remediator.controller.explain import snapshot
from remediator.controller.ledgers import Ledgers
from remediator.controller.orphans import Orphans
from remediator.controller.perform import Performer
from remediator.core import names
from remediator_sim.invariants.contract import held_by
from tests.harness.controller import OPERATIONS, RUNS, Answer, ControllerHarness, running, until
from tests.harness.kinds import BUDGETS, CASES, NODES, PODS

pytestmark = pytest.mark.sampled("orphans")


async def _sweep(harness: ControllerHarness, blind_to: str = "") -> None:
    cache = await snapshot(harness.client, harness.namespaces, SYSTEM)
    if blind_to:
        cache.cases._reflector._drop(blind_to)
    await Orphans(cache, Performer(harness.client, cache, lambda: True)).run(SYSTEM.now())


async def _ledgers(harness: ControllerHarness) -> None:
    cache = await snapshot(harness.client, harness.namespaces, SYSTEM)
    await Ledgers(cache, Performer(harness.client, cache, lambda: True), SYSTEM.monotonic).update(SYSTEM.now())


async def _marked(harness: ControllerHarness, uid: str, *more: dict[str, Any]) -> None:
    """A node with all our marks for a case of this uid, and a taint of a user."""
    await harness.node("gpu-1")
    taints = [
        {"key": names.CASE_TAINT, "value": uid, "effect": "NoSchedule"},
        {"key": names.DEGRADED_TAINT, "effect": "PreferNoSchedule"},
        {"key": "maintenance", "effect": "NoSchedule"},
        *more,
    ]
    keeps = {names.SCALE_DOWN_DISABLED: "true", names.SCALE_DOWN_DISABLED_BY: uid}
    annotations = {names.CORDONED_BY: uid, **keeps}
    await harness.change(
        NODES, "gpu-1", metadata={"annotations": annotations}, spec={"taints": taints, "unschedulable": True}
    )


def _state(harness: ControllerHarness) -> tuple[list[str], bool, bool]:
    node = harness.look("gpu-1")
    ours = {names.CORDONED_BY, names.SCALE_DOWN_DISABLED, names.SCALE_DOWN_DISABLED_BY}
    noted = bool(ours & (node["metadata"].get("annotations") or {}).keys())
    return harness.taints("gpu-1"), bool(node["spec"].get("unschedulable")), noted


async def _pod(harness: ControllerHarness, uid: str, **annotations: str) -> None:
    labels = {names.CASE_UID_LABEL: uid, names.OPERATION_LABEL: "reboot"}
    meta = {"name": "left", "labels": labels, "finalizers": [names.POD_FINALIZER], "annotations": annotations}
    env = [{"name": "NODE_NAME", "value": "gpu-1"}]
    spec = {"nodeName": "gpu-1", "containers": [{"name": "main", "image": "operations", "env": env}]}
    await harness.client.create(PODS, {"metadata": meta, "spec": spec}, namespace=OPERATIONS)


async def test_the_marks_of_a_case_that_was_restored_under_another_uid_are_taken_off(harness: ControllerHarness):
    await _marked(harness, "uid-before-the-restore")
    await _sweep(harness)
    assert _state(harness) == (["maintenance"], False, False)


async def test_a_case_that_a_stale_cache_does_not_show_keeps_its_marks(harness: ControllerHarness):
    await harness.make(CASES, "case-1", nodeName="gpu-1", nodeUID="uid", policyName="gpu-lost")
    uid = harness.cases("gpu-1")[0]["metadata"]["uid"]
    await _marked(harness, uid)
    await _sweep(harness, blind_to="case-1")
    assert _state(harness)[0][0] == names.CASE_TAINT
    assert _state(harness)[1:] == (True, True)


async def test_marks_stay_for_as_long_as_a_pod_of_the_case_may_act_on_the_node(harness: ControllerHarness):
    harness.answer("reboot", RUNS)
    await _marked(harness, "gone")
    await _pod(harness, "gone")
    await until(lambda: harness.ran == ["reboot gpu-1"])
    await _sweep(harness)
    assert _state(harness)[0][0] == names.CASE_TAINT
    await harness.finish("reboot")
    await _sweep(harness)
    assert harness.pods() == [], "its finalizer is ours, and nobody else takes it off"
    await _sweep(harness)
    assert _state(harness) == (["maintenance"], False, False)


async def test_a_mirror_pod_with_the_label_of_a_case_keeps_no_marks(harness: ControllerHarness):
    harness.answer("reboot", RUNS)
    await _marked(harness, "gone")
    await _pod(harness, "gone", **{"kubernetes.io/config.mirror": "made by a kubelet"})
    await until(lambda: harness.ran == ["reboot gpu-1"])
    await _sweep(harness)
    assert _state(harness) == (["maintenance"], False, False)
    assert len(harness.pods()) == 1, "it is not ours to delete"


async def test_a_node_that_a_user_has_cordoned_stays_so(harness: ControllerHarness):
    await _marked(harness, "gone")
    await harness.change(NODES, "gpu-1", metadata={"annotations": {names.CORDONED_BY: None}})
    await _sweep(harness)
    assert _state(harness) == (["maintenance"], True, False)


async def test_the_entry_of_a_case_that_is_gone_stays_in_its_ledger_until_its_marks_are_off_the_node(
    harness: ControllerHarness,
):
    await _marked(harness, "gone")
    await harness.make(BUDGETS, "pool", selector={}, maxUnavailable=1)
    claims = [{"node": "gpu-1", "case": "gone", "since": SYSTEM.now().isoformat()}]
    await harness.client.patch(BUDGETS, "pool", {"status": {"claims": claims}}, subresource="status")
    await _ledgers(harness)
    assert harness.claims() == ["gpu-1"]
    await _sweep(harness)
    await _ledgers(harness)
    assert harness.claims() == []


async def test_a_case_whose_finalizer_was_stripped_while_nobody_led_leaves_nothing_behind(harness: ControllerHarness):
    await harness.policy()
    harness.answer(names.DRAIN_TEMPLATE, RUNS)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.pods(names.DRAIN_TEMPLATE))
    await harness.condition("gpu-1", "False")
    name = harness.cases("gpu-1")[0]["metadata"]["name"]
    await harness.change(CASES, name, metadata={"finalizers": None})
    await harness.client.delete(CASES, name)
    async with running(harness, "two"):
        await until(lambda: not harness.pods())
    async with running(harness, "three"):
        await until(lambda: harness.clean("gpu-1") and not harness.pods())


async def test_a_leader_takes_the_marks_of_a_case_off_as_soon_as_it_vanishes(harness: ControllerHarness):
    await harness.policy(ladder=[{"operation": "reboot", "attempts": 1}])
    harness.answer("reboot", Answer(exit=1))
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        await harness.condition("gpu-1", "False")
        case = harness.cases("gpu-1")[0]
        harness.server.cluster.store.delete("noderemediations.remediator.dev", ("", case["metadata"]["name"]), case)
        await until(lambda: held_by(harness.look("gpu-1")) != case["metadata"]["uid"])


async def test_what_is_swept_has_a_line_with_its_node(harness: ControllerHarness) -> None:
    await _marked(harness, "gone")
    with capture_logs() as logs:
        await _sweep(harness)
    told = [(line["node"], line["result"]) for line in logs if line["event"] == "left by a case that is gone"]
    assert told == [("gpu-1", "Done")]
