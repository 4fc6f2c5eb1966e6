"""Which nodes can take Pods with rights in the API, counted node by node as they change."""

from collections import Counter
from typing import Protocol

from remediator.core.node import Node
from remediator.core.places import EVERYWHERE, ApiNodes, Places, Taints
from remediator.kube.runtime.informer import Informer


class NodeCounts(Protocol):
    """What is known of these nodes."""

    chosen: ApiNodes

    @property
    def now(self) -> Places:
        """How many there are now."""

    def differs(self, old: Node | None, new: Node | None) -> bool:
        """Whether this change of a node matters."""


class Uncounted:
    """For who does not know all nodes: that none is missing; the controller has told where one is."""

    now = EVERYWHERE

    def __init__(self, chosen: ApiNodes) -> None:
        self.chosen = chosen

    def differs(self, old: Node | None, new: Node | None) -> bool:
        """Never."""
        return False


class PlaceCounts:
    """Follows nodes. What it costs to ask does not depend on how many nodes there are."""

    def __init__(self, nodes: Informer[Node], chosen: ApiNodes) -> None:
        self._nodes, self.chosen = nodes, chosen
        self._free: Counter[Taints] = Counter()
        nodes.on_view(self._moved)

    @property
    def now(self) -> Places:
        """How many there are now."""
        self._nodes.settle()
        return Places(self.chosen, dict(self._free))

    def differs(self, old: Node | None, new: Node | None) -> bool:
        """Whether this change of a node matters."""
        return self._taints(old) != self._taints(new)

    def _taints(self, node: Node | None) -> Taints | None:
        return self.chosen.taints(node) if node is not None else None

    def _moved(self, old: Node | None, new: Node | None) -> None:
        before, after = self._taints(old), self._taints(new)
        if before == after:
            return
        if after is not None:
            self._free[after] += 1
        if before is not None:
            self._free[before] -= 1
            if not self._free[before]:
                del self._free[before]
