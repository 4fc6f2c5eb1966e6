"""How many nodes of each zone are in service and do not report, counted node by node as they change."""

from collections import Counter
from collections.abc import Mapping

from remediator.core.dead_node import ZONE, Zone, in_service, unreachable
from remediator.core.node import Node
from remediator.kube.runtime.informer import Informer


class ZoneCounts:
    """Follows nodes. What it costs to ask does not depend on how many nodes there are."""

    def __init__(self, nodes: Informer[Node]) -> None:
        self._nodes = nodes
        self._total: Counter[str] = Counter()
        self._unreachable: Counter[str] = Counter()
        nodes.on_view(self._moved)

    @property
    def now(self) -> Mapping[str, Zone]:
        """Every zone, by its name."""
        self._nodes.settle()
        return {name: Zone(count, self._unreachable[name]) for name, count in self._total.items() if count}

    def _moved(self, old: Node | None, new: Node | None) -> None:
        for node, step in ((old, -1), (new, 1)):
            if node is not None:
                name = node.labels.get(ZONE, "")
                self._total[name] += step * in_service(node)
                self._unreachable[name] += step * unreachable(node)
