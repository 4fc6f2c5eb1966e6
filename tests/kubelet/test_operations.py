"""Every operation Pod starts on a real kubelet, as the controller makes it, and says there what it did.

The controller's own function builds it from the template that is applied, its account creates it, and the exit code and
the sentence are read from the Pod's status. What would reboot is only rehearsed, and its sentence is in its log.
"""

import json
import re
import stat
import tarfile
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
import yaml

from remediator.controller import pods
from remediator.controller.diagnosis import URL
from remediator.core import names
from remediator.core.case import Case
from remediator.core.operation import Operation
from remediator.core.pod import Pod, PodPhase
from remediator.kube import api
from remediator.kube.api import decode, encode
from remediator.kube.wire.client import Client
from remediator.kube.wire.times import stamp
from remediator_sim.plain import NODES, PODS, plain
from tests.harness.kinds import DAEMON_SETS, SECRETS
from tests.harness.waiting import until
from tests.kubelet.cluster import OTHER, TARGET, Cluster
from tests.kubelet.images.dockerfile import ROOT
from tests.kubelet.pods import sleeper

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

OPERATIONS = plain(api.OPERATION)
CASE_UID = "0c0ffee0-1111-2222-3333-444455556666"
FOLDER = ROOT / "operations"
APPLIED = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
TEMPLATES = sorted(yaml.safe_load((FOLDER / name).read_text())["metadata"]["name"] for name in APPLIED)


class Expected(NamedTuple):
    """How a Pod ends, and a part of its sentence. A `dry` one changes nothing."""

    code: int
    says: str
    dry: bool = False
    parameters: Mapping[str, Any] = {}


NVIDIAS = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
CHRONYD = {"service": "chronyd", "settleSeconds": 1}
# A reboot is rehearsed and never more: sysrq knows no namespaces.
EXPECTED = {
    "collect-diagnostics": Expected(0, '"bootID"'),
    "cordon": Expected(0, f"{TARGET} stays cordoned for a person"),
    "uncordon": Expected(0, f"the cordon of {TARGET} ends with the case"),
    "drain": Expected(0, f"drained {TARGET}: 1 pods evicted", parameters={"strategy": "Evict", "timeoutSeconds": 60}),
    "reboot": Expected(0, f"would reboot {TARGET}", dry=True),
    "remount-nfs": Expected(0, "nothing to remount: 0 NFS mounts"),
    "reset-gpu": Expected(0, "nothing to reset: none of the 1 GPUs"),
    "reload-driver": Expected(2, "tells of no modules", dry=True),
    "restart-service": Expected(0, "restarted chronyd, which was active; it is active", parameters=CHRONYD),
    "gpu-check": Expected(2, "cannot tell: NVML"),
    # The disks of a node are those of this machine, however full.
    "clear-disk": Expected(0, "nothing to clear", dry=True, parameters={"targetPercent": 100}),
    "kill-orphaned-processes": Expected(0, "nothing to kill"),
    "power-cycle": Expected(2, "is Ready: reboot it", dry=True),
    "restart-cni": Expected(2, "DaemonSet"),
    "restart-device-plugin": Expected(0, f"restarted the device plugin of {TARGET}"),
}
# Of a template without a row here nothing is known but the contract: it starts, ends, and says why.
UNKNOWN = Expected(-1, "", dry=True)

Preparation = Callable[[Client], Awaitable[None]]


async def cordoned(admin: Client) -> None:
    """As `cordon` leaves the node."""
    notes = {names.CORDONED_BY: None, names.KEPT_CORDONED: CASE_UID}
    await admin.patch(NODES, TARGET, {"metadata": {"annotations": notes}})


async def workload(admin: Client) -> None:
    """One Pod runs on the target, owned by nobody."""
    await admin.create(PODS, sleeper("workload", TARGET), namespace="default")
    await until(lambda: runs(admin, "workload"), 60)


