"""Lists and objects as the tables that `kubectl get` prints; asked for by a header, so only over HTTPS."""

import asyncio
import json
import ssl
import urllib.request

import pytest
import yaml

from tests.cluster import REAL
from tests.cluster.servers import serving
from tests.contract.api.calls import TABLE


@pytest.fixture(params=["http", REAL])
async def server(request):
    async with serving(request.param, request) as server:
        yield server


@pytest.fixture
def table(server):
    """Ask for a path as a Table."""
    config = yaml.safe_load(server.kubeconfig.read_text())
    user = config["users"][0]["user"]
    context = ssl.create_default_context(cafile=str(server.ca_file))
    if "client-certificate" in user:
        context.load_cert_chain(user["client-certificate"], user["client-key"])

    def ask(path, accept):
        headers = {"Accept": accept}
        if "token" in user:
            headers["Authorization"] = f"Bearer {user['token']}"
        request = urllib.request.Request(server.url + path, headers=headers)
        with urllib.request.urlopen(request, timeout=20, context=context) as reply:
            return json.load(reply)

    async def asked(path, accept=f"{TABLE},application/json"):
        return await asyncio.to_thread(ask, path, accept)

    return asked


def rows(table) -> list[dict]:
    names = [column["name"] for column in table["columnDefinitions"]]
    return [dict(zip(names, row["cells"], strict=True)) for row in table["rows"]]


async def test_a_custom_kind_shows_its_printer_columns(api, widgets, table):
    (await api.post(widgets.path, widgets.body("a", rungs=3))).ok(201)
    (await api.patch(f"{widgets.path}/a/status", {"status": {"phase": "Held"}})).ok()
    found = await table(widgets.path)
    assert (found["kind"], found["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    columns = [(one["name"], one["type"], one["priority"]) for one in found["columnDefinitions"]]
    assert columns == [
        ("Name", "string", 0),
        ("NODE", "string", 0),
        ("PHASE", "string", 0),
        ("RUNGS", "integer", 1),
        ("AGE", "date", 0),
    ]
    assert found["metadata"]["resourceVersion"]
    (row,) = rows(found)
    assert (row["Name"], row["NODE"], row["PHASE"], row["RUNGS"]) == ("a", "gpu-1", "Held", 3)
    assert row["AGE"]


async def test_a_row_of_a_field_that_is_not_there_is_empty(api, widgets, table):
    (await api.post(widgets.path, widgets.body("a"))).ok(201)
    (row,) = rows(await table(widgets.path))
    assert row["PHASE"] is None
    assert row["RUNGS"] is None


async def test_a_row_carries_the_metadata_of_its_object(api, widgets, table):
    (await api.post(widgets.path, widgets.body("a"))).ok(201)
    carried = (await table(widgets.path))["rows"][0]["object"]
    assert (carried["kind"], carried["metadata"]["name"]) == ("PartialObjectMetadata", "a")
    assert "spec" not in carried


async def test_a_row_carries_its_whole_object_where_asked(api, widgets, table):
    (await api.post(widgets.path, widgets.body("a"))).ok(201)
    carried = (await table(f"{widgets.path}?includeObject=Object"))["rows"][0]["object"]
    assert (carried["kind"], carried["spec"]["node"]) == (widgets.kind, "gpu-1")


async def test_one_object_is_a_table_of_one_row(api, widgets, table):
    (await api.post(widgets.path, widgets.body("a"))).ok(201)
    found = await table(f"{widgets.path}/a")
    assert (found["kind"], len(found["rows"])) == ("Table", 1)


async def test_nodes_show_their_status(api, node_path, table):
    change = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    (await api.patch(f"{node_path}/status", change)).ok()
    (await api.patch(node_path, {"spec": {"unschedulable": True}})).ok()
    (row,) = rows(await table(node_path))
    assert row["Status"] == "Ready,SchedulingDisabled"
    assert list(row)[:5] == ["Name", "Status", "Roles", "Age", "Version"]


async def test_pods_show_their_readiness(api, pods, pod, table):
    made = (await api.post(pods, pod("p"))).ok(201)
    status = {"phase": "Running", "containerStatuses": [running("main", restarts=2)]}
    (await api.patch(f"{pods}/p/status", {"status": status})).ok()
    (row,) = rows(await table(pods))
    assert (row["Name"], row["Ready"], row["Status"], row["Restarts"]) == ("p", "1/1", "Running", "2")
    assert row["Node"] == made["spec"]["nodeName"]


def running(name: str, restarts: int) -> dict:
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    return {"name": name, "ready": True, "restartCount": restarts, "image": "x", "imageID": "x", "state": state}


async def test_an_error_stays_a_status(api, configmaps, table):
    with pytest.raises(urllib.error.HTTPError) as refused:
        await table(f"{configmaps}/absent")
    assert json.load(refused.value)["reason"] == "NotFound"


async def test_what_cannot_be_given_is_not_acceptable(configmaps, table):
    with pytest.raises(urllib.error.HTTPError) as refused:
        await table(configmaps, "text/csv")
    assert refused.value.code == 406


async def test_metadata_alone_can_be_asked_for(api, widgets, table):
    (await api.post(widgets.path, widgets.body("a"))).ok(201)
    found = await table(widgets.path, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
    assert found["kind"] == "PartialObjectMetadataList"
    assert found["items"][0]["metadata"]["name"] == "a"
    assert "spec" not in found["items"][0]
