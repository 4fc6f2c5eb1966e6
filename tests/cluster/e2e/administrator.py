"""What an administrator sees of a cluster: the objects as they are now, and what the two command lines print."""

import sys
from pathlib import Path
from typing import Any

from deploy.images.programs import binary
from remediator.core import names
from remediator.kube.api.builtin import LEASE
from remediator.kube.wire import errors
from remediator.kube.wire.client import Kind
from remediator_sim.kubelet.program import output
from remediator_sim.plain import NODES, PODS, condition, of_node
from tests.cluster.servers import Server
from tests.harness.kinds import CASES

REMEDIATOR = Path(sys.executable).with_name("remediator")


class Administrator:
    """Reads one cluster; every answer is what the server holds at that moment."""

    def __init__(self, server: Server) -> None:
        self.server, self.client = server, server.client

    async def node(self, name: str) -> dict[str, Any]:
        """One node as it is now."""
        return await self.client.get(NODES, name)

    async def condition(self, node: str, kind: str, status: str = "") -> dict[str, Any] | None:
        """The node's condition of that type, if it has that status."""
        try:
            shown = condition(await self.node(node), kind)
        except errors.NotFound:
            return None
        return shown if shown and status in ("", shown["status"]) else None

    async def of_node(self, kind: Kind[dict], node: str) -> list[dict[str, Any]]:
        """The cases or operations of one node."""
        return of_node(await self.client.list_all(kind), node)

    async def case(self, node: str, *phases: str) -> dict[str, Any] | None:
        """The node's only case, once it is in one of these phases."""
        cases = await self.of_node(CASES, node)
        assert len(cases) <= 1, [case["metadata"]["name"] for case in cases]
        return cases[0] if cases and cases[0].get("status", {}).get("phase", "") in phases else None

    async def operation_pods(self) -> list[dict[str, Any]]:
        """The Pods of operations that are still there."""
        return await self.client.list_all(PODS, namespace=names.OPERATIONS_NAMESPACE)

    async def over(self, node: str) -> dict[str, Any] | None:
        """The node's case, once it has ended and nothing of it is left: no finalizer, no Pod."""
        case = await self.case(node, "Recovered", "Escalated", "Cancelled")
        done = case and case["status"].get("endedAt") and not case["metadata"].get("finalizers")
        return case if done and not await self.operation_pods() else None

    async def leader(self) -> str:
        """Which controller holds the lease; empty while none does."""
        leases = await self.client.list_all(LEASE, namespace=names.SYSTEM_NAMESPACE)
        return next((lease.spec.holder_identity for lease in leases if lease.metadata["name"] == "remediator"), "")

    async def explain(self, node: str) -> str:
        """What `remediator explain` says."""
        assert self.server.kubeconfig
        return await output(REMEDIATOR, "explain", node, "--kubeconfig", self.server.kubeconfig)

    async def kubectl(self, *arguments: str) -> str:
        """What kubectl prints for an administrator; its cache goes with the server's files."""
        assert self.server.kubeconfig
        home = f"HOME={self.server.kubeconfig.parent}"
        return await output("env", home, binary("kubectl"), "--kubeconfig", self.server.kubeconfig, *arguments)