async def device_plugin(admin: Client) -> None:
    """The DaemonSet of a device plugin has its Pod on every node since before the case held one; it is NVIDIA's."""
    labels = {"name": "nvidia-device-plugin-ds"}
    template = {
        "metadata": {"labels": labels},
        "spec": {**sleeper("", TARGET)["spec"], "tolerations": NVIDIAS},
    }
    del template["spec"]["nodeName"]
    body = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "nvidia-device-plugin-daemonset"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    await admin.create(DAEMON_SETS, body, namespace="kube-system")

    async def ready() -> bool:
        found = await admin.get(DAEMON_SETS, "nvidia-device-plugin-daemonset", namespace="kube-system")
        pods = await admin.list_all(PODS, namespace="kube-system", labels="name=nvidia-device-plugin-ds")
        # Times of creation are whole seconds: a Pod of the operation's own second would pass for one that came after.
        older = all(pod["metadata"]["creationTimestamp"] < stamp(datetime.now(UTC)) for pod in pods)
        return older and bool(found.get("status", {}).get("numberReady") == 2)

    await until(ready, 60)


PREPARED: Mapping[str, Preparation] = {
    "uncordon": cordoned,
    "drain": workload,
    "restart-device-plugin": device_plugin,
}


async def runs(client: Client, name: str) -> bool:
    found = await client.get(PODS, name, namespace="default")
    return bool(found["status"].get("phase") == "Running")


@pytest.fixture
async def held(cluster: Cluster, admin: Client) -> Any:
    """The target as a case holds it; on the way out it carries no mark of ours."""
    taint = {"key": names.CASE_TAINT, "value": CASE_UID, "effect": "PreferNoSchedule"}
    marks = {"annotations": {names.CORDONED_BY: CASE_UID}}
    node = await admin.patch(NODES, TARGET, {"metadata": marks, "spec": {"taints": [taint], "unschedulable": True}})
    yield node
    clean = {"annotations": {names.CORDONED_BY: None, names.KEPT_CORDONED: None}}
    await admin.patch(NODES, TARGET, {"metadata": clean, "spec": {"taints": None, "unschedulable": None}})


class Ended(NamedTuple):
    """What is left of an operation Pod: where it ran, its exit code, its message, and all that it printed."""

    node: str
    code: int
    message: str
    printed: str


async def operate(
    cluster: Cluster, controller: Client, node: dict[str, Any], template: str, expected: Expected, url: str = ""
) -> Ended:
    """Make the operation and its Pod, wait for its end, and take both away. `url`: what stands in the Pod's Secret."""
    (found,) = [
        decode.template(each) for each in await controller.list_all(api.TEMPLATE) if each.metadata.name == template
    ]
    spec = {"nodeName": TARGET, "nodeUID": node["metadata"]["uid"], "caseUID": CASE_UID, "templateName": template}
    name = f"{TARGET}-{template}"
    body = {"apiVersion": api.API_VERSION, "kind": "NodeOperation", "metadata": {"name": name}, "spec": spec}
    uid = (await controller.create(OPERATIONS, body))["metadata"]["uid"]
    now = datetime.now(UTC)
    boot = node["status"]["nodeInfo"]["bootID"]
    case = Case(f"{TARGET}-case", CASE_UID, TARGET, node["metadata"]["uid"], "", None, now)
    operation = Operation(name, uid, TARGET, case.node_uid, CASE_UID, template, now, intent_boot_id=boot)
    orders = {"caseUID": CASE_UID, "operation": name, "operationUID": uid, **expected.parameters}
    pod_name = pods.pod_name(operation)
    if template == names.DRAIN_TEMPLATE:  # only the Pod that stands there may write the progress
        await controller.patch(OPERATIONS, name, {"status": {"drainPod": pod_name}}, subresource="status")
    made = pods.pod(found, pod_name, case, operation, json.dumps(orders), secret=[URL] if url else [])
    if expected.dry:
        made["spec"]["containers"][0]["command"].append("--dry-run")
    pod = await controller.create(PODS, made, namespace=names.OPERATIONS_NAMESPACE)
    try:
        if url:
            await until(lambda: waiting(controller, pod_name), 60)
            body = encode.secret_of(Pod(pod_name, "", pod["metadata"]["uid"], "", PodPhase.PENDING), URL, url)
            await controller.create(SECRETS, body, namespace=names.OPERATIONS_NAMESPACE)
        return await outcome(cluster, controller, pod_name)
    finally:
        bare = {"metadata": {"finalizers": None}}
        await controller.patch(PODS, pod_name, bare, namespace=names.OPERATIONS_NAMESPACE)
        await controller.delete(PODS, pod_name, namespace=names.OPERATIONS_NAMESPACE)
        await controller.delete(OPERATIONS, name)


