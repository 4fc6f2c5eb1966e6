"""Creating, reading and replacing objects, and what the server writes into them."""

import datetime
import re
import uuid

from tests.contract.api.calls import config_map, fresh, node


async def test_a_created_object_comes_back_with_what_the_server_adds(api, configmaps, space):
    made = (await api.post(configmaps, config_map("a", x="1"))).ok(201)
    meta = made["metadata"]
    assert (made["kind"], made["apiVersion"], made["data"]) == ("ConfigMap", "v1", {"x": "1"})
    assert (meta["name"], meta["namespace"]) == ("a", space)
    assert str(uuid.UUID(meta["uid"])) == meta["uid"]
    assert isinstance(meta["resourceVersion"], str)
    assert meta["resourceVersion"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["creationTimestamp"])
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(meta["creationTimestamp"])
    assert abs(age) < datetime.timedelta(seconds=60)


async def test_get_gives_what_was_created(api, configmaps):
    made = (await api.post(configmaps, config_map("a", x="1"))).ok(201)
    got = (await api.get(f"{configmaps}/a")).ok()
    made["metadata"].pop("managedFields", None)
    got["metadata"].pop("managedFields", None)
    assert got == made


async def test_a_kind_and_version_may_be_left_out_of_the_body(api, configmaps):
    made = (await api.post(configmaps, {"metadata": {"name": "a"}})).ok(201)
    assert (made["kind"], made["apiVersion"]) == ("ConfigMap", "v1")


async def test_a_body_of_another_kind_is_refused(api, configmaps):
    (await api.post(configmaps, {**config_map("a"), "kind": "Secret"})).refused(400, "BadRequest")


async def test_a_body_that_is_no_object_is_refused(api, configmaps):
    (await api.post(configmaps, ["a"])).refused(400, "BadRequest")


async def test_a_name_taken_is_refused_as_already_exists(api, configmaps):
    (await api.post(configmaps, config_map("a"))).ok(201)
    body = (await api.post(configmaps, config_map("a"))).refused(409, "AlreadyExists")
    assert body["message"] == 'configmaps "a" already exists'
    assert body["details"] == {"name": "a", "kind": "configmaps"}


async def test_an_object_without_a_name_is_refused(api, configmaps):
    answer = await api.post(configmaps, {"metadata": {}})
    answer.refused(422, "Invalid")
    assert ("metadata.name", "FieldValueRequired") in answer.causes()


async def test_a_name_that_no_dns_knows_is_refused(api, configmaps):
    answer = await api.post(configmaps, config_map("Not_A_Name"))
    answer.refused(422, "Invalid")
    assert ("metadata.name", "FieldValueInvalid") in answer.causes()


