"""For how many Pods of one shape each domain has room, on nodes that are known to be well."""

from collections.abc import Mapping
from itertools import repeat

from remediator.scheduler.gang.topology import Domain, Topology
from remediator.scheduler.reasons import WELL, VerdictReason
from remediator.scheduler.row import NodeState
from remediator.scheduler.verdict import Shape


def fits(reason: VerdictReason, row: NodeState, shape: Shape) -> int:
    """How many Pods of the shape a node takes now.

    >>> row = NodeState(VerdictReason.FIT, (("nvidia.com/gpu", 8),), (("nvidia.com/gpu", 3),))
    >>> fits(VerdictReason.FIT, row, Shape((("nvidia.com/gpu", 2),)))
    2
    """
    if reason not in WELL:
        return 0
    return min((max(0, total - used) // asked for total, used, asked in row.of(shape.gpus) if asked), default=0)


class GangRooms:
    """Follows the nodes of the answers for one shape."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._fits: dict[str, int] = {}
        self._made_for: int | None = None  # the version of the topology; None once a node has changed
        self._of_domain: Mapping[Domain, int] = {}

    def copy(self) -> "GangRooms":
        """Rooms of their own that begin as these."""
        other = GangRooms(self._topology)
        other._fits = dict(self._fits)
        return other

    def put(self, node: str, count: int) -> None:
        """For how many Pods a node has room now; 0 where it is gone."""
        if count:
            self._fits[node] = count
        else:
            self._fits.pop(node, None)
        self._made_for = None

    def now(self) -> Mapping[Domain, int]:
        """The domains, and for how many Pods each has room."""
        if self._made_for != self._topology.version:
            counts = self._fits.get
            self._of_domain = {
                domain: sum(map(counts, members, repeat(0))) for domain, members in self._topology.domains()
            }
            self._made_for = self._topology.version
        return self._of_domain
