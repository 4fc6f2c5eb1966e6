"""Inventories of groups that have the name of a node of a cluster, of which nothing is learnt then."""

from collections.abc import Iterable, Iterator
from typing import Any

from remediator.core.inventory_name import taken
from remediator.core.node import Node
from remediator.core.node_inventory import Inventory
from remediator.core.selector import EVERYTHING
from remediator.kube import api


def warnings(documents: Iterable[tuple[str, dict[str, Any]]], nodes: Iterable[Node]) -> Iterator[str]:
    """A sentence for each."""
    known = {node.name for node in nodes}
    for _, document in documents:
        metadata, spec = document.get("metadata"), document.get("spec")
        if document.get("kind") != api.INVENTORY.name or not isinstance(metadata, dict) or not isinstance(spec, dict):
            continue
        name = metadata.get("name")
        if name in known and "nodeSelector" in spec:
            yield taken(str(name), Inventory(str(name), selector=EVERYTHING))
