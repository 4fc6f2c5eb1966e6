"""The everyday commands of kubectl, run by the real program."""

import asyncio
import json
import os

import pytest

from deploy.images.programs import binary
from tests.cluster.servers import serving
from tests.contract.api.calls import config_map, core_event, fresh, node
from tests.harness.waiting import until

pytestmark = pytest.mark.cluster


@pytest.fixture(params=["http", "real"])
async def server(request):
    async with serving(request.param, request) as server:
        yield server


@pytest.fixture
def kubectl(server, tmp_path):
    """Run kubectl; what it printed. It must succeed, unless `fails` says that it must not: then its complaint."""
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KUBECONFIG": str(server.kubeconfig)}

    async def run(*arguments, stdin=None, fails=False):
        process = await asyncio.create_subprocess_exec(
            binary("kubectl"),
            *arguments,
            env=env,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(60):
            out, err = await process.communicate(json.dumps(stdin).encode() if stdin else b"")
        assert bool(process.returncode) == fails, f"{arguments}: {process.returncode}\n{out.decode()}\n{err.decode()}"
        return (err if fails else out).decode()

    return run


@pytest.fixture
async def node_name(node_path):
    return node_path.rpartition("/")[2]


async def test_version_speaks_with_the_server(kubectl):
    said = json.loads(await kubectl("version", "-o", "json"))
    assert said["serverVersion"]["minor"] == "37"


async def test_get_prints_the_columns_of_a_custom_kind_by_its_short_name(kubectl, api, widgets):
    (await api.post(widgets.path, widgets.body("a", rungs=3))).ok(201)
    narrow = (await kubectl("get", f"{widgets.plural}sh")).splitlines()
    assert narrow[0].split() == ["NAME", "NODE", "PHASE", "AGE"]
    assert narrow[1].split()[:2] == ["a", "gpu-1"]
    wide = (await kubectl("get", widgets.plural, "-o", "wide")).splitlines()
    assert wide[0].split() == ["NAME", "NODE", "PHASE", "RUNGS", "AGE"]
    assert (await kubectl("get", f"{widgets.plural}/a", "-o", "jsonpath={.spec.rungs}")) == "3"
    assert (
        await kubectl("get", f"{widgets.plural}toys", "-o", "name")
    ).strip() == f"{widgets.plural}.{widgets.group}/a"


async def test_get_finds_nothing_kindly(kubectl, widgets):
    assert await kubectl("get", widgets.plural) == ""
    assert "NotFound" in await kubectl("get", widgets.plural, "absent", fails=True)
    assert "doesn't have a resource type" in await kubectl("get", "nonsense", fails=True)


async def test_get_prints_nodes_and_pods_wide(kubectl, api, node_name, pods, pod, space):
    (await api.post(pods, pod("p"))).ok(201)
    nodes = (await kubectl("get", "node", node_name, "-o", "wide")).splitlines()
    assert nodes[0].split()[:5] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert nodes[1].split()[:2] == [node_name, "Unknown"]
    wide = await kubectl("get", "pods", "-n", space, "-o", "wide", "--field-selector", f"spec.nodeName={node_name}")
    assert wide.splitlines()[1].split()[:3] == ["p", "0/1", "Pending"]


async def test_create_refuses_a_mistyped_field_by_name(kubectl, widgets):
    body = widgets.body("a", whenn=[])
    assert 'unknown field "spec.whenn"' in await kubectl("create", "-f", "-", stdin=body, fails=True)
    body = widgets.body("a")
    assert "created" in await kubectl("create", "-f", "-", stdin=body)
    assert "AlreadyExists" in await kubectl("create", "-f", "-", stdin=body, fails=True)


async def test_apply_creates_changes_removes_and_rests(kubectl, api, widgets):
    assert "created" in await kubectl("apply", "-f", "-", stdin=widgets.body("a", rungs=2, wait="5m"))
    assert "configured" in await kubectl("apply", "-f", "-", stdin=widgets.body("a", rungs=3))
    spec = (await api.get(f"{widgets.path}/a")).ok()["spec"]
    assert spec["rungs"] == 3
    assert "wait" not in spec
    assert "unchanged" in await kubectl("apply", "-f", "-", stdin=widgets.body("a", rungs=3))


async def test_apply_of_a_built_in_kind(kubectl, configmaps, space, api):
    first = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": space}}
    assert "created" in await kubectl("apply", "-f", "-", stdin={**first, "data": {"x": "1", "y": "1"}})
    assert "configured" in await kubectl("apply", "-f", "-", stdin={**first, "data": {"x": "2"}})
    assert (await api.get(f"{configmaps}/a")).ok()["data"] == {"x": "2"}


async def test_patch_in_its_three_types(kubectl, api, configmaps, space):
    (await api.post(configmaps, config_map("a", x="1"))).ok(201)
    for kind, patch in (
        ("strategic", '{"data":{"y":"1"}}'),
        ("merge", '{"data":{"x":null}}'),
        ("json", '[{"op":"add","path":"/data/z","value":"1"}]'),
    ):
        assert "patched" in await kubectl("patch", "configmap", "a", "-n", space, "--type", kind, "-p", patch)
    assert (await api.get(f"{configmaps}/a")).ok()["data"] == {"y": "1", "z": "1"}


async def test_patch_of_a_status(kubectl, api, widgets):
    (await api.post(widgets.path, widgets.body("a"))).ok(201)
    patch = '{"status":{"phase":"Held"}}'
    await kubectl("patch", widgets.plural, "a", "--subresource", "status", "--type", "merge", "-p", patch)
    assert (await api.get(f"{widgets.path}/a")).ok()["status"] == {"phase": "Held"}


async def test_label_and_annotate(kubectl, api, node_path, node_name):
    await kubectl("label", "node", node_name, "remediator.dev/exclude=true")
    await kubectl("annotate", "node", node_name, "a=b")
    meta = (await api.get(node_path)).ok()["metadata"]
    assert (meta["labels"]["remediator.dev/exclude"], meta["annotations"]["a"]) == ("true", "b")
    await kubectl("label", "node", node_name, "remediator.dev/exclude-")
    assert "remediator.dev/exclude" not in (await api.get(node_path)).ok()["metadata"].get("labels", {})


async def test_taint_and_untaint(kubectl, api, node_path, node_name):
    await kubectl("taint", "node", node_name, "remediator.dev/case=x:NoSchedule")
    taints = (await api.get(node_path)).ok()["spec"]["taints"]
    assert {"key": "remediator.dev/case", "value": "x", "effect": "NoSchedule"} in taints
    await kubectl("taint", "node", node_name, "remediator.dev/case-")
    keys = {one["key"] for one in (await api.get(node_path)).ok()["spec"].get("taints", [])}
    assert "remediator.dev/case" not in keys


async def test_cordon_and_uncordon(kubectl, api, node_path, node_name):
    await kubectl("cordon", node_name)
    assert (await api.get(node_path)).ok()["spec"]["unschedulable"] is True
    assert "SchedulingDisabled" in await kubectl("get", "node", node_name)
    await kubectl("uncordon", node_name)
    assert "unschedulable" not in (await api.get(node_path)).ok()["spec"]


async def test_drain_names_what_it_would_evict(kubectl, api, node_path, node_name, pods, pod, space):
    (await api.post(pods, pod("p"))).ok(201)
    said = await kubectl("drain", node_name, "--force", "--dry-run=server", "--ignore-daemonsets")
    assert f"evicting pod {space}/p" in said
    assert "unschedulable" not in (await api.get(node_path)).ok()["spec"]
    assert "deletionTimestamp" not in (await api.get(f"{pods}/p")).ok()["metadata"]


async def test_drain_evicts_and_waits_for_the_end_of_pods(kubectl, api, node_path, node_name, pods, pod, space):
    (await api.post(pods, pod("p"))).ok(201)

    async def marked():
        return "deletionTimestamp" in (await api.get(f"{pods}/p")).ok()["metadata"]

    async def kubelet():
        await until(marked)
        (await api.delete(f"{pods}/p", gracePeriodSeconds=0)).ok()

    said, _ = await asyncio.gather(kubectl("drain", node_name, "--force", "--timeout=30s"), kubelet())
    assert f"evicting pod {space}/p" in said
    assert (await api.get(node_path)).ok()["spec"]["unschedulable"] is True


async def test_describe_tells_of_a_node_with_its_events(kubectl, api, node_path, node_name):
    event = core_event(node_name)
    event["involvedObject"]["uid"] = (await api.get(node_path)).ok()["metadata"]["uid"]
    (await api.post("/api/v1/namespaces/default/events", event)).ok(201)
    said = await kubectl("describe", "node", node_name)
    assert f"Name:               {node_name}" in said
    assert "GPU 3 is gone" in said


async def test_describe_tells_of_a_custom_object(kubectl, api, widgets):
    (await api.post(widgets.path, widgets.body("a", rungs=3))).ok(201)
    assert "Rungs:  3" in await kubectl("describe", widgets.plural, "a")


async def test_wait_sees_a_status_come(kubectl, api, widgets):
    (await api.post(widgets.path, widgets.body("a"))).ok(201)
    waiting = asyncio.create_task(kubectl("wait", f"{widgets.plural}/a", "--for=jsonpath={.status.phase}=Held"))
    (await api.patch(f"{widgets.path}/a/status", {"status": {"phase": "Held"}})).ok()
    assert "condition met" in await waiting


async def test_delete_waits_until_the_object_is_gone(kubectl, api, widgets):
    (await api.post(widgets.path, widgets.body("a"))).ok(201)
    assert "deleted" in await kubectl("delete", widgets.plural, "a")
    (await api.get(f"{widgets.path}/a")).refused(404, "NotFound")


async def test_delete_of_a_node_and_of_many_by_label(kubectl, api):
    mark = fresh("mark")
    for name in ("one", "two"):
        (await api.post("/api/v1/nodes", node(f"{name}-{mark}", labels={"mark": mark}))).ok(201)
    assert (await kubectl("delete", "nodes", "-l", f"mark={mark}")).count("deleted") == 2


async def test_api_resources_lists_a_custom_kind(kubectl, widgets):
    said = await kubectl("api-resources", "--api-group", widgets.group)
    assert said.splitlines()[1].split() == [
        widgets.plural,
        f"{widgets.plural}sh",
        f"{widgets.group}/v1",
        "false",
        widgets.kind,
    ]


async def test_explain_shows_the_fields_of_a_custom_kind(kubectl, widgets):
    said = await kubectl("explain", f"{widgets.plural}.spec.mode")
    assert "FIELD: mode <string>" in said
    assert "DryRun" in said
