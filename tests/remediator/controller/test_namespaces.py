"""The whole controller in namespaces of other names: nothing of it looks at, or writes to, the shipped ones."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from remediator.clock import SYSTEM
from remediator.controller.explain import snapshot
from remediator.core import names
from remediator.kube.api.builtin import LEASE
from tests.harness.controller import ControllerHarness, controller_harness, running, until
from tests.harness.kinds import NAMESPACES, PODS

pytestmark = pytest.mark.sampled("namespaces")

ROOT = Path(__file__).parents[3]
OURS = names.Namespaces("gpu-ops", "gpu-ops-pods")
SHIPPED = (names.SYSTEM_NAMESPACE, names.OPERATIONS_NAMESPACE)
REPLICA = {
    "metadata": {"name": "replica-1", "labels": dict(label.split("=") for label in names.CONTROLLER_LABELS.split(","))},
    "spec": {"nodeName": "gpu-1", "containers": [{"name": "controller", "image": "controller"}]},
}


@pytest.fixture
async def harness() -> AsyncIterator[ControllerHarness]:
    async with controller_harness(OURS) as made:
        yield made


async def test_a_node_is_repaired_with_the_lease_and_the_pods_in_the_namespaces_of_the_settings(harness):
    await harness.policy()
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        leases = await harness.client.list_all(LEASE)
    assert harness.ran == ["collect-diagnostics gpu-1", "drain gpu-1", "reboot gpu-1"]
    assert [(lease.metadata["namespace"], lease.metadata["name"]) for lease in leases] == [("gpu-ops", "remediator")]
    paths = [request.path for request in harness.server.audit]
    assert any("/namespaces/gpu-ops-pods/pods/" in path for path in paths)
    assert [path for path in paths if any(namespace in path for namespace in SHIPPED)] == []


async def test_the_pause_annotation_is_read_from_the_namespace_of_the_settings(harness):
    await harness.policy()
    await harness.node("gpu-1", "True")
    await harness.change(NAMESPACES, "gpu-ops", metadata={"annotations": {names.PAUSED: "by alice"}})
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["Paused"])
        await harness.quiet()
        assert (harness.taints("gpu-1"), harness.ran) == ([], [])
        await harness.change(NAMESPACES, "gpu-ops", metadata={"annotations": {names.PAUSED: None}})
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_explain_reads_the_pause_annotation_there_too(harness):
    await harness.change(NAMESPACES, "gpu-ops", metadata={"annotations": {names.PAUSED: "by alice"}})
    assert (await snapshot(harness.client, OURS, SYSTEM)).paused
    assert not (await snapshot(harness.client, names.Namespaces(), SYSTEM)).paused


async def test_the_only_replica_is_found_in_the_namespace_of_the_settings(harness):
    await harness.policy()
    await harness.client.create(PODS, REPLICA, namespace="gpu-ops")
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await harness.client.patch(PODS, "replica-1", {"status": ready}, namespace="gpu-ops", subresource="status")
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["HostsController"])


def test_only_the_settings_and_the_command_line_know_the_names_of_the_shipped_namespaces():
    commands = {f"cli/{name}.py" for name in ("client_certificate", "common", "explain", "janitor", "placing", "run")}
    allowed = {"core/names.py", "settings.py", "janitor/selection.py", *commands}
    word = re.compile(r"SYSTEM_NAMESPACE|OPERATIONS_NAMESPACE|remediator-(system|operations)")
    product = {path.relative_to(ROOT / "remediator").as_posix(): path for path in (ROOT / "remediator").rglob("*.py")}
    assert allowed == {name for name, path in product.items() if word.search(path.read_text())}
