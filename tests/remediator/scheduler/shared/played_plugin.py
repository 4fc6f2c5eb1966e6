"""gpushare's device plugin as far as Pods and annotations go, played after its source (pkg/gpu/nvidia).

The kubelet asks for so many devices of one container; the plugin looks for the Pod that is meant (allocate.go), among
those on its node that are Pending, ask for memory, were assumed and not assigned yet (podmanager.go, podutils.go).
"""

from datetime import UTC, datetime
from typing import Any

from remediator.kube.wire.transport import STRATEGIC_PATCH
from tests.harness.kinds import PODS
from tests.remediator.scheduler.shared.stand import MEMORY, Stand

Object = dict[str, Any]
INDEX, ASSIGNED, ASSUMED = (f"ALIYUN_COM_GPU_MEM_{word}" for word in ("IDX", "ASSIGNED", "ASSUME_TIME"))


def memory(pod: Object) -> int:
    """getGPUMemoryFromPodResource: limits of containers, without init containers."""
    return sum(int(each["resources"].get("limits", {}).get(MEMORY, 0)) for each in pod["spec"]["containers"])


def is_candidate(pod: Object, node: str) -> bool:
    """getPendingPodsInNode and isGPUMemoryAssumedPod."""
    notes = pod["metadata"].get("annotations", {})
    waits = pod["spec"].get("nodeName") == node and pod.get("status", {}).get("phase", "Pending") == "Pending"
    return waits and memory(pod) > 0 and ASSUMED in notes and notes.get(ASSIGNED) == "false"


def assumed(pod: Object) -> int:
    """getAssumeTimeFromPodAnnotation: 0 where it is no number that uint64 holds."""
    text = pod["metadata"]["annotations"][ASSUMED]
    return int(text) if text.isdecimal() and int(text) < 2**64 else 0


def index(pod: Object) -> int:
    """getGPUIDFromPodAnnotation: -1 where strconv.Atoi refuses it."""
    text = pod["metadata"]["annotations"].get(INDEX, "")
    return int(text) if text.isdecimal() else -1


class PlayedPlugin:
    """One node with so many cards; `allocate` is what the kubelet calls for each container."""

    def __init__(self, stand: Stand, node: str, cards: int) -> None:
        self._stand, self._node, self._cards = stand, node, cards

    async def allocate(self, devices: int) -> str:
        """NVIDIA_VISIBLE_DEVICES of the container: the card, or no-gpu-has-…-to-run."""
        candidates = [pod for pod in await self._pods() if is_candidate(pod, self._node)]
        found = next((pod for pod in sorted(candidates, key=assumed) if memory(pod) == devices), None)
        if found is None:
            return "card-0" if self._cards == 1 else f"no-gpu-has-{devices}GiB-to-run"
        card = index(found)
        if not 0 <= card < self._cards:
            return f"no-gpu-has-{devices}GiB-to-run"
        await self._assign(found)
        return f"card-{card}"

    async def _pods(self) -> list[Object]:
        return await self._stand.client.list_all(PODS, namespace="default")

    async def _assign(self, pod: Object) -> None:
        """patchPodAnnotationSpecAssigned, which also writes the time anew."""
        now = str(int(datetime.now(UTC).timestamp() * 10**9))
        body = {"metadata": {"annotations": {ASSIGNED: "true", ASSUMED: now}}}
        name = pod["metadata"]["name"]
        await self._stand.client.patch(PODS, name, body, namespace="default", content_type=STRATEGIC_PATCH)
