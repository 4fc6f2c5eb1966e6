"""Deleting: at once, under preconditions, behind finalizers, and Pods with their grace."""

import uuid

import pytest

from tests.contract.api.calls import config_map, fresh, node

FINALIZER = "remediator.dev/test"


def held(name: str) -> dict:
    body = config_map(name, x="1")
    body["metadata"]["finalizers"] = [FINALIZER]
    return body


async def test_a_deleted_object_is_gone(api, configmaps):
    made = (await api.post(configmaps, config_map("a"))).ok(201)
    answer = (await api.delete(f"{configmaps}/a")).ok()
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"] == {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    (await api.get(f"{configmaps}/a")).refused(404, "NotFound")


async def test_deleting_what_is_not_there_is_not_found(api, configmaps):
    (await api.delete(f"{configmaps}/absent")).refused(404, "NotFound")


async def test_an_object_made_again_has_another_uid(api, configmaps):
    first = (await api.post(configmaps, config_map("a"))).ok(201)
    (await api.delete(f"{configmaps}/a")).ok()
    second = (await api.post(configmaps, config_map("a"))).ok(201)
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
async def test_a_deletion_under_a_precondition_that_fails_is_a_conflict(api, configmaps, field):
    (await api.post(configmaps, config_map("a"))).ok(201)
    wrong = {"uid": str(uuid.uuid4()), "resourceVersion": "1"}[field]
    body = (await api.delete(f"{configmaps}/a", {"preconditions": {field: wrong}})).refused(409, "Conflict")
    assert f"in the precondition ({wrong}) do" in body["message"]
    (await api.get(f"{configmaps}/a")).ok()


async def test_a_deletion_under_preconditions_that_hold_is_done(api, configmaps):
    meta = (await api.post(configmaps, config_map("a"))).ok(201)["metadata"]
    conditions = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    (await api.delete(f"{configmaps}/a", {"preconditions": conditions})).ok()
    (await api.get(f"{configmaps}/a")).refused(404, "NotFound")


