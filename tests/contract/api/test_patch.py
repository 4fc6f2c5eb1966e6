"""The patch types: JSON, merge and strategic merge."""

import pytest

from remediator.kube.wire.transport import MERGE_PATCH, STRATEGIC_PATCH
from remediator_sim.apiserver.patch import JSON_PATCH
from tests.contract.api.calls import config_map

APPLY_PATCH = "application/apply-patch+yaml"


def condition(kind: str, status: str, **more: str) -> dict:
    return {"type": kind, "status": status, **more}


async def conditions(api, path: str) -> dict[str, dict]:
    """The conditions of an object by type; those that a controller of nodes adds are left out."""
    found = (await api.get(path)).ok().get("status", {}).get("conditions", [])
    return {one["type"]: one for one in found if one["type"] in ("GpuLost", "XidError", "Stale")}


async def test_a_merge_patch_adds_changes_and_removes(api, configmaps):
    (await api.post(configmaps, config_map("a", stays="1", goes="1", changes="1"))).ok(201)
    patch = {"data": {"goes": None, "changes": "2", "comes": "1", "never": None}}
    assert (await api.patch(f"{configmaps}/a", patch)).ok()["data"] == {"stays": "1", "changes": "2", "comes": "1"}


async def test_a_merge_patch_replaces_lists_whole(api, configmaps):
    body = config_map("a")
    body["metadata"]["finalizers"] = ["remediator.dev/a", "remediator.dev/b"]
    (await api.post(configmaps, body)).ok(201)
    patched = (await api.patch(f"{configmaps}/a", {"metadata": {"finalizers": ["remediator.dev/b"]}})).ok()
    assert patched["metadata"]["finalizers"] == ["remediator.dev/b"]


@pytest.mark.parametrize("kind", [MERGE_PATCH, STRATEGIC_PATCH])
async def test_a_patch_that_names_an_old_version_is_a_conflict(api, configmaps, kind):
    old = (await api.post(configmaps, config_map("a", x="1"))).ok(201)["metadata"]["resourceVersion"]
    new = (await api.patch(f"{configmaps}/a", {"data": {"x": "2"}})).ok()["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": old}, "data": {"x": "3"}}
    (await api.patch(f"{configmaps}/a", patch, kind)).refused(409, "Conflict")
    patch["metadata"]["resourceVersion"] = new
    assert (await api.patch(f"{configmaps}/a", patch, kind)).ok()["data"] == {"x": "3"}


