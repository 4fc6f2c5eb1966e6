"""The one exception to "nothing starts on Unknown": a node whose kubelet does not report, and what runs elsewhere."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from remediator.core.node import Node, Status
from remediator.core.policy import Policy
from remediator.core.template import RunOn, Template

ZONE = "topology.kubernetes.io/zone"
# Where so many nodes of a zone do not report, the zone is cut off, and its nodes are not dead: kube-controller-manager
# stops to evict Pods at the same numbers (--unhealthy-zone-threshold).
LEAST, SHARE = 3, 0.55


@dataclass(frozen=True, slots=True)
class Zone:
    """How many nodes a zone has in service, and how many of them do not report."""

    nodes: int
    unreachable: int

    @property
    def cut_off(self) -> bool:
        """Whether that is no fault of single nodes.

        >>> Zone(5, 3).cut_off, Zone(6, 3).cut_off, Zone(2, 2).cut_off
        (True, False, False)
        """
        return self.unreachable >= LEAST and self.unreachable >= SHARE * self.nodes


@dataclass(frozen=True, slots=True)
class DeadNodes:
    """What is known of the fleet that decides about nodes whose kubelet does not report.

    Attributes:
        on_target: Templates whose Pod, or that of what completes them, runs on the node itself.
        zones: By the label ZONE; "" are the nodes without it.
        leases: Why the Lease of a node has not expired yet, "" where it has; None where nobody has looked.
    """

    on_target: frozenset[str] = frozenset()
    zones: Mapping[str, Zone] = field(default_factory=dict)
    leases: Mapping[str, str] | None = None

    def need_kubelet(self, policy: Policy) -> list[str]:
        """The rungs of a policy on Ready Unknown that would run on the node."""
        return [rung.operation for rung in policy.ladder if rung.operation in self.on_target]

    def cut_off(self, node: Node) -> str:
        """Why the zone of the node counts as cut off; "" where it does not."""
        name = node.labels.get(ZONE, "")
        zone = self.zones.get(name, Zone(0, 0))
        where = f"zone {name}" if name else "nodes without a zone"
        return f"{where}: {zone.unreachable} of {zone.nodes} nodes do not report" if zone.cut_off else ""

    def alive(self, node: Node) -> str:
        """Why the kubelet of the node may still be alive; "" where its Lease has expired, or nobody has looked."""
        return "" if self.leases is None else self.leases.get(node.name, "its Lease has not been read yet")


def on_target(templates: Iterable[Template]) -> frozenset[str]:
    """The templates of which something runs on the node: their own Pod, or that of what completes them."""
    known = {template.name: template for template in templates}
    direct = {name for name, template in known.items() if template.run_on is RunOn.TARGET}
    return frozenset(name for name, each in known.items() if name in direct or not direct.isdisjoint(each.after))


def in_service(node: Node) -> bool:
    """Whether no user keeps the node out of service: one that is kept out says nothing of its zone, well or silent."""
    return not (node.opted_out or node.cordoned_by_user)


def unreachable(node: Node) -> bool:
    """Whether its kubelet does not report, and no user keeps the node out of service."""
    return node.ready is Status.UNKNOWN and in_service(node)
