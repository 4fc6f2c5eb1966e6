"""What stands on the server while commands of the pages are tried: everything that is shipped, and a small fleet.

gpu-17 has lost a GPU, among other things, and has a case that a policy in DryRun holds; of the others, gpu-1 has two
GPUs free, gpu-2 has lost one, too, gpu-3 is full, and no detector has spoken on gpu-4 yet. The breakers of policy
gpu-lost and of the budget training are open.
"""

import json
from base64 import b64encode
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from remediator.core import names
from remediator.kube import api
from remediator.kube.api.builtin import NAMESPACE
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.transport import MERGE_PATCH
from remediator_sim import manifests
from remediator_sim.plain import ACCOUNTS, NODES, PODS
from tests.contract.docs.pages import ROOT
from tests.harness.endpoints import authority
from tests.harness.kinds import BUDGETS, CASES, INVENTORIES, POLICIES, SECRETS, TICKETS

Object = dict[str, Any]
NODE, CASE = "gpu-17", "gpu-17-gpu-lost-3f9c01ab7e"
DETECTOR_POD = "node-problem-detector-x7k2p"
IN_USE = {"gpu-1": 6, "gpu-2": 0, "gpu-3": 8, "gpu-4": 0, NODE: 0}
SYSTEM = "system-1"  # has no GPUs
LOST, SILENT = ("gpu-2", NODE), ("gpu-4",)
DETECTED = tuple(
    json.loads(path.read_text())["conditions"][0]["type"] for path in sorted((ROOT / "deploy/npd").glob("*.json"))
)
COUNTS, REST = "DeviceInventory", "digest=0123456789ab"
HAD = {"gpus": 8, "nics": 9, "ports": 8, "port-rates": 3200, "nic-rates": 25, "nvme": 8, "pcie-lanes": 272}
HAD |= {"cpus": 192, "ram": 2048, "addresses": 2, "routes": 1}
# A GPU of 16 lanes is gone, a port of 400 Gb/s runs at 100, and one mount of NFS is not there.
LACKS = {"gpus": 7, "port-rates": 2900, "pcie-lanes": 256}
KUBELET = ("MemoryPressure", "DiskPressure", "PIDPressure")
PROGRAMS = ("deploy/controller.yaml", "deploy/node-problem-detector.yaml")
SPACES = ("default", "kube-system", names.SYSTEM_NAMESPACE, names.OPERATIONS_NAMESPACE)
LEASES = "medik8s-leases"  # a namespace of controllers of medik8s, which deploy/node-leases lets us write in
BOARD_LOST = "0000:3b:00.0 (GPU-9f3c01ab, serial 1563521020401) is lost"
EVIDENCE = {
    "machine": {"vendor": "Supermicro", "model": "SYS-821GE-TNHR", "serial": "A512345X4C03917"},
    "gpus": [{"address": "0000:3b:00.0", "uuid": "GPU-9f3c01ab-77aa", "serial": "1563521020401"}],
    "bundle": f"/var/lib/remediator/bundles/{CASE}.tar.gz",
}

HANDED_OVER = {"status": {"phase": "Escalated", "reason": "LadderExhausted", "blockedBy": []}}