async def test_a_patch_cannot_change_the_uid(api, configmaps):
    (await api.post(configmaps, config_map("a"))).ok(201)
    patch = {"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}}
    answer = await api.patch(f"{configmaps}/a", patch)
    answer.refused(422, "Invalid")
    assert ("metadata.uid", "FieldValueInvalid") in answer.causes()


async def test_a_patch_cannot_rename(api, configmaps):
    (await api.post(configmaps, config_map("a"))).ok(201)
    (await api.patch(f"{configmaps}/a", {"metadata": {"name": "b"}})).refused(400, "BadRequest")


async def test_a_patch_of_what_is_not_there_is_not_found(api, configmaps):
    (await api.patch(f"{configmaps}/absent", {"data": {"x": "1"}})).refused(404, "NotFound")


async def test_a_patch_is_checked_strictly_where_asked(api, configmaps):
    (await api.post(configmaps, config_map("a"))).ok(201)
    answer = await api.patch(f"{configmaps}/a", {"dats": {"x": "1"}}, fieldValidation="Strict")
    assert 'unknown field "dats"' in answer.refused(422, "Invalid")["message"]


async def test_a_json_patch_does_its_operations_in_order(api, configmaps):
    (await api.post(configmaps, config_map("a", x="1", y="1", z="1"))).ok(201)
    operations = [
        {"op": "test", "path": "/data/x", "value": "1"},
        {"op": "replace", "path": "/data/x", "value": "2"},
        {"op": "remove", "path": "/data/y"},
        {"op": "add", "path": "/data/w", "value": "1"},
        {"op": "copy", "from": "/data/x", "path": "/data/copied"},
        {"op": "move", "from": "/data/z", "path": "/data/moved"},
    ]
    patched = (await api.patch(f"{configmaps}/a", operations, JSON_PATCH)).ok()
    assert patched["data"] == {"x": "2", "w": "1", "copied": "2", "moved": "1"}


async def test_a_json_patch_reads_escaped_names(api, configmaps):
    (await api.post(configmaps, config_map("a", labels={"example.com/x": "1"}))).ok(201)
    operations = [{"op": "replace", "path": "/metadata/labels/example.com~1x", "value": "2"}]
    patched = (await api.patch(f"{configmaps}/a", operations, JSON_PATCH)).ok()
    assert patched["metadata"]["labels"] == {"example.com/x": "2"}


async def test_a_json_patch_adds_to_lists_by_place_and_at_the_end(api, node_path):
    taints = [{"key": f"example.com/{name}", "value": name, "effect": "PreferNoSchedule"} for name in "abc"]
    (await api.patch(node_path, {"spec": {"taints": [taints[1]]}})).ok()
    operations = [
        {"op": "add", "path": "/spec/taints/0", "value": taints[0]},
        {"op": "add", "path": "/spec/taints/-", "value": taints[2]},
    ]
    patched = (await api.patch(node_path, operations, JSON_PATCH)).ok()
    assert [taint["value"] for taint in patched["spec"]["taints"]] == ["a", "b", "c"]


async def test_a_json_patch_whose_test_fails_writes_nothing(api, configmaps):
    (await api.post(configmaps, config_map("a", x="1"))).ok(201)
    operations = [
        {"op": "replace", "path": "/data/x", "value": "2"},
        {"op": "test", "path": "/data/x", "value": "1"},
    ]
    (await api.patch(f"{configmaps}/a", operations, JSON_PATCH)).refused(422, "Invalid")
    assert (await api.get(f"{configmaps}/a")).ok()["data"] == {"x": "1"}


async def test_a_json_patch_cannot_remove_what_is_not_there(api, configmaps):
    (await api.post(configmaps, config_map("a", x="1"))).ok(201)
    operations = [{"op": "remove", "path": "/data/absent"}]
    (await api.patch(f"{configmaps}/a", operations, JSON_PATCH)).refused(422, "Invalid")


async def test_a_json_patch_may_replace_a_key_that_is_not_there(api, configmaps):
    (await api.post(configmaps, config_map("a", x="1"))).ok(201)
    operations = [{"op": "replace", "path": "/data/absent", "value": "2"}]
    patched = (await api.patch(f"{configmaps}/a", operations, JSON_PATCH)).ok()
    assert patched["data"] == {"x": "1", "absent": "2"}


async def test_a_json_patch_into_a_parent_that_is_not_there_is_refused(api, node_path):
    operations = [{"op": "add", "path": "/status/absent/x", "value": "1"}]
    (await api.patch(node_path, operations, JSON_PATCH)).refused(422, "Invalid")


async def test_an_unknown_patch_type_is_refused(api, configmaps):
    (await api.post(configmaps, config_map("a"))).ok(201)
    (await api.patch(f"{configmaps}/a", {}, "application/json")).refused(415, "UnsupportedMediaType")


@pytest.mark.parametrize("server", ["memory", "http"], indirect=True)  # a real server applies; nothing of ours asks
async def test_an_apply_patch_is_refused_clearly_by_the_embedded_server(api, configmaps):
    (await api.post(configmaps, config_map("a"))).ok(201)
    answer = await api.patch(f"{configmaps}/a", config_map("a"), APPLY_PATCH, fieldManager="test")
    assert APPLY_PATCH not in answer.refused(415, "UnsupportedMediaType")["message"]


async def test_strategic_merge_keeps_the_conditions_of_others(api, node_path):
    first = {"status": {"conditions": [condition("GpuLost", "False", reason="Fine")]}}
    second = {"status": {"conditions": [condition("XidError", "True", reason="Xid79")]}}
    (await api.patch(f"{node_path}/status", first, STRATEGIC_PATCH)).ok()
    (await api.patch(f"{node_path}/status", second, STRATEGIC_PATCH)).ok()
    both = await conditions(api, node_path)
    assert (both["GpuLost"]["reason"], both["XidError"]["reason"]) == ("Fine", "Xid79")


async def test_strategic_merge_changes_one_condition_field_by_field(api, node_path):
    made = condition("GpuLost", "True", reason="Lost", message="GPU 3 is gone")
    (await api.patch(f"{node_path}/status", {"status": {"conditions": [made]}}, STRATEGIC_PATCH)).ok()
    change = {"status": {"conditions": [condition("GpuLost", "False")]}}
    (await api.patch(f"{node_path}/status", change, STRATEGIC_PATCH)).ok()
    found = (await conditions(api, node_path))["GpuLost"]
    assert (found["status"], found["reason"], found["message"]) == ("False", "Lost", "GPU 3 is gone")


async def test_strategic_merge_deletes_one_condition_by_directive(api, node_path):
    both = [condition("GpuLost", "True"), condition("XidError", "True")]
    (await api.patch(f"{node_path}/status", {"status": {"conditions": both}}, STRATEGIC_PATCH)).ok()
    removal = {"status": {"conditions": [{"type": "GpuLost", "$patch": "delete"}]}}
    (await api.patch(f"{node_path}/status", removal, STRATEGIC_PATCH)).ok()
    assert set(await conditions(api, node_path)) == {"XidError"}


async def test_strategic_merge_replaces_a_list_by_directive(api, node_path):
    both = [condition("GpuLost", "True"), condition("XidError", "True")]
    (await api.patch(f"{node_path}/status", {"status": {"conditions": both}}, STRATEGIC_PATCH)).ok()
    instead = {"status": {"conditions": [{"$patch": "replace"}, condition("Stale", "True")]}}
    (await api.patch(f"{node_path}/status", instead, STRATEGIC_PATCH)).ok()
    assert set(await conditions(api, node_path)) == {"Stale"}


async def test_strategic_merge_takes_taints_as_one_value(api, node_path):
    first = {"key": "example.com/a", "effect": "PreferNoSchedule"}
    second = {"key": "example.com/b", "effect": "PreferNoSchedule"}
    (await api.patch(node_path, {"spec": {"taints": [first]}}, STRATEGIC_PATCH)).ok()
    patched = (await api.patch(node_path, {"spec": {"taints": [second]}}, STRATEGIC_PATCH)).ok()
    assert patched["spec"]["taints"] == [second]


async def test_strategic_merge_finds_containers_and_their_environment_by_name(api, pods, pod):
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]
    body = pod("p")
    body["spec"]["containers"] = [{"name": "main", "image": "none:1", "env": env}, {"name": "side", "image": "none:1"}]
    (await api.post(pods, body)).ok(201)
    change = {"spec": {"containers": [{"name": "side", "image": "none:2"}]}}
    patched = (await api.patch(f"{pods}/p", change, STRATEGIC_PATCH)).ok()
    images = {one["name"]: one["image"] for one in patched["spec"]["containers"]}
    assert images == {"main": "none:1", "side": "none:2"}
    main = next(one for one in patched["spec"]["containers"] if one["name"] == "main")
    assert main["env"] == env


