"""The model of the program that cycles the power of a node through its BMC."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from remediator.kube.wire.transport import MERGE_PATCH
from remediator_sim.plain import Object
from remediator_sim.simulation import facts
from remediator_sim.simulation.clock import now
from remediator_sim.simulation.node import NodeModel
from remediator_sim.simulation.programs.api import Unreachable, ask, items, look, part, read
from remediator_sim.simulation.programs.run import Failed, Refused, Run

T = TypeVar("T")
PATIENCE = 60.0
LEASES = "/apis/coordination.k8s.io/v1/namespaces"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
TAINT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
BOOT = "remediator.dev/out-of-service-boot"
BOOTS = (60.0, 300.0)  # seconds until a machine that gets its power back runs again


async def power_cycle(run: Run) -> str:
    """Off, the volumes given up, and on; a node that is off is only turned on."""
    wait, rest = run.number("waitSeconds", 180, 1), run.number("offSeconds", 10)
    detach, name = run.number("detachSeconds", 120), run.env["NODE_NAME"]
    _, node = await _patiently(lambda: _looked(run))
    before = await _patiently(lambda: _started(run))
    off = await _power(run)
    if before and not off:
        raise Refused(f"this attempt was started before, and the power of {name} is On")
    if not before and _ready(node) == "Unknown":
        await _require_silence(run)
    operation, node = await _patiently(lambda: _looked(run))
    if not before:
        await _patiently(lambda: _take(run, operation))
    if not off:
        await _cut(run, wait)
    await asyncio.sleep(0 if off else rest)
    volumes = await _give_up(run, node, detach)
    _machine(run).begin_power(run.attempt, run.chance.uniform(*BOOTS))
    return f"{name} was off and is on again{volumes}" if off else f"power-cycled {name}{volumes}"


def _machine(run: Run) -> NodeModel:
    if run.target is None:
        raise Refused("there is no such machine")
    return run.target


def _ready(node: Object) -> str:
    conditions = part(node, "status").get("conditions") or []
    return next((each["status"] for each in conditions if each.get("type") == "Ready"), "")


async def _looked(run: Run) -> tuple[Object, Object]:
    """Operation and node. Raises Refused unless it is the node that is meant, in its boot, and not alive."""
    operation, node = await look(run)
    name, boot = run.env["NODE_NAME"], part(node, "status", "nodeInfo").get("bootID")
    if not run.env.get("EXPECTED_BOOT_ID"):
        raise Refused("EXPECTED_BOOT_ID is needed")
    if boot != run.env["EXPECTED_BOOT_ID"]:
        raise Refused(f"boot id is {boot}, not {run.env['EXPECTED_BOOT_ID']}: it was rebooted since")
    if _ready(node) == "True":
        raise Refused(f"{name} is Ready: reboot it")
    if not _ready(node):
        raise Refused(f"{name} has no Ready condition")
    return operation, node


async def _started(run: Run) -> bool:
    return bool(await read(run, f"{LEASES}/remediator-operations/leases/{run.attempt}", {}))


async def _power(run: Run) -> bool:
    """Whether the BMC says that the node is off. Raises Refused, Failed."""
    machine = _machine(run)
    if machine.shows(facts.BMC_SILENT):
        await asyncio.sleep(PATIENCE)
        raise Failed("the BMC does not answer")
    return machine.off or machine.shows(facts.BMC_LIES)


async def _require_silence(run: Run) -> None:
    """Raises Refused where the Lease of the kubelet moves while it is watched."""
    path = f"{LEASES}/kube-node-lease/leases/{run.env['NODE_NAME']}"

    async def renewed() -> tuple[Any, float]:
        spec = part(await read(run, path, {}), "spec")
        return spec.get("renewTime"), float(spec.get("leaseDurationSeconds") or 40)

    first = await _patiently(renewed)
    until = now() + first[1]
    while now() < until:
        await asyncio.sleep(min(5.0, first[1] / 4))
        if await _patiently(renewed) != first:
            raise Refused(f"the kubelet of {run.env['NODE_NAME']} still renews its Lease")


async def _take(run: Run, operation: Object) -> None:
    """The Lease that only one start of an attempt can create. Raises Refused, Failed."""
    owner = {"apiVersion": "remediator.dev/v1alpha1", "kind": "NodeOperation", "name": run.attempt}
    meta = {"name": run.attempt, "ownerReferences": [owner | {"uid": operation["metadata"]["uid"]}]}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": {"holderIdentity": "me"}}
    reply = await ask(run, "POST", f"{LEASES}/remediator-operations/leases", body)
    if reply.status == 409:
        raise Refused(f"attempt {run.attempt} was started before")
    if reply.status >= 300:
        raise Failed(f"Lease {run.attempt} could not be created, so nothing was done")


async def _cut(run: Run, wait: float) -> None:
    machine = _machine(run)
    if machine.shows(facts.POWER_STAYS):
        await asyncio.sleep(wait)
        raise Failed(f"the power was to go and is still there after {wait:g} s")
    machine.cut_power(run.attempt)


async def _give_up(run: Run, node: Object, seconds: float) -> str:
    """Let the control plane detach what hangs on the node; what was done about it. No trouble keeps the power away."""
    try:
        left = await _patiently(lambda: _attached(run))
        if not left:
            return ""
        sentence = await _patiently(lambda: _declare(run, node))
        sentence = f"; {sentence}: {left} volumes were attached"
        until = now() + seconds
        while left and now() < until:
            await asyncio.sleep(2.0)
            left = await _patiently(lambda: _attached(run))
    except (Failed, Refused) as error:
        return f"; its volumes were not given up: {error}"
    return sentence + (f", {left} still are" if left else "")


async def _attached(run: Run) -> int:
    listed = await items(run, ATTACHMENTS, "VolumeAttachments")
    return sum(part(each, "spec").get("nodeName") == run.env["NODE_NAME"] for each in listed)


async def _declare(run: Run, meant: Object) -> str:
    name = run.env["NODE_NAME"]
    for _ in range(10):
        node = await read(run, f"/api/v1/nodes/{name}")
        if node["metadata"].get("uid") != meant["metadata"].get("uid"):
            raise Refused(f"node {name} is another one than was meant")
        taints = part(node, "spec").get("taints") or []
        if any((each["key"], each["effect"]) == (TAINT["key"], TAINT["effect"]) for each in taints):
            return f"{name} was out of service already"
        meta = {"resourceVersion": node["metadata"]["resourceVersion"]}
        meta |= {"annotations": {BOOT: part(meant, "status", "nodeInfo").get("bootID")}}
        patch = {"metadata": meta, "spec": {"taints": [*taints, TAINT]}}
        reply = await ask(run, "PATCH", f"/api/v1/nodes/{name}", patch, MERGE_PATCH)
        if reply.status < 300:
            return f"{name} was declared out of service"
        if reply.status not in (409, 429):
            raise Failed(f"{name} could not be declared out of service")
    raise Failed(f"{name} could not be declared out of service")


async def _patiently(call: Callable[[], Awaitable[T]]) -> T:
    """What it returns, asked again while the API server does not answer. Raises Failed after PATIENCE."""
    until, pause = now() + PATIENCE, 0.2
    while True:
        try:
            return await call()
        except Unreachable as error:
            if now() >= until:
                raise Failed("the API server does not answer") from error
        await asyncio.sleep(pause)
        pause = min(pause * 2, 5.0)
