"""An extender over the embedded server in memory, and what stands in its cluster."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from remediator.clock import SYSTEM, Clock
from remediator.core.names import PAUSED, SYSTEM_NAMESPACE
from remediator.kube.wire.transport import STRATEGIC_PATCH
from tests.harness.cluster import MemoryCluster
from tests.harness.kinds import CASES, NAMESPACES, NODES, PODS, POLICIES
from tests.harness.replica import an_extender, at_work, state_of, verdict_of
from tests.harness.waiting import until

GPU, NOW = "nvidia.com/gpu", timedelta()


def said(condition: str, status: str, ahead: timedelta = NOW) -> dict[str, Any]:
    """A Condition of this moment."""
    stamp = (datetime.now(UTC) + ahead).isoformat()
    return {"type": condition, "status": status, "lastHeartbeatTime": stamp, "lastTransitionTime": stamp}


def node(name: str, gpus: int | None = 8, **conditions: str) -> dict[str, Any]:
    """A Node that is ready and has so many GPUs; conditions by type."""
    room = {"cpu": "96", "memory": "1Ti", "pods": "110"} | ({} if gpus is None else {GPU: str(gpus)})
    found = [said(kind, status) for kind, status in ({"Ready": "True"} | conditions).items()]
    status = {"capacity": room, "allocatable": room, "conditions": found}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": "a"}}, "status": status}


def pod(name: str = "job", gpus: int = 1, at: str = "", daemon: bool = False) -> dict[str, Any]:
    """A Pod that asks for so many GPUs."""
    wants = {"requests": {"cpu": "1"} | ({GPU: str(gpus)} if gpus else {})}
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}
    meta = {"name": name, "namespace": "default"} | ({"ownerReferences": [owner]} if daemon else {})
    spec = {"containers": [{"name": "main", "image": "job:1", "resources": wants}]} | ({"nodeName": at} if at else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def names_body(names: list[str], wanted: dict[str, Any] | None = None) -> bytes:
    """A request as kube-scheduler sends it with nodeCacheCapable: true."""
    return json.dumps({"Pod": wanted or pod(), "Nodes": None, "NodeNames": names}).encode()


def nodes_body(nodes: list[dict[str, Any]], wanted: dict[str, Any] | None = None) -> bytes:
    """A request as kube-scheduler sends it with nodeCacheCapable: false."""
    return json.dumps({"Pod": wanted or pod(), "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}).encode()


def victims_body(
    victims: Mapping[str, Sequence[str]], wanted: dict[str, Any] | None = None, violations: int = 0
) -> bytes:
    """A request to preempt as kube-scheduler sends it with nodeCacheCapable: true; UIDs of Pods by node."""
    by_node = {
        name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations} for name, uids in victims.items()
    }
    return json.dumps({"Pod": wanted or pod(), "NodeNameToVictims": None, "NodeNameToMetaVictims": by_node}).encode()


def whole_victims_body(victims: Mapping[str, Sequence[str]], wanted: dict[str, Any] | None = None) -> bytes:
    """The same with nodeCacheCapable: false: whole Pods by node."""
    by_node = {name: {"Pods": [_evicted(uid) for uid in uids], "NumPDBViolations": 0} for name, uids in victims.items()}
    return json.dumps({"Pod": wanted or pod(), "NodeNameToVictims": by_node, "NodeNameToMetaVictims": None}).encode()


def _evicted(uid: str) -> dict[str, Any]:
    found = pod(uid)
    return found | {"metadata": found["metadata"] | {"uid": uid}}


class SchedulerHarness(MemoryCluster):
    """The server, a clock that a test may turn, and the extender under test."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = timedelta()
        clock = Clock(lambda: datetime.now(UTC) + self.ahead, SYSTEM.monotonic)
        self.extender, self.informers = an_extender(self.client, clock)

    async def prepare(self) -> None:
        """Our namespace, and a policy over the pool `a`."""
        await self.client.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
        await self.policy("gpu-lost", "GpuLost")

    async def policy(self, name: str, condition: str, mode: str = "Enforce") -> None:
        """A policy with a tolerance of an hour."""
        spec = {
            "mode": mode,
            "nodeSelector": {"matchLabels": {"pool": "a"}},
            "when": [{"condition": condition, "for": "1h"}],
            "ladder": [{"operation": "reboot"}],
        }
        await self.make(POLICIES, name, **spec)

    async def mode(self, name: str, mode: str) -> None:
        """What a user says of the policy."""
        await self.client.patch(POLICIES, name, {"spec": {"mode": mode}})

    async def pause(self, value: str | None = "true") -> None:
        """What a user does to stop everything; None takes it back."""
        body = {"metadata": {"annotations": {PAUSED: value}}}
        await self.client.patch(NAMESPACES, SYSTEM_NAMESPACE, body)

    async def drop_policy(self, name: str) -> None:
        """It is gone."""
        await self.client.delete(POLICIES, name)

    async def case(self, of: str, which: str = "case", **status: Any) -> None:
        """A case of this node with this status; "phase" at least."""
        uid = (await self.client.get(NODES, of))["metadata"]["uid"]
        await self.make(CASES, f"{which}-{of}", nodeName=of, nodeUID=uid, policyName="gpu-lost")
        await self.client.patch(CASES, f"{which}-{of}", {"status": status}, subresource="status")

    async def progress(self, of: str, **status: Any) -> None:
        """Where the case of this node stands now."""
        await self.client.patch(CASES, f"case-{of}", {"status": status}, subresource="status")

    async def add_node(self, name: str, gpus: int | None = 8, **conditions: str) -> None:
        """A Node."""
        await self.client.create(NODES, node(name, gpus, **conditions))

    async def condition(self, name: str, kind: str, status: str) -> None:
        """What one condition of a node says from now on."""
        body = {"status": {"conditions": [said(kind, status, self.ahead)]}}
        await self.client.patch(NODES, name, body, subresource="status", content_type=STRATEGIC_PATCH)

    async def patch_node(self, name: str, body: dict[str, Any]) -> None:
        """A merge patch."""
        await self.client.patch(NODES, name, body)

    async def bind(self, name: str, at: str, gpus: int) -> None:
        """A Pod on a node."""
        await self.client.create(PODS, pod(name, gpus, at), namespace="default")

    async def finish(self, name: str) -> None:
        """It ends well, and stays."""
        body = {"status": {"phase": "Succeeded"}}
        await self.client.patch(PODS, name, body, namespace="default", subresource="status")

    async def delete_pod(self, name: str) -> None:
        """It goes at once."""
        await self.client.transport.request("DELETE", PODS.path(name, "default"), body=b'{"gracePeriodSeconds":0}')

    async def sees(self, name: str, reason: str, gpus: int = 1) -> None:
        """Wait until the extender says this of the node."""
        await until(lambda: self.reason(name, gpus) == reason, 10)

    def reason(self, name: str, gpus: int = 1) -> str:
        """What the extender says of the node now."""
        return verdict_of(self.extender, name, {GPU: gpus} if gpus else {}).value

    def held(self, name: str) -> dict[str, int]:
        """The GPUs of the node that Pods hold, as the extender knows."""
        return dict(state_of(self.extender, name).used)


@asynccontextmanager
async def scheduler_harness() -> AsyncIterator[SchedulerHarness]:
    """A stand whose extender runs."""
    harness = SchedulerHarness()
    await harness.prepare()
    async with at_work(harness.informers.run(), harness.extender.run()):
        await until(harness.extender.ready, 10)
        yield harness
