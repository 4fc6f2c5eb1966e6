"""What a server says it serves."""

import pytest

from tests.harness.waiting import until

VERBS = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}


async def resources(api, path: str) -> dict[str, dict]:
    body = (await api.get(path)).ok()
    assert body["kind"] == "APIResourceList"
    return {one["name"]: one for one in body["resources"]}


async def test_the_core_versions(api):
    body = (await api.get("/api")).ok()
    assert (body["kind"], body["versions"]) == ("APIVersions", ["v1"])


async def test_the_groups_with_their_preferred_versions(api, widgets):
    body = (await api.get("/apis")).ok()
    assert body["kind"] == "APIGroupList"
    preferred = {one["name"]: one["preferredVersion"]["groupVersion"] for one in body["groups"]}
    expected = ("apps/v1", "policy/v1", "coordination.k8s.io/v1", "apiextensions.k8s.io/v1", f"{widgets.group}/v1")
    for version in expected:
        assert preferred[version.partition("/")[0]] == version


async def test_one_group(api):
    body = (await api.get("/apis/policy")).ok()
    assert (body["kind"], body["name"]) == ("APIGroup", "policy")
    assert body["preferredVersion"] == {"groupVersion": "policy/v1", "version": "v1"}


async def test_the_core_resources_that_we_and_kubectl_use(api):
    found = await resources(api, "/api/v1")
    assert found["nodes"]["kind"] == "Node"
    assert found["nodes"]["namespaced"] is False
    assert found["nodes"]["shortNames"] == ["no"]
    assert set(found["nodes"]["verbs"]) == VERBS
    assert (found["pods"]["kind"], found["pods"]["namespaced"]) == ("Pod", True)
    assert set(found) >= {"nodes/status", "pods/status", "pods/eviction", "serviceaccounts/token", "events", "secrets"}
    eviction = found["pods/eviction"]
    assert (eviction["kind"], eviction["group"], eviction["version"]) == ("Eviction", "policy", "v1")
    assert eviction["verbs"] == ["create"]


@pytest.mark.parametrize(
    ("version", "resource", "kind"),
    [
        ("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget"),
        ("coordination.k8s.io/v1", "leases", "Lease"),
        ("events.k8s.io/v1", "events", "Event"),
        ("apps/v1", "daemonsets", "DaemonSet"),
        ("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition"),
        ("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole"),
    ],
)
async def test_the_resources_of_a_group(api, version, resource, kind):
    assert (await resources(api, f"/apis/{version}"))[resource]["kind"] == kind


async def test_a_custom_kind_with_its_short_names_categories_and_status(api, widgets):
    found = await resources(api, f"/apis/{widgets.group}/v1")
    custom = found[widgets.plural]
    assert (custom["kind"], custom["namespaced"], custom["singularName"]) == (widgets.kind, False, widgets.plural)
    assert custom["shortNames"] == [f"{widgets.plural}sh"]
    assert custom["categories"] == [f"{widgets.plural}toys"]
    assert set(custom["verbs"]) == VERBS
    assert set(found[f"{widgets.plural}/status"]["verbs"]) == {"get", "patch", "update"}


async def test_a_group_that_is_not_there_is_not_found(api):
    assert (await api.get("/apis/nobody.example")).status == 404
    assert (await api.get("/apis/nobody.example/v1")).status == 404


async def test_the_version(api):
    body = (await api.get("/version")).ok()
    assert body["gitVersion"].startswith(f"v{body['major']}.{body['minor']}.")
    assert (body["major"], body["minor"]) == ("1", "37")


@pytest.mark.parametrize("path", ["/readyz", "/livez", "/healthz"])
async def test_health_is_told_as_plain_text(server, path):
    reply = await server.transport.request("GET", path)
    assert (reply.status, reply.body) == (200, b"ok")


async def test_the_schema_of_every_group_is_offered(api, widgets):
    async def offered():
        paths = (await api.get("/openapi/v3")).ok()["paths"]
        return {"api/v1", "apis/policy/v1", f"apis/{widgets.group}/v1"} <= set(paths)

    await until(offered)
