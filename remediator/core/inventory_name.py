"""The inventory of a group that has the name of a node: nothing is learnt of the node, and a user must know. Pure."""

from remediator.core.node_inventory import Inventory

REASON = "InventoryNameTaken"


def taken(node: str, inventory: Inventory | None) -> str:
    """Why nothing is learnt of a node, by the inventory of its name; "" where that is its own, or there is none."""
    if inventory is None or inventory.node == node:
        return ""
    return (
        f"the inventory of a group is named {node}, so nothing is learnt of the node {node}: give the inventory of the "
        "group another name"
    )
