"""Custom kinds: served, defaulted, pruned, with generation and status."""

import uuid

from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator_sim.apiserver.patch import JSON_PATCH
from tests.contract.api.calls import fresh
from tests.contract.api.widgets import schema_of_spec
from tests.harness.waiting import until


async def test_a_crd_becomes_established_and_says_what_it_accepted(api, widgets):
    status = (await api.get(widgets.crd_path)).ok()["status"]
    said = {one["type"]: one["status"] for one in status["conditions"]}
    assert said["NamesAccepted"] == said["Established"] == "True"
    assert status["acceptedNames"]["plural"] == widgets.plural
    assert status["storedVersions"] == ["v1"]


async def test_a_crd_gets_the_names_that_it_leaves_out(api, widgets):
    names = (await api.get(widgets.crd_path)).ok()["spec"]["names"]
    assert names["singular"] == widgets.kind.lower()
    assert names["listKind"] == f"{widgets.kind}List"


async def test_a_crd_under_a_name_that_is_not_its_own_is_refused(api, own_widgets):
    body = own_widgets.crd()
    body["metadata"]["name"] = fresh("wrong")
    answer = await api.post(own_widgets.crd_path.rpartition("/")[0], body)
    answer.refused(422, "Invalid")
    assert ("metadata.name", "FieldValueInvalid") in answer.causes()


async def test_objects_of_a_kind_whose_crd_is_deleted_are_gone(api, own_widgets):
    (await api.post(own_widgets.path, own_widgets.body("a"))).ok(201)
    (await api.delete(own_widgets.crd_path)).ok()

    async def unknown():
        return (await api.get(f"{own_widgets.path}/a")).status == 404

    await until(unknown)


async def test_a_custom_object_gets_identity_version_and_generation_1(api, widgets):
    meta = (await api.post(widgets.path, widgets.body("a"))).ok(201)["metadata"]
    assert meta["generation"] == 1
    assert str(uuid.UUID(meta["uid"])) == meta["uid"]
    assert meta["resourceVersion"]
    assert "namespace" not in meta


async def test_missing_fields_get_their_defaults_inside_objects_too(api, widgets):
    made = (await api.post(widgets.path, widgets.body("a"))).ok(201)
    assert made["spec"] == {"node": "gpu-1", "mode": "Enforce", "verify": {"settle": "5m"}}
    given = (await api.post(widgets.path, widgets.body("b", mode="DryRun", verify={"probe": "x"}))).ok(201)
    assert given["spec"] == {"node": "gpu-1", "mode": "DryRun", "verify": {"settle": "5m", "probe": "x"}}


async def test_a_null_where_a_default_is_gets_the_default(api, widgets):
    made = (await api.post(widgets.path, widgets.body("a", mode=None))).ok(201)
    assert made["spec"]["mode"] == "Enforce"


async def test_a_default_comes_back_when_a_patch_removes_the_field(api, widgets):
    (await api.post(widgets.path, widgets.body("a", mode="DryRun"))).ok(201)
    assert (await api.patch(f"{widgets.path}/a", {"spec": {"mode": None}})).ok()["spec"]["mode"] == "Enforce"


async def test_unknown_fields_are_pruned_except_where_they_are_kept(api, widgets):
    body = widgets.body("a", whenn=[], verify={"settel": "1m"}, anything={"at": {"all": 1}})
    made = (await api.post(widgets.path, {**body, "extra": 1})).ok(201)
    assert "whenn" not in made["spec"]
    assert "settel" not in made["spec"]["verify"]
    assert made["spec"]["anything"] == {"at": {"all": 1}}
    assert "extra" not in made


async def test_a_status_given_at_creation_is_dropped(api, widgets):
    made = (await api.post(widgets.path, {**widgets.body("a"), "status": {"phase": "Held"}})).ok(201)
    assert "status" not in made


async def test_the_generation_moves_with_the_spec_only(api, widgets):
    (await api.post(widgets.path, widgets.body("a"))).ok(201)
    path = f"{widgets.path}/a"
    labelled = (await api.patch(path, {"metadata": {"labels": {"a": "b"}}})).ok()
    assert labelled["metadata"]["generation"] == 1
    told = (await api.patch(f"{path}/status", {"status": {"phase": "Held"}})).ok()
    assert told["metadata"]["generation"] == 1
    changed = (await api.patch(path, {"spec": {"rungs": 3}})).ok()
    assert changed["metadata"]["generation"] == 2


async def test_the_generation_cannot_be_written(api, widgets):
    (await api.post(widgets.path, widgets.body("a"))).ok(201)
    changed = (await api.patch(f"{widgets.path}/a", {"metadata": {"generation": 9}, "spec": {"rungs": 3}})).ok()
    assert changed["metadata"]["generation"] == 2