async def test_generate_name_adds_a_random_tail(api, configmaps):
    body = {"metadata": {"generateName": "case-"}}
    names = {(await api.post(configmaps, body)).ok(201)["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(re.fullmatch("case-[a-z0-9]{5}", name) for name in names)


async def test_a_missing_object_is_not_found_by_name_and_kind(api, configmaps):
    body = (await api.get(f"{configmaps}/absent")).refused(404, "NotFound")
    assert body["message"] == 'configmaps "absent" not found'
    assert body["details"] == {"name": "absent", "kind": "configmaps"}


async def test_a_missing_object_of_a_group_names_its_group(api, space):
    answer = await api.get(f"/apis/coordination.k8s.io/v1/namespaces/{space}/leases/absent")
    details = answer.refused(404, "NotFound")["details"]
    assert details == {"name": "absent", "group": "coordination.k8s.io", "kind": "leases"}


async def test_a_resource_that_nobody_serves_is_not_found(api):
    assert (await api.get("/apis/nobody.example/v1/things")).status == 404


async def test_an_object_in_a_namespace_that_is_missing_is_not_found(api):
    space = fresh("absent")
    body = (await api.post(f"/api/v1/namespaces/{space}/configmaps", config_map("a"))).refused(404, "NotFound")
    assert body["message"] == f'namespaces "{space}" not found'


async def test_a_namespace_in_the_body_that_is_not_the_one_of_the_path_is_refused(api, configmaps):
    body = config_map("a")
    body["metadata"]["namespace"] = "default"
    (await api.post(configmaps, body)).refused(400, "BadRequest")


async def test_a_replaced_object_keeps_its_identity_and_moves_its_version(api, configmaps):
    made = (await api.post(configmaps, config_map("a", x="1"))).ok(201)
    replaced = (await api.put(f"{configmaps}/a", config_map("a", y="2"))).ok()
    assert replaced["data"] == {"y": "2"}
    assert replaced["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
    for field in ("uid", "creationTimestamp"):
        assert replaced["metadata"][field] == made["metadata"][field]


async def test_a_replacement_under_an_old_version_is_a_conflict(api, configmaps):
    made = (await api.post(configmaps, config_map("a", x="1"))).ok(201)
    (await api.patch(f"{configmaps}/a", {"data": {"x": "2"}})).ok()
    body = (await api.put(f"{configmaps}/a", made)).refused(409, "Conflict")
    assert body["details"] == {"name": "a", "kind": "configmaps"}
    assert "the object has been modified; please apply your changes to the latest version" in body["message"]
    assert (await api.get(f"{configmaps}/a")).ok()["data"] == {"x": "2"}


async def test_a_replacement_under_the_present_version_is_written(api, configmaps):
    made = (await api.post(configmaps, config_map("a", x="1"))).ok(201)
    made["data"] = {"x": "2"}
    assert (await api.put(f"{configmaps}/a", made)).ok()["data"] == {"x": "2"}


async def test_a_replacement_with_another_uid_is_a_conflict(api, configmaps):
    (await api.post(configmaps, config_map("a"))).ok(201)
    body = config_map("a", x="2")
    body["metadata"]["uid"] = str(uuid.uuid4())
    (await api.put(f"{configmaps}/a", body)).refused(409, "Conflict")


async def test_a_replacement_under_another_name_is_refused(api, configmaps):
    (await api.post(configmaps, config_map("a"))).ok(201)
    (await api.put(f"{configmaps}/a", config_map("b"))).refused(400, "BadRequest")


async def test_replacing_what_is_not_there_is_not_found(api, configmaps):
    body = config_map("absent")
    body["metadata"]["resourceVersion"] = "1"
    answer = await api.put(f"{configmaps}/absent", body)
    answer.refused(404, "NotFound")


async def test_a_write_that_changes_nothing_keeps_the_version(api, configmaps):
    made = (await api.post(configmaps, config_map("a", x="1"))).ok(201)
    same = (await api.patch(f"{configmaps}/a", {"data": {"x": "1"}})).ok()
    assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_a_created_object_may_not_name_a_version(api, configmaps):
    body = config_map("a")
    body["metadata"]["resourceVersion"] = "5"
    assert (await api.post(configmaps, body)).status >= 400


async def test_a_dry_run_answers_and_writes_nothing(api, configmaps):
    made = (await api.post(configmaps, config_map("a", x="1"), dryRun="All")).ok(201)
    assert made["metadata"]["uid"]
    (await api.get(f"{configmaps}/a")).refused(404, "NotFound")
    (await api.post(configmaps, config_map("a", x="1"))).ok(201)
    dry = (await api.patch(f"{configmaps}/a", {"data": {"x": "2"}}, dryRun="All")).ok()
    assert dry["data"] == {"x": "2"}
    (await api.put(f"{configmaps}/a", config_map("a", x="3"), dryRun="All")).ok()
    (await api.delete(f"{configmaps}/a", dryRun="All")).ok()
    assert (await api.get(f"{configmaps}/a")).ok()["data"] == {"x": "1"}


async def test_a_dry_run_of_a_taken_name_is_refused(api, configmaps):
    (await api.post(configmaps, config_map("a"))).ok(201)
    (await api.post(configmaps, config_map("a"), dryRun="All")).refused(409, "AlreadyExists")


async def test_an_unknown_field_of_a_built_in_kind_is_dropped(api, configmaps):
    made = (await api.post(configmaps, {**config_map("a"), "dats": {"x": "1"}})).ok(201)
    assert "dats" not in made


async def test_an_unknown_field_of_a_built_in_kind_is_refused_when_strict(api, configmaps):
    body = {**config_map("a"), "dats": {"x": "1"}}
    refusal = (await api.post(configmaps, body, fieldValidation="Strict")).refused(400, "BadRequest")
    assert 'unknown field "dats"' in refusal["message"]


async def test_an_unknown_field_is_told_as_a_warning(api, configmaps):
    answer = await api.post(configmaps, {**config_map("a"), "dats": {}}, fieldValidation="Warn")
    answer.ok(201)
    assert answer.headers["warning"] == r'299 - "unknown field \"dats\""'


async def test_a_field_of_the_wrong_type_is_refused(api, configmaps):
    assert (await api.post(configmaps, {"metadata": {"name": "a"}, "data": "x"})).status == 400


async def test_a_node_without_a_spec_is_accepted(api):
    name = fresh("node")
    made = (await api.post("/api/v1/nodes", node(name))).ok(201)
    assert "namespace" not in made["metadata"]
    (await api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"a": "b"}}})).ok()
    assert (await api.get(f"/api/v1/nodes/{name}")).ok()["metadata"]["labels"]["a"] == "b"


async def test_labels_and_annotations_must_have_valid_keys(api, configmaps):
    answer = await api.post(configmaps, config_map("a", labels={"no spaces": "x"}))
    answer.refused(422, "Invalid")
    assert ("metadata.labels", "FieldValueInvalid") in answer.causes()


async def test_a_label_value_longer_than_63_characters_is_refused(api, configmaps):
    (await api.post(configmaps, config_map("a", labels={"x": "y" * 64}))).refused(422, "Invalid")


async def test_who_asks_is_told_their_own_name(api):
    kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = (await api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", kind)).ok(201)
    assert answer["kind"] == "SelfSubjectReview"
    assert answer["status"]["userInfo"]["username"]


async def test_a_token_that_is_nobodys_is_not_authenticated(api):
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "a.b.c"}}
    answer = (await api.post("/apis/authentication.k8s.io/v1/tokenreviews", review)).ok(201)
    assert answer["kind"] == "TokenReview"
    assert not answer["status"].get("authenticated", False)
    assert answer["status"]["error"]


async def test_an_administrator_may_do_what_is_asked_about(api):
    about = {"verb": "get", "group": "remediator.dev", "resource": "noderemediations"}
    spec = {"resourceAttributes": about, "user": "alice", "groups": ["system:masters"], "extra": {"scope": ["all"]}}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    answer = (await api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)).ok(201)
    assert answer["status"]["allowed"] is True
