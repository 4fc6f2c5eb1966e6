"""The fleet of the demo: racks of GPU nodes, a few nodes for everything else, and their budget."""

from collections.abc import Mapping
from typing import Any, NamedTuple

RACK = "topology.kubernetes.io/rack"
GPU = "nvidia.com/gpu.present"
GPUS = 4
ALL = 24  # GPU nodes of the whole demo
AT_ONCE = 2  # nodes of a rack that may be out of service at once
RACKS = ("a", "b", "c")
SYSTEM = ("system-1", "system-2")
PACKED, POOL = ("pack-1", "pack-2"), "packing"  # two nodes of two GPUs that no fault strikes
PACKED_GPUS = 2


class Place(NamedTuple):
    """One node and where it stands; nodes without GPUs run what must not run on those that are repaired."""

    name: str
    number: int  # within its rack, from 1
    labels: Mapping[str, str]
    gpus: int


def places(nodes: int) -> list[Place]:
    """So many GPU nodes, spread over the racks, and the system nodes."""
    gpu = [_gpu_node(RACKS[index % len(RACKS)], index // len(RACKS) + 1) for index in range(nodes)]
    rest = [Place(name, index + 1, {RACK: "system"}, 0) for index, name in enumerate(SYSTEM)]
    return [*sorted(gpu, key=lambda place: place.name), *rest]


def _gpu_node(rack: str, number: int) -> Place:
    return Place(f"gpu-{rack}{number}", number, {RACK: f"rack-{rack}", GPU: "true"}, GPUS)


def budget(at_once: int) -> dict[str, Any]:
    """One budget, which counts the GPU nodes of each rack alone."""
    spec = {"selector": {"matchLabels": {GPU: "true"}}, "groupBy": RACK, "maxUnavailable": at_once}
    return {
        "apiVersion": "remediator.dev/v1alpha1",
        "kind": "NodeDisruptionBudget",
        "metadata": {"name": "racks"},
        "spec": spec,
    }