async def test_the_generation_moves_with_deletion_behind_a_finalizer(api, widgets):
    body = widgets.body("a")
    body["metadata"]["finalizers"] = ["remediator.dev/test"]
    (await api.post(widgets.path, body)).ok(201)
    marked = (await api.delete(f"{widgets.path}/a")).ok()
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["generation"] == 2
    (await api.patch(f"{widgets.path}/a", {"metadata": {"finalizers": []}})).ok()
    (await api.get(f"{widgets.path}/a")).refused(404, "NotFound")


async def test_status_and_the_rest_are_written_apart(api, widgets):
    (await api.post(widgets.path, widgets.body("a"))).ok(201)
    path, both = f"{widgets.path}/a", {"spec": {"rungs": 3}, "status": {"phase": "Held"}}
    through_status = (await api.patch(f"{path}/status", both)).ok()
    assert "rungs" not in through_status["spec"]
    assert through_status["status"] == {"phase": "Held"}
    through_main = (await api.patch(path, {"spec": {"rungs": 4}, "status": {"phase": "Gone"}})).ok()
    assert (through_main["spec"]["rungs"], through_main["status"]) == (4, {"phase": "Held"})


async def test_labels_are_not_written_through_status(api, widgets):
    (await api.post(widgets.path, widgets.body("a"))).ok(201)
    change = {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Held"}}
    assert "labels" not in (await api.patch(f"{widgets.path}/a/status", change)).ok()["metadata"]


async def test_status_is_replaced_by_put_under_its_version(api, widgets):
    made = (await api.post(widgets.path, widgets.body("a"))).ok(201)
    first = (await api.put(f"{widgets.path}/a/status", {**made, "status": {"phase": "Held"}})).ok()
    assert first["status"] == {"phase": "Held"}
    (await api.put(f"{widgets.path}/a/status", {**made, "status": {"phase": "Late"}})).refused(409, "Conflict")


async def test_a_patch_under_an_old_version_is_a_conflict(api, widgets):
    old = (await api.post(widgets.path, widgets.body("a"))).ok(201)["metadata"]["resourceVersion"]
    (await api.patch(f"{widgets.path}/a", {"spec": {"rungs": 2}})).ok()
    late = {"metadata": {"resourceVersion": old}, "status": {"claims": ["x"]}}
    (await api.patch(f"{widgets.path}/a/status", late)).refused(409, "Conflict")


async def test_replacing_a_custom_object_needs_a_version(api, widgets):
    (await api.post(widgets.path, widgets.body("a"))).ok(201)
    answer = await api.put(f"{widgets.path}/a", widgets.body("a", rungs=2))
    answer.refused(422, "Invalid")
    assert ("metadata.resourceVersion", "FieldValueInvalid") in answer.causes()


async def test_a_custom_object_takes_json_patches(api, widgets):
    (await api.post(widgets.path, widgets.body("a", rungs=2))).ok(201)
    operations = [
        {"op": "test", "path": "/spec/rungs", "value": 2},
        {"op": "add", "path": "/spec/rungs", "value": 3},
    ]
    assert (await api.patch(f"{widgets.path}/a", operations, JSON_PATCH)).ok()["spec"]["rungs"] == 3


async def test_a_custom_object_takes_no_strategic_merge(api, widgets):
    (await api.post(widgets.path, widgets.body("a"))).ok(201)
    answer = await api.patch(f"{widgets.path}/a", {"spec": {}}, STRATEGIC_PATCH)
    answer.refused(415, "UnsupportedMediaType")


async def test_custom_objects_are_listed_watched_and_selected(api, widgets):
    body = widgets.body("a")
    body["metadata"]["labels"] = {"node": "gpu-1"}
    (await api.post(widgets.path, body)).ok(201)
    (await api.post(widgets.path, widgets.body("b"))).ok(201)
    listed = (await api.get(widgets.path, labelSelector="node=gpu-1")).ok()
    assert listed["kind"] == f"{widgets.kind}List"
    assert [(item["kind"], item["metadata"]["name"]) for item in listed["items"]] == [(widgets.kind, "a")]
    async with api.watch(widgets.path, resourceVersion=listed["metadata"]["resourceVersion"]) as watch:
        (await api.patch(f"{widgets.path}/a/status", {"status": {"phase": "Held"}})).ok()
        (await api.delete(f"{widgets.path}/b")).ok()
        assert await watch.take(2) == [("MODIFIED", "a"), ("DELETED", "b")]


async def test_a_missing_custom_object_names_its_group_and_plural(api, widgets):
    body = (await api.get(f"{widgets.path}/absent")).refused(404, "NotFound")
    assert body["details"] == {"name": "absent", "group": widgets.group, "kind": widgets.plural}
    assert body["message"] == f'{widgets.plural}.{widgets.group} "absent" not found'


async def test_a_changed_schema_is_honoured_soon(api, own_widgets):
    crd = (await api.get(own_widgets.crd_path)).ok()
    schema_of_spec(crd)["properties"]["mode"]["enum"].append("Paused")
    (await api.put(own_widgets.crd_path, crd)).ok()

    async def accepted():
        return (await api.post(own_widgets.path, own_widgets.body(fresh(), mode="Paused"))).status == 201

    await until(accepted)
