"""What NVML says of Pods that Prometheus has idle: by the Condition GpuUse of their nodes, each read once in a pass."""

from collections.abc import Collection, Mapping
from datetime import datetime

from remediator.core import gpu_use
from remediator.core.gpu_use import UseProof
from remediator.core.idle_policy import IdlePolicy, NvmlSource
from remediator.core.node import Node
from remediator.core.pod_facts import PodFacts
from remediator.janitor.idle.evidence import Evidence
from remediator.janitor.idle.table import State
from remediator.kube.api import decode
from remediator.kube.api.builtin import NODE
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client


class NodesRead:
    """Nodes by name, None for one that is not there. `refused`: why nodes cannot be read, if so."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, Node | None] = {"": None}  # of a Pod that has no node
        self.refused = ""

    async def of(self, nodes: Collection[str], *, anew: bool) -> Mapping[str, Node | None]:
        """These nodes; `anew`: as they are now. Raises TooManyRequests and Unavailable."""
        for name in {*nodes} - {""}:
            if anew or name not in self._known:
                self._known[name] = await self._read(name)
        return self._known

    async def _read(self, name: str) -> Node | None:
        try:
            return decode.node(await self._client.get(NODE, name))
        except errors.NotFound:
            return None
        except (errors.TooManyRequests, errors.Unavailable):
            raise
        except errors.ApiError as refused:
            self.refused = f"nobody can tell what NVML says: nodes cannot be read: {refused.message}"
            return None


def judge(
    pod: PodFacts, first: Evidence, nodes: Mapping[str, Node | None], policy: IdlePolicy, now: datetime
) -> Evidence:
    """One Pod, of which `first` is what Prometheus proves: NVML makes nothing idle that is not by that.

    Where NVML cannot tell, that counts only if the policy requires it.
    """
    if first.state is not State.IDLE:
        return first
    proof, why = gpu_use.found(nodes.get(pod.node), pod.uid, policy.idle_for, now)
    if proof is UseProof.USED:
        return Evidence(State.CONTRADICTED, f"NVML: {pod.name}: {why}")
    if proof is UseProof.UNKNOWN and policy.nvml is NvmlSource.REQUIRED:
        return Evidence(State.UNKNOWN, f"NVML: {pod.name}: {why}")
    return first
