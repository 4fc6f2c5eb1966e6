"""Inventories that do not do what they say: one of a group with the name of a node, and kinds that nothing counts."""

from collections.abc import Collection, Iterator

from remediator.core.inventory_name import taken
from remediator.core.kinds_expected import wrong_kinds
from remediator.core.node import Node
from remediator.kube.manifests.decoded import Documents, inventories


def warnings(documents: Documents, nodes: Collection[Node] = ()) -> Iterator[str]:
    """A sentence for each. `nodes`: those of a cluster, which may count kinds of their own."""
    named = {node.name for node in nodes}
    counted = {kind for node in nodes if node.counted for kind in node.counted.kinds}
    for inventory in inventories(documents):
        if inventory.name in named and inventory.selector is not None:
            yield taken(inventory.name, inventory)
        yield from wrong_kinds(inventory, counted)
