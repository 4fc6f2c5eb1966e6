"""A test of an idle node on the real scheduler, which places it, and preempts it for a Pod that needs the GPUs."""

import contextlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from remediator.controller import idle_tests
from remediator.core import names
from remediator.kube import api
from remediator.kube.manifests import crd
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.http import HttpTransport
from tests.cluster.control_plane import ControlPlane
from tests.cluster.nodes import gpu_node
from tests.harness import yaml_files
from tests.harness.controller import running
from tests.harness.kinds import ACCOUNTS, CASES, CRDS, EVENTS, INVENTORIES, NAMESPACES, NODES, PODS, POLICIES, TEMPLATES
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]
PRIORITIES = Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", dict[str, Any])
DEPLOYED = Path(__file__).parents[2] / "deploy" / "idle-tests.yaml"
SECONDS = 120.0


@pytest.fixture
async def stage(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SimpleNamespace]:
    """A node with eight GPUs, and a policy that tests it at any time; KWOK runs what the scheduler places there."""
    monkeypatch.setattr(idle_tests, "LOOK", 1.0)
    transport = await HttpTransport.from_kubeconfig(control_plane.kubeconfig)
    client, mark = Client(transport), f"i{uuid.uuid4().hex[:6]}"
    stage = SimpleNamespace(client=client, mark=mark, namespaces=names.Namespaces(f"{mark}-system", f"{mark}-work"))
    await define(client)
    with contextlib.suppress(errors.AlreadyExists):
        await client.create(PRIORITIES, yaml_files.read(DEPLOYED))
    for space in (stage.namespaces.system, stage.namespaces.operations):
        await client.create(NAMESPACES, {"metadata": {"name": space}})
        await until(lambda space=space: has_account(client, space), SECONDS)
    container = {"name": "main", "image": "probe:1"}
    template = {"drain": {"strategy": "None"}, "podTemplate": {"spec": {"containers": [container]}}}
    await make(client, api.TEMPLATE, TEMPLATES, mark, template)
    body = gpu_node(1)
    body["metadata"] |= {"name": mark, "labels": {"idle": mark}}
    await client.create(NODES, body)
    window = {"cron": "* * * * *", "duration": "1h", "timeZone": "UTC"}
    spec = {
        "mode": "Enforce",
        "nodeSelector": {"matchLabels": {"idle": mark}},
        "when": [{"condition": "IdleTestFailed", "for": "0s"}],
        "ladder": [{"operation": mark}],
        "idleTest": {"probe": mark, "share": 1, "window": window},
    }
    await make(client, api.POLICY, POLICIES, mark, spec)
    try:
        yield stage
    finally:
        await client.delete(POLICIES, mark)
        await client.delete(TEMPLATES, mark)
        for space in (stage.namespaces.system, stage.namespaces.operations):
            await client.delete(NAMESPACES, space)
        await client.delete(NODES, mark)
        await transport.close()


async def make(client: Client, kind: Kind[Any], plain: Kind[Any], name: str, spec: dict[str, Any]) -> None:
    head = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": name}}
    await client.create(plain, head | {"spec": spec})


async def define(client: Client) -> None:
    """All kinds of ours."""
    for kind in api.KINDS:
        with contextlib.suppress(errors.AlreadyExists):
            await client.create(CRDS, crd.crd(kind))
    for kind in api.KINDS:
        await until(lambda kind=kind: serves(client, kind), SECONDS)


async def serves(client: Client, kind: Kind[Any]) -> bool:
    try:
        await client.list_all(kind)
    except errors.NotFound:
        return False
    return True


async def has_account(client: Client, space: str) -> bool:
    accounts = await client.list_all(ACCOUNTS, namespace=space)
    return any(account["metadata"]["name"] == "default" for account in accounts)


async def on_node(stage: SimpleNamespace, space: str) -> list[dict[str, Any]]:
    """The Pods of a namespace that run on the node."""
    pods = await stage.client.list_all(PODS, namespace=space)
    return [p for p in pods if p["spec"].get("nodeName") == stage.mark and p["status"].get("phase") == "Running"]


async def told(stage: SimpleNamespace, reason: str) -> bool:
    events = await stage.client.list_all(EVENTS, namespace="default")
    return any(each.get("reason") == reason and each["involvedObject"]["name"] == stage.mark for each in events)


async def test_work_that_needs_the_gpus_preempts_the_test_at_once_and_nothing_is_proven(stage: SimpleNamespace) -> None:
    work, operations = stage.namespaces.system, stage.namespaces.operations
    async with running(stage):
        (test,) = await until(lambda: on_node(stage, operations), SECONDS)
        assert (test["spec"]["priority"], test["spec"]["preemptionPolicy"]) == (-1_000_000, "Never")
        assert not (await stage.client.get(NODES, stage.mark))["spec"].get("unschedulable")
        container = {"name": "main", "image": "work:1", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
        spec = {"nodeSelector": {"idle": stage.mark}, "containers": [container]}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "work"}, "spec": spec}
        await stage.client.create(PODS, body, namespace=work)
        await until(lambda: on_node(stage, work), SECONDS)
        await until(lambda: told(stage, "IdleTestPreempted"), SECONDS)
        assert await on_node(stage, operations) == []
    assert [each for each in await stage.client.list_all(CASES) if each["spec"]["nodeName"] == stage.mark] == []
    kept = [each for each in await stage.client.list_all(INVENTORIES) if each["metadata"]["name"] == stage.mark]
    assert [each.get("status", {}).get("idleTest") for each in kept] in ([], [None])
