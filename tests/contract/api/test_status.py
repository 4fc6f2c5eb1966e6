"""The status subresource, and which writes move the generation."""

import pytest

from remediator.kube.wire.transport import MERGE_PATCH, STRATEGIC_PATCH


@pytest.mark.parametrize("kind", [MERGE_PATCH, STRATEGIC_PATCH])
async def test_a_patch_of_status_leaves_the_spec_alone(api, node_path, kind):
    change = {"spec": {"unschedulable": True}, "status": {"conditions": [{"type": "GpuLost", "status": "True"}]}}
    (await api.patch(f"{node_path}/status", change, kind)).ok()
    got = (await api.get(node_path)).ok()
    assert "unschedulable" not in got["spec"]
    assert "GpuLost" in {one["type"] for one in got["status"]["conditions"]}


@pytest.mark.parametrize("kind", [MERGE_PATCH, STRATEGIC_PATCH])
async def test_a_patch_of_a_pod_leaves_its_status_alone(api, pods, pod, kind):
    (await api.post(pods, pod("p"))).ok(201)
    change = {"metadata": {"annotations": {"a": "b"}}, "status": {"phase": "Failed"}}
    assert (await api.patch(f"{pods}/p", change, kind)).ok()["metadata"]["annotations"] == {"a": "b"}
    assert (await api.get(f"{pods}/p")).ok()["status"]["phase"] == "Pending"


async def test_a_replacement_of_status_leaves_the_spec_alone(api, pods, pod):
    made = (await api.post(pods, pod("p"))).ok(201)
    made["spec"]["containers"][0]["image"] = "none:2"
    made["status"]["phase"] = "Running"
    replaced = (await api.put(f"{pods}/p/status", made)).ok()
    assert replaced["spec"]["containers"][0]["image"] == "none:1"
    assert replaced["status"]["phase"] == "Running"


async def test_status_can_be_read_by_its_own_path(api, node_path):
    assert (await api.get(f"{node_path}/status")).ok()["kind"] == "Node"


async def test_a_new_pod_is_pending_whatever_its_status_says(api, pods, pod):
    made = (await api.post(pods, {**pod("p"), "status": {"phase": "Running"}})).ok(201)
    assert made["status"]["phase"] == "Pending"


async def test_a_stale_status_write_is_a_conflict(api, node_path):
    old = (await api.get(node_path)).ok()["metadata"]["resourceVersion"]
    (await api.patch(node_path, {"metadata": {"labels": {"a": "b"}}})).ok()
    change = {"metadata": {"resourceVersion": old}, "status": {"phase": "Running"}}
    (await api.patch(f"{node_path}/status", change)).refused(409, "Conflict")


async def test_the_status_of_what_is_not_there_is_not_found(api):
    (await api.patch("/api/v1/nodes/absent/status", {"status": {}})).refused(404, "NotFound")


async def test_a_subresource_that_a_kind_lacks_is_not_found(api, configmaps):
    (await api.post(configmaps, {"metadata": {"name": "a"}})).ok(201)
    assert (await api.patch(f"{configmaps}/a/status", {})).status == 404


async def test_what_a_running_pod_is_made_of_cannot_change(api, pods, pod):
    (await api.post(pods, pod("p"))).ok(201)
    answer = await api.patch(f"{pods}/p", {"spec": {"nodeName": "another"}})
    answer.refused(422, "Invalid")
    assert ("spec", "FieldValueForbidden") in answer.causes()
