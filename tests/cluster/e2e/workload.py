"""What runs on a node when it falls ill: two Pods of a team behind a PodDisruptionBudget, and a DaemonSet's Pod."""

import uuid
from contextlib import suppress
from typing import Any

from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator_sim.plain import PDBS
from tests.harness.kinds import ACCOUNTS, DAEMON_SETS, NAMESPACES, PODS
from tests.harness.objects import DECLARED
from tests.harness.waiting import until

REPLICAS = 2
BUDGET = "training"


class Workload:
    """The Pods of one node, in a namespace of their own. `controllers`: whether somebody else serves DaemonSets."""

    def __init__(self, client: Client, node: str, *, controllers: bool) -> None:
        self.client, self.node, self._controllers = client, node, controllers
        self.space = f"team-{uuid.uuid4().hex[:8]}"  # a namespace that goes keeps its name for a while
        self.apps = [f"training-{index}" for index in range(REPLICAS)]

    async def start(self) -> None:
        """Everything runs, and the budget lets all Pods go."""
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.space}}
        await self.client.create(NAMESPACES, space)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "app"}}
        await self.client.create(ACCOUNTS, account, namespace=self.space)
        budget = {"minAvailable": 0, "selector": {"matchLabels": {"app": "training"}}}
        await self.client.create(
            PDBS, _object("policy/v1", "PodDisruptionBudget", BUDGET, budget), namespace=self.space
        )
        made = await self.client.create(DAEMON_SETS, self._daemon_set(), namespace=self.space)
        for name in self.apps:
            await self.client.create(PODS, self._pod(name, {"app": "training"}), namespace=self.space)
        await self._daemon(made)
        await until(self._runs, 30)
        await until(lambda: self._says("disruptionsAllowed", REPLICAS), 30)

    async def allow(self, disruptions: int) -> None:
        """Let so many Pods go. A drain that waits may take them before the budget's status can be read."""
        change = {"spec": {"minAvailable": REPLICAS - disruptions}}
        await self.client.patch(PDBS, BUDGET, change, namespace=self.space)
        await until(lambda: self._says("desiredHealthy", REPLICAS - disruptions), 30)

    async def pods(self) -> dict[str, str]:
        """The uids of the Pods that are there, by name."""
        found = await self.client.list_all(PODS, namespace=self.space)
        return {one["metadata"]["name"]: one["metadata"]["uid"] for one in found}

    async def remove(self) -> None:
        """Take everything away that a later node of this name would stumble over."""
        with suppress(errors.NotFound):
            await self.client.delete(DAEMON_SETS, "exporter", namespace=self.space)
        for name in await self.pods():
            path = PODS.path(name, self.space)
            await self.client.transport.request("DELETE", path, body=b'{"gracePeriodSeconds":0}')
        with suppress(errors.NotFound):
            await self.client.delete(NAMESPACES, self.space)

    async def _runs(self) -> bool:
        found = await self.client.list_all(PODS, namespace=self.space)
        running = [one for one in found if one.get("status", {}).get("phase") == "Running"]
        return len(running) == REPLICAS + 1

    async def _says(self, key: str, count: int) -> bool:
        """Whether the budget's status is of its present spec and shows this."""
        budget = await self.client.get(PDBS, BUDGET, namespace=self.space)
        status = budget.get("status", {})
        current = status.get("observedGeneration") == budget["metadata"]["generation"]
        return current and status.get(key) == count

    async def _daemon(self, made: dict[str, Any]) -> None:
        """The DaemonSet's Pod, where no controller makes it."""
        if self._controllers:
            return
        owner = {key: made[key] for key in ("apiVersion", "kind")}
        owner |= {"name": made["metadata"]["name"], "uid": made["metadata"]["uid"], "controller": True}
        pod = self._pod("exporter", {"app": "exporter"})
        pod["metadata"]["ownerReferences"] = [owner]
        await self.client.create(PODS, pod, namespace=self.space)

    def _daemon_set(self) -> dict[str, Any]:
        pod = self._pod("exporter", {"app": "exporter"})
        template = {"metadata": {"labels": {"app": "exporter"}}, "spec": pod["spec"] | {"restartPolicy": "Always"}}
        template["spec"].pop("nodeName")
        template["spec"]["nodeSelector"] = {"kubernetes.io/hostname": self.node}
        selector = {"matchLabels": {"app": "exporter"}}
        return _object("apps/v1", "DaemonSet", "exporter", {"selector": selector, "template": template})

    def _pod(self, name: str, labels: dict[str, str]) -> dict[str, Any]:
        spec = {
            "nodeName": self.node,
            "serviceAccountName": "app",
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "team/app:1", "command": ["sleep", "infinity"]}],
        }
        pod = _object("v1", "Pod", name, spec)
        pod["metadata"] |= {"labels": labels, "annotations": DECLARED}
        return pod


def _object(version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
