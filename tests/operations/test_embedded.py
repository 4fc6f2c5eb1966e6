"""Drain and cordon against the embedded API server: real kinds, real budgets, real patches."""

import asyncio
import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from remediator.kube.wire.transport import MERGE_PATCH
from remediator_sim.apiserver import EmbeddedServer
from tests.operations.conftest import Program

CRDS = Path(__file__).resolve().parents[2] / "deploy/crds"
PODS = "/api/v1/namespaces/team/pods"
OPERATION = "/apis/remediator.dev/v1alpha1/nodeoperations"


class Cluster:
    """One node that a case holds, and an operation on it."""

    def __init__(self, server, endpoint, folder):
        self.transport, self.folder = server.transport(), folder
        self.ca, self.url = endpoint.ca_file, urlsplit(endpoint.url)

    async def send(self, method, path, body, content_type="application/json"):
        reply = await self.transport.request(method, path, body=json.dumps(body).encode(), content_type=content_type)
        assert reply.status < 300, reply.body
        return json.loads(reply.body)

    async def read(self, path):
        return json.loads((await self.transport.request("GET", path)).body)

    async def begin(self):
        for path in sorted(CRDS.glob("*.yaml")):
            crd = yaml.safe_load(path.read_text())
            if crd["kind"] == "CustomResourceDefinition":
                await self.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        await self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
        taint = {"key": "remediator.dev/case", "value": "case-1", "effect": "NoSchedule"}
        node = {"metadata": {"name": "gpu-1"}, "spec": {"taints": [taint]}}
        self.node = await self.send("POST", "/api/v1/nodes", node)
        spec = {
            "nodeName": "gpu-1",
            "nodeUID": self.node["metadata"]["uid"],
            "caseUID": "case-1",
            "attempt": 1,
            "templateName": "reboot",
        }
        operation = {"apiVersion": "remediator.dev/v1alpha1", "kind": "NodeOperation", "metadata": {"name": "op-1"}}
        self.operation = await self.send("POST", OPERATION, {**operation, "spec": spec})

    async def pod(self, name, labels, node="gpu-1"):
        spec = {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "i"}]}
        await self.send("POST", PODS, {"metadata": {"name": name, "labels": labels}, "spec": spec})
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await self.send("PATCH", f"{PODS}/{name}/status", {"status": ready}, MERGE_PATCH)

    async def budget(self, name, at_least, labels):
        spec = {"minAvailable": at_least, "selector": {"matchLabels": labels}}
        path = "/apis/policy/v1/namespaces/team/poddisruptionbudgets"
        await self.send("POST", path, {"metadata": {"name": name}, "spec": spec})

    async def end_pods(self):
        """Do what a kubelet does with Pods that are being deleted."""
        for pod in (await self.read(PODS))["items"]:
            if pod["metadata"].get("deletionTimestamp"):
                await self.send("DELETE", f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})

    def start(self, name, **parameters):
        tokens = self.folder / f"{name}-token"
        tokens.mkdir(parents=True)
        (tokens / "ca.crt").write_bytes(self.ca.read_bytes())
        (tokens / "token").write_text("admin")
        (tokens / "namespace").write_text("remediator-operations")
        program = Program(self.folder, name)
        program.variables |= {
            "KUBERNETES_SERVICE_HOST": self.url.hostname,
            "KUBERNETES_SERVICE_PORT": str(self.url.port),
            "TOKEN_DIR": str(tokens),
        }
        ours = {"operation": "op-1", "operationUID": self.operation["metadata"]["uid"], "caseUID": "case-1"}
        process = program.start(parameters={**ours, "perSecond": 100, **parameters})
        return asyncio.create_task(asyncio.to_thread(program.finish, process))


@pytest.fixture
async def cluster(tmp_path):
    """An embedded API server over HTTPS with one claimed node."""
    server = EmbeddedServer()
    async with server.serve() as endpoint:
        cluster = Cluster(server, endpoint, tmp_path)
        await cluster.begin()
        yield cluster


async def test_a_drain_waits_for_a_budget_names_it_and_goes_on_when_it_gives_way(cluster):
    await cluster.pod("a", {"app": "web"})
    await cluster.pod("b", {"app": "batch"})
    await cluster.budget("web", 1, {"app": "web"})
    drain = cluster.start("drain", timeoutSeconds=30)
    while not (status := (await cluster.read(f"{OPERATION}/op-1")).get("status", {})).get("drain", {}).get("blocked"):
        assert not drain.done(), await drain
        await asyncio.sleep(0.02)
    assert [(one["pod"], one["pdb"]) for one in status["drain"]["blocked"]] == [("team/a", "web")]
    await cluster.pod("c", {"app": "web"}, node="gpu-2")
    while not drain.done():
        await cluster.end_pods()
        await asyncio.sleep(0.02)
    ran = await drain
    assert ran.code == 0, ran.out
    assert (await cluster.read(f"{OPERATION}/op-1"))["status"]["drain"] == {"left": 0, "evicted": 2, "blocked": []}


async def test_a_cordon_is_ours_and_told_to_be(cluster):
    ran = await cluster.start("cordon")
    assert (ran.code, ran.message) == (0, "cordoned gpu-1"), ran.out
    node = await cluster.read("/api/v1/nodes/gpu-1")
    assert node["spec"]["unschedulable"] is True
    assert node["metadata"]["annotations"]["remediator.dev/cordoned-by"] == "case-1"