async def test_strategic_merge_adds_to_finalizers_and_removes_from_them(api, configmaps):
    body = config_map("a")
    body["metadata"]["finalizers"] = ["remediator.dev/a"]
    (await api.post(configmaps, body)).ok(201)
    more = {"metadata": {"finalizers": ["remediator.dev/b"]}}
    patched = (await api.patch(f"{configmaps}/a", more, STRATEGIC_PATCH)).ok()
    assert set(patched["metadata"]["finalizers"]) == {"remediator.dev/a", "remediator.dev/b"}
    less = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["remediator.dev/a"]}}
    patched = (await api.patch(f"{configmaps}/a", less, STRATEGIC_PATCH)).ok()
    assert patched["metadata"]["finalizers"] == ["remediator.dev/b"]


async def test_strategic_merge_removes_a_key_by_null_and_a_map_by_directive(api, configmaps):
    (await api.post(configmaps, config_map("a", x="1", y="1"))).ok(201)
    assert (await api.patch(f"{configmaps}/a", {"data": {"x": None}}, STRATEGIC_PATCH)).ok()["data"] == {"y": "1"}
    instead = {"data": {"$patch": "replace", "z": "1"}}
    assert (await api.patch(f"{configmaps}/a", instead, STRATEGIC_PATCH)).ok()["data"] == {"z": "1"}


async def test_strategic_merge_keeps_only_the_named_keys(api, pods, pod):
    body = pod("p", volumes=[{"name": "v", "emptyDir": {}}])
    (await api.post(pods, body)).ok(201)
    change = {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}}
    # A Pod's volumes cannot change: that the refusal speaks of that, and not of two sources, shows that one was left.
    body = (await api.patch(f"{pods}/p", change, STRATEGIC_PATCH)).refused(422, "Invalid")
    assert "pod updates may not change fields" in body["message"]
    assert "may not specify more than 1 volume type" not in body["message"]