async def waiting(client: Client, name: str) -> bool:
    """Whether its kubelet waits for what its environment is made of."""
    found = await client.get(PODS, name, namespace=names.OPERATIONS_NAMESPACE)
    states = [each["state"].get("waiting", {}) for each in found["status"].get("containerStatuses", [])]
    return [state.get("reason") for state in states] == ["CreateContainerConfigError"]


async def outcome(cluster: Cluster, controller: Client, name: str) -> Ended:
    async def over() -> dict[str, Any] | None:
        found = await controller.get(PODS, name, namespace=names.OPERATIONS_NAMESPACE)
        return found if found["status"].get("phase") in ("Succeeded", "Failed") else None

    pod = await until(over, 120)
    (container,) = pod["status"]["containerStatuses"]
    told, where = container["state"]["terminated"], pod["spec"]["nodeName"]
    assert container["restartCount"] == 0
    return Ended(where, told["exitCode"], told.get("message", ""), cluster.nodes[where].logs(pod))


@pytest.mark.parametrize("template", TEMPLATES)
async def test_an_operation_pod_runs_where_it_should_and_its_code_and_sentence_come_back(
    cluster: Cluster, admin: Client, controller: Client, held: dict[str, Any], template: str
) -> None:
    if template in PREPARED:
        await PREPARED[template](admin)
    expected = EXPECTED.get(template, UNKNOWN)
    before = len(cluster.nodes[TARGET].asked())
    ended = await operate(cluster, controller, held, template, expected)
    written = yaml.safe_load(cluster.kubectl("get", "nopt", template, "-o", "json"))
    assert ended.node == {"Target": TARGET, "Elsewhere": OTHER}[written["spec"].get("runOn", "Target")]
    said = ended.printed.splitlines()[-1] if expected.dry else ended.message
    assert said
    assert expected.says in said
    assert "Traceback" not in ended.printed
    assert "reboot" not in cluster.nodes[TARGET].asked()[before:]
    assert ended.code in ([expected.code] if expected.code >= 0 else [0, 1, 2])


async def test_the_bundle_of_the_diagnostics_is_on_the_nodes_own_disk(
    cluster: Cluster, controller: Client, held: dict[str, Any]
) -> None:
    node, kept = cluster.nodes[TARGET], {"gpus": ["GPU-1"], "first_seen": "2026-01-02T03:04:05Z"}
    node.write("/run/remediator/detectors/evidence/test.json", json.dumps(kept))
    ended = await operate(cluster, controller, held, "collect-diagnostics", EXPECTED["collect-diagnostics"])
    node.run("rm", "/run/remediator/detectors/evidence/test.json")
    said = json.loads(ended.message)
    assert kept in said["detectors"]
    assert said["unreadable"].keys() <= {"nvml", "driver"}, "a node without a driver; all else is there"
    (name,) = re.findall(r"^/var/lib/remediator/bundles/([^/]+)[.]tar[.]gz$", said["bundle"])
    assert name == f"{TARGET}-collect-diagnostics"
    bundle = node.folder / "var/lib/remediator/bundles" / f"{name}.tar.gz"  # the upper layer of its /var, from outside
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
    with tarfile.open(bundle) as tar:
        parts = {part: tar.extractfile(part).read() for part in tar.getnames()}  # type: ignore[union-attr]
    assert json.loads(parts["run/remediator/detectors/evidence/test.json"]) == kept
    assert parts.keys() >= {"kernel.log", "found.json", "nvml.json", "nvidia-smi.txt", "proc/1/mountinfo"}
    assert parts["kernel.log"].strip()
    assert str(node.folder).encode() in parts["proc/1/mountinfo"], "of the node, not of this machine's first process"


async def test_a_bundle_waits_for_the_secret_with_its_url_and_what_signs_it_is_told_to_nobody(
    cluster: Cluster, controller: Client, held: dict[str, Any]
) -> None:
    url = "http://127.0.0.1:9/bundles/one.tar.gz?X-Amz-Signature=canary"
    ended = await operate(cluster, controller, held, "collect-diagnostics", EXPECTED["collect-diagnostics"], url)
    assert ended.code == 0
    assert "127.0.0.1:9 does not answer" in ended.message
    assert json.loads(ended.message)["bundle"].startswith("/var/lib/remediator/bundles/")
    assert "canary" not in ended.message + ended.printed