async def lay_out(
    client: Client,
    controller: Callable[[], AbstractAsyncContextManager[Client]] | None = None,
    *,
    escalated: bool = False,
) -> None:
    """Put everything there as if for the first time, whatever stood there before.

    `controller`: speaks as the controller's account, where not everybody may write what it writes. `escalated`: a
    person has the case.
    """
    await manifests.withdraw(client)
    await manifests.deploy(client, lambda document: document)
    reached = [one for one in manifests.documents(("deploy/endpoints.yaml",)) if one["kind"] == "Service"]
    await manifests.create(client, *manifests.documents(PROGRAMS), *reached)
    await _put(client, SECRETS, _serving(), names.SYSTEM_NAMESPACE)
    marks = {"metadata": {"annotations": {names.PAUSED: None}}}
    await client.patch(NAMESPACE, names.SYSTEM_NAMESPACE, marks, content_type=MERGE_PATCH)
    with suppress(errors.AlreadyExists):
        await client.create(NAMESPACE, {"metadata": {"name": LEASES}})
    for space in SPACES:
        with suppress(errors.AlreadyExists):
            await client.create(ACCOUNTS, {"metadata": {"name": "default"}}, namespace=space)
    for name, used in IN_USE.items():
        await _node(client, name, used)
    healthy = [_said(kind, "False") for kind in (*DETECTED, *KUBELET) if kind != COUNTS]
    ready = {"status": {"conditions": [_said("Ready", "True"), *healthy]}}
    await _put(client, NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": SYSTEM}} | ready)
    await _put(client, PODS, _pod(DETECTOR_POD, NODE, _monitors()), names.SYSTEM_NAMESPACE)
    async with controller() if controller else nullcontext(client) as ours:
        await _case(client, ours)
        if escalated:
            await ours.patch(CASES, CASE, HANDED_OVER, content_type=MERGE_PATCH, subresource="status")
        await _open_breakers(client, ours)
        await _inventory(client, ours)
    await _put(client, TICKETS, _ticket())


def _serving() -> Object:
    """The controller's Secret, as it fills it."""
    data = {name: b64encode(text).decode() for name, text in authority().items()}
    return {"metadata": {"name": names.SERVING_SECRET}, "data": data}


async def _node(client: Client, name: str, used: int) -> None:
    await _put(client, NODES, _fleet_node(name))
    work = {"resources": {"limits": {"nvidia.com/gpu": str(used)}}}
    await _put(client, PODS, _pod(f"job-{name}", name, work) if used else {"metadata": {"name": f"job-{name}"}})


async def _put(client: Client, kind: Kind[Object], body: Object, namespace: str = "default") -> Object:
    """The one object of this name, new; only taken away where there is nothing to it but a name."""
    space = namespace if kind.namespaced else ""
    name = body["metadata"]["name"]
    with suppress(errors.NotFound):
        path, now = kind.path(name, space), b'{"gracePeriodSeconds":0}'
        await client.transport.request("DELETE", path, body=now, content_type="application/json")
    return await client.create(kind, body, namespace=space) if len(body) > 1 else body


async def _case(client: Client, controller: Client) -> None:
    """One case of gpu-17, held because its policy only says what it would do."""
    uid = (await client.get(NODES, NODE))["metadata"]["uid"]
    trigger = {"condition": "GpuLost", "status": "True", "reason": "GpuIsLost", "message": BOARD_LOST}
    spec = {"nodeName": NODE, "nodeUID": uid, "policyName": "gpu-lost", "trigger": trigger}
    await _put(client, CASES, {"metadata": {"name": CASE}})
    await controller.create(CASES, _ours("NodeRemediation", CASE, spec))  # nobody else may say what it was opened for
    block = {"reason": "DryRun", "message": "would try reboot; set spec.mode of the policy to Enforce to let it act"}
    status = {"status": {"phase": "Held", "blockedBy": [block], "evidence": EVIDENCE}}
    await controller.patch(CASES, CASE, status, content_type=MERGE_PATCH, subresource="status")


async def _inventory(client: Client, controller: Client) -> None:
    """What gpu-17 is known to have."""
    await _put(client, INVENTORIES, _ours("NodeInventory", NODE, {"nodeName": NODE}))
    learnt = {"status": {"counts": HAD, "since": "2026-01-01T00:00:00Z"}}
    await controller.patch(INVENTORIES, NODE, learnt, content_type=MERGE_PATCH, subresource="status")


async def _open_breakers(client: Client, controller: Client) -> None:
    """The breakers of policy gpu-lost and of a budget, which four reboots in vain have opened."""
    limits = {"maxUnavailable": "10%", "breaker": {"failures": {}}}
    await _put(client, BUDGETS, _ours("NodeDisruptionBudget", "training", {"selector": {}} | limits))
    ended = "2026-11-23T09:14:00Z"
    nodes = ("gpu-3", "gpu-8", "gpu-21", "gpu-40")
    tried = [{"operation": f"{node}-reboot-81d2e7a09c", "node": node} for node in nodes]
    attempts = [{"template": "reboot", "endedAt": ended, "inVain": True} | each for each in tried]
    for kind, name, of in ((POLICIES, "gpu-lost", "policy"), (BUDGETS, "training", "budget")):
        message = f"4 of the last 4 attempts under {of} {name} were in vain"
        status = {"status": {"breaker": {"openedAt": ended, "message": message, "attempts": attempts}}}
        await controller.patch(kind, name, status, content_type=MERGE_PATCH, subresource="status")


def _ours(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": api.API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _ticket() -> Object:
    return _ours("Ticket", f"node-{NODE}", {"subject": {"kind": "Node", "nodeName": NODE}})


def _fleet_node(name: str) -> Object:
    room = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}
    sick = {"GpuLost"} if name in LOST else set()
    spoken = () if name in SILENT else DETECTED
    conditions = [_said(kind, "True" if kind in sick else "False") for kind in (*spoken, *KUBELET)]
    has = HAD | (LACKS if name == NODE else {})
    words = [f"{kind}={count}" for kind, count in has.items()] + ["mounts=3/3"]
    said = {"status": "True", "message": " ".join([*words, f"nfs-mounts={1 if name == NODE else 2}/2", REST])}
    counted = [entry | (said if entry["type"] == COUNTS else {}) for entry in conditions]
    status = {"capacity": room, "allocatable": room, "conditions": [_said("Ready", "True"), *counted]}
    status |= {"nodeInfo": {"bootID": f"boot-{name}"}}
    present = dict.fromkeys(("nvidia.com/gpu.present", names.GPU_PRESENT), "true")
    labels = {"kubernetes.io/hostname": name} | present
    meta = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}


def _said(condition: str, status: str) -> Object:
    now = datetime.now(UTC)
    beat, since = ((now - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ") for age in (1, 60))
    return {"type": condition, "status": status, "lastHeartbeatTime": beat, "lastTransitionTime": since}


def _monitors() -> Object:
    return {"labels": {"app.kubernetes.io/component": "node-problem-detector"}}


def _pod(name: str, node: str, more: Object) -> Object:
    labels = more.get("labels", {})
    container = {"name": "main", "image": "main:1", "resources": more.get("resources", {})}
    spec = {"nodeName": node, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}
