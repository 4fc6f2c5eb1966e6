"""The GPU device plugin of each node: a DaemonSet, and the part of its controller that the demo needs."""

import asyncio
from collections.abc import Iterable
from itertools import count
from typing import Any

from remediator.kube.runtime.reflector import Reflector
from remediator.kube.wire.client import Client, Kind
from remediator_sim.plain import PODS, SPACES, Object, patiently, whole

NAMESPACE, NAME = "gpu-operator", "nvidia-device-plugin-daemonset"
GENERATION = "1"
DAEMON_SETS = Kind("apps", "v1", "daemonsets", "DaemonSet", Object, namespaced=True)
TOLERATIONS = [{"operator": "Exists"}]


class DevicePlugin:
    """Keeps one Pod on each of these nodes. `open` it, then `run` it as a task."""

    def __init__(self, client: Client, nodes: Iterable[str]) -> None:
        self._client, self._nodes, self._numbers = client, list(nodes), count(1)
        self._missing: asyncio.Queue[str] = asyncio.Queue()
        self._uid = ""

    async def open(self) -> None:
        """The namespace, the DaemonSet and its first Pods."""
        await self._client.create(SPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        created = await self._client.create(DAEMON_SETS, _daemon_set(), namespace=NAMESPACE)
        self._uid = created["metadata"]["uid"]
        for node in self._nodes:
            await self._create_pod(node)

    async def run(self) -> None:
        """Create the Pod of a node again whenever it has gone."""
        pods: Reflector[Object, Object] = Reflector(self._client, PODS, whole, self._on_pod, namespace=NAMESPACE)
        async with asyncio.TaskGroup() as group:
            group.create_task(pods.run())
            while True:
                await self._create_pod(await self._missing.get())

    def _on_pod(self, key: str, old: Object | None, new: Object | None) -> None:
        if new is None and old is not None:
            self._missing.put_nowait(old["spec"]["nodeName"])

    async def _create_pod(self, node: str) -> None:
        pod = _pod(f"{NAME}-{next(self._numbers)}", node, self._uid)
        await patiently(lambda: self._client.create(PODS, pod, namespace=NAMESPACE))


def _template() -> dict[str, Any]:
    container = {"name": "nvidia-device-plugin-ctr", "image": "nvidia/k8s-device-plugin:1"}
    return {"containers": [container], "tolerations": TOLERATIONS}


def _daemon_set() -> dict[str, Any]:
    labels = {"app": NAME}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": NAME,
            "labels": labels,
            "annotations": {"deprecated.daemonset.template.generation": GENERATION},
        },
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": labels}, "spec": _template()},
        },
    }


def _pod(name: str, node: str, owner: str) -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": NAME, "uid": owner, "controller": True}
    meta = {
        "name": name,
        "labels": {"app": NAME, "pod-template-generation": GENERATION},
        "ownerReferences": [reference],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"nodeName": node, **_template()}}
