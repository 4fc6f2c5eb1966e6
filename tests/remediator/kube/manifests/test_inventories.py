"""Inventories against the names of nodes, and against the kinds that are counted."""

from remediator.core.device_count import DeviceCount
from remediator.kube.manifests.inventories import warnings
from tests.builders import a_node
from tests.remediator.kube.manifests.examples import manifest


def test_the_inventory_of_a_group_that_has_the_name_of_a_node_is_warned_of():
    of_group, other = manifest("NodeInventory", "gpu-1"), manifest("NodeInventory", "h100-nodes")
    of_node = manifest("NodeInventory", "gpu-2", nodeSelector=None, nodeName="gpu-2")
    documents = [("a", of_group), ("b", of_node), ("c", other), ("d", {"kind": "NodeInventory"})]
    (told,) = warnings(documents, [a_node("gpu-1"), a_node("gpu-2")])
    assert told.startswith("the inventory of a group is named gpu-1, so nothing is learnt of the node gpu-1: give")
    assert list(warnings(documents, [])) == []


def test_a_kind_that_nothing_counts_is_named_with_its_field_and_the_nearest_kind():
    nic, odd = (
        manifest("NodeInventory", "h100", expected={"nic": 9, "gpus": 8}),
        manifest("NodeInventory", expected={"x": 1}),
    )
    misspelt, strange = warnings([("a", nic), ("b", odd)])
    assert misspelt == "NodeInventory h100: spec.expected.nic: nothing counts this kind; did you mean nics?"
    assert "spec.expected.x: nothing counts this kind; write one of addresses, cpus, gpus, mounts," in strange
    counting = a_node("gpu-1", counted=DeviceCount((("nic", 9), ("x", 1))))
    assert list(warnings([("a", nic), ("b", odd)], [counting])) == [], "a program of the user counts them"
