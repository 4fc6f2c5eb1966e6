"""What the labels of a node tell a person of its machine. Pure."""

from collections.abc import Mapping

NODE_LABELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("rack", ("topology.kubernetes.io/rack", "rack")),
    ("zone", ("topology.kubernetes.io/zone",)),
    ("machine", ("node.kubernetes.io/instance-type", "nvidia.com/gpu.machine")),
    ("GPU", ("nvidia.com/gpu.product", "amd.com/gpu.product-name")),
)


def of_labels(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The values that a node has, by the words of `NODE_LABELS`.

    >>> of_labels({"rack": "r12"})
    (('rack', 'r12'),)
    """
    named = ((word, next((labels[key] for key in keys if labels.get(key)), "")) for word, keys in NODE_LABELS)
    return tuple((word, value) for word, value in named if value)