async def test_a_finalizer_keeps_a_deleted_object_until_it_is_removed(api, configmaps):
    made = (await api.post(configmaps, held("a"))).ok(201)
    marked = (await api.delete(f"{configmaps}/a")).ok()
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    there = (await api.get(f"{configmaps}/a")).ok()
    assert there["metadata"]["uid"] == made["metadata"]["uid"]
    assert there["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
    (await api.patch(f"{configmaps}/a", {"metadata": {"finalizers": None}})).ok()
    (await api.get(f"{configmaps}/a")).refused(404, "NotFound")


async def test_deleting_twice_behind_a_finalizer_keeps_the_first_mark(api, configmaps):
    (await api.post(configmaps, held("a"))).ok(201)
    first = (await api.delete(f"{configmaps}/a")).ok()
    second = (await api.delete(f"{configmaps}/a")).ok()
    assert first["metadata"]["deletionTimestamp"] == second["metadata"]["deletionTimestamp"]


async def test_an_object_goes_with_the_last_of_several_finalizers(api, configmaps):
    body = held("a")
    body["metadata"]["finalizers"].append("remediator.dev/second")
    (await api.post(configmaps, body)).ok(201)
    (await api.delete(f"{configmaps}/a")).ok()
    (await api.patch(f"{configmaps}/a", {"metadata": {"finalizers": ["remediator.dev/second"]}})).ok()
    (await api.get(f"{configmaps}/a")).ok()
    (await api.patch(f"{configmaps}/a", {"metadata": {"finalizers": []}})).ok()
    (await api.get(f"{configmaps}/a")).refused(404, "NotFound")


async def test_an_object_goes_when_a_replacement_drops_its_last_finalizer(api, configmaps):
    (await api.post(configmaps, held("a"))).ok(201)
    marked = (await api.delete(f"{configmaps}/a")).ok()
    del marked["metadata"]["finalizers"]
    (await api.put(f"{configmaps}/a", marked)).ok()
    (await api.get(f"{configmaps}/a")).refused(404, "NotFound")


async def test_no_finalizer_can_be_added_to_a_deleted_object(api, configmaps):
    (await api.post(configmaps, held("a"))).ok(201)
    (await api.delete(f"{configmaps}/a")).ok()
    answer = await api.patch(f"{configmaps}/a", {"metadata": {"finalizers": [FINALIZER, "remediator.dev/late"]}})
    answer.refused(422, "Invalid")
    assert ("metadata.finalizers", "FieldValueForbidden") in answer.causes()


async def test_a_deleted_object_behind_a_finalizer_can_still_be_changed(api, configmaps):
    (await api.post(configmaps, held("a"))).ok(201)
    (await api.delete(f"{configmaps}/a")).ok()
    assert (await api.patch(f"{configmaps}/a", {"data": {"x": "2"}})).ok()["data"] == {"x": "2"}


async def test_the_deletion_mark_cannot_be_written(api, configmaps):
    (await api.post(configmaps, held("a"))).ok(201)
    answer = await api.patch(f"{configmaps}/a", {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    answer.refused(422, "Invalid")
    assert ("metadata.deletionTimestamp", "FieldValueInvalid") in answer.causes()


async def test_the_deletion_mark_cannot_be_removed(api, configmaps):
    (await api.post(configmaps, held("a"))).ok(201)
    (await api.delete(f"{configmaps}/a")).ok()
    (await api.patch(f"{configmaps}/a", {"metadata": {"deletionTimestamp": None}, "data": {"x": "2"}})).ok()
    assert (await api.get(f"{configmaps}/a")).ok()["metadata"]["deletionTimestamp"]


async def test_a_name_is_taken_while_its_deleted_object_is_held(api, configmaps):
    (await api.post(configmaps, held("a"))).ok(201)
    (await api.delete(f"{configmaps}/a")).ok()
    (await api.post(configmaps, config_map("a"))).refused(409, "AlreadyExists")


async def test_a_pod_on_a_node_is_marked_with_its_grace_and_stays(api, pods, pod):
    (await api.post(pods, pod("p"))).ok(201)
    marked = (await api.delete(f"{pods}/p")).ok()
    assert marked["kind"] == "Pod"
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    assert (await api.get(f"{pods}/p")).ok()["metadata"]["deletionTimestamp"]


async def test_a_pod_takes_the_grace_of_its_spec_or_of_the_request(api, pods, pod):
    (await api.post(pods, pod("own", terminationGracePeriodSeconds=7))).ok(201)
    assert (await api.delete(f"{pods}/own")).ok()["metadata"]["deletionGracePeriodSeconds"] == 7
    (await api.post(pods, pod("asked"))).ok(201)
    marked = (await api.delete(f"{pods}/asked", {"gracePeriodSeconds": 3})).ok()
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 3


async def test_a_second_deletion_may_shorten_the_grace_of_a_pod(api, pods, pod):
    (await api.post(pods, pod("p"))).ok(201)
    (await api.delete(f"{pods}/p")).ok()
    assert (await api.delete(f"{pods}/p", gracePeriodSeconds=5)).ok()["metadata"]["deletionGracePeriodSeconds"] == 5
    assert (await api.delete(f"{pods}/p", gracePeriodSeconds=9)).ok()["metadata"]["deletionGracePeriodSeconds"] == 5


async def test_a_pod_deleted_with_grace_zero_is_gone_at_once(api, pods, pod):
    (await api.post(pods, pod("p"))).ok(201)
    (await api.delete(f"{pods}/p", gracePeriodSeconds=0)).ok()
    (await api.get(f"{pods}/p")).refused(404, "NotFound")


async def test_a_pod_that_has_finished_is_gone_at_once(api, pods, pod):
    (await api.post(pods, pod("p"))).ok(201)
    (await api.patch(f"{pods}/p/status", {"status": {"phase": "Succeeded"}})).ok()
    (await api.delete(f"{pods}/p")).ok()
    (await api.get(f"{pods}/p")).refused(404, "NotFound")


async def test_a_pod_without_a_node_is_gone_at_once(api, pods, pod):
    (await api.post(pods, pod("p", nodeName="", schedulingGates=[{"name": "remediator.dev/never"}]))).ok(201)
    (await api.delete(f"{pods}/p")).ok()
    (await api.get(f"{pods}/p")).refused(404, "NotFound")


async def test_a_pod_with_a_finalizer_outlives_grace_zero(api, pods, pod):
    body = pod("p")
    body["metadata"]["finalizers"] = [FINALIZER]
    (await api.post(pods, body)).ok(201)
    (await api.delete(f"{pods}/p", gracePeriodSeconds=0)).ok()
    there = (await api.get(f"{pods}/p")).ok()
    assert there["metadata"]["deletionGracePeriodSeconds"] == 0
    (await api.patch(f"{pods}/p", {"metadata": {"finalizers": None}})).ok()
    (await api.get(f"{pods}/p")).refused(404, "NotFound")


async def test_a_pod_marked_with_grace_outlives_the_removal_of_its_finalizer(api, pods, pod):
    body = pod("p")
    body["metadata"]["finalizers"] = [FINALIZER]
    (await api.post(pods, body)).ok(201)
    (await api.delete(f"{pods}/p")).ok()
    (await api.patch(f"{pods}/p", {"metadata": {"finalizers": None}})).ok()
    assert (await api.get(f"{pods}/p")).ok()["metadata"]["deletionTimestamp"]


async def test_a_collection_is_deleted_by_its_selector(api, configmaps):
    for name, tier in (("a", "x"), ("b", "x"), ("c", "y")):
        (await api.post(configmaps, config_map(name, labels={"tier": tier}))).ok(201)
    (await api.delete(configmaps, labelSelector="tier=x")).ok()
    left = {item["metadata"]["name"] for item in (await api.get(configmaps, labelSelector="tier")).ok()["items"]}
    assert left == {"c"}


async def test_a_deleted_node_is_gone_with_its_finalizer(api):
    name = fresh("node")
    (await api.post("/api/v1/nodes", node(name, finalizers=[FINALIZER]))).ok(201)
    assert (await api.delete(f"/api/v1/nodes/{name}")).ok()["metadata"]["deletionTimestamp"]
    (await api.patch(f"/api/v1/nodes/{name}", {"metadata": {"finalizers": []}})).ok()
    (await api.get(f"/api/v1/nodes/{name}")).refused(404, "NotFound")
