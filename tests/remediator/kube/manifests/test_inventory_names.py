"""Inventories of groups against the names of nodes."""

from remediator.kube.manifests.inventory_names import warnings
from tests.builders import a_node
from tests.remediator.kube.manifests.examples import manifest


def test_the_inventory_of_a_group_that_has_the_name_of_a_node_is_warned_of():
    of_group, other = manifest("NodeInventory", "gpu-1"), manifest("NodeInventory", "h100-nodes")
    of_node = manifest("NodeInventory", "gpu-2", nodeSelector=None, nodeName="gpu-2")
    documents = [("a", of_group), ("b", of_node), ("c", other), ("d", {"kind": "NodeInventory"})]
    (told,) = warnings(documents, [a_node("gpu-1"), a_node("gpu-2")])
    assert told.startswith("the inventory of a group is named gpu-1, so nothing is learnt of the node gpu-1: give")
    assert list(warnings(documents, [])) == []
