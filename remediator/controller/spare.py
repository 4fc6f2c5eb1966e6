"""Which GPUs are free, counted node by node and Pod by Pod as they change: by the watch that the extender has, too."""

from remediator.core.node import Node
from remediator.core.spare import PodHolding, SpareGpus
from remediator.kube.runtime.informer import Informer


class SpareCounts:
    """Follows nodes and the Pods that hold GPUs."""

    def __init__(self, nodes: Informer[Node], pods: Informer[PodHolding]) -> None:
        self._nodes, self._pods, self._spare = nodes, pods, SpareGpus()
        nodes.on_view(self._on_node)
        pods.on_view(self._spare.put_pod)

    @property
    def now(self) -> SpareGpus | None:
        """What is free now; None while the list of Pods is not complete, or old."""
        self._nodes.settle()
        return self._spare if self._pods.fresh() else None

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        node = new or old
        if node is not None:
            self._spare.put_node(node.name, new)
