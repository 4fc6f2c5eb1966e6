"""The attributes that a Pod may ask for, and the labels of a node that say them.

GPU Feature Discovery of NVIDIA and the node labeller of AMD write most of these labels. Nobody but users writes
`remediator.dev/gpu.ecc` and `gpu.nvlink`: no discovery tells whether ECC is on, or what joins the GPUs of a node.
Memory of NVIDIA is in MiB, and of one MIG device where a Pod asks for MIG devices.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from remediator.core.names import GPU_ECC, GPU_NVLINK
from remediator.scheduler.attributes.values import READ, Value, ValueKind

NVIDIA, AMD = "nvidia.com/", "amd.com/"
WHOLE = f"{NVIDIA}gpu"  # also of a Pod that asks for no resource, because it has a ResourceClaim
SHARED = ".shared"
MIG = f"{NVIDIA}mig-"
_RESOURCE = "{resource}"  # in the name of a label: the resource that is asked for

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute. `labels` by vendor: each row is one way to say it; its labels, joined by dots, are the value.

    `optional`: where a node has none, its discovery writes no label.
    """

    name: str
    kind: ValueKind
    labels: Mapping[str, tuple[Names, ...]]
    also: Names = ()  # other names that Pods may use
    optional: bool = False

    def labels_of(self, resource: str) -> tuple[str, ...]:
        """All labels that may say it of the GPUs that this resource counts."""
        vendor, whole = AMD if resource.startswith(AMD) else NVIDIA, resource.removesuffix(SHARED)
        return tuple(label.replace(_RESOURCE, whole) for row in self.labels.get(vendor, ()) for label in row)


def _nvidia(*names: str) -> tuple[Names, ...]:
    return (tuple(NVIDIA + name for name in names),)


_OF_RESOURCE = {name: ((f"{_RESOURCE}.{name}",),) for name in ("memory", "product", "count")}
_DRIVER = _nvidia("cuda.driver-version.full") + _nvidia(*(f"cuda.driver.{part}" for part in ("major", "minor", "rev")))
_CUDA = _nvidia("cuda.runtime-version.full") + _nvidia("cuda.runtime.major", "cuda.runtime.minor")
_ROWS = (
    Attribute(
        "memory",
        ValueKind.SIZE,
        {NVIDIA: _OF_RESOURCE["memory"], AMD: ((f"{AMD}gpu.vram",),)},
        (f"{NVIDIA}gpu-memory",),
    ),
    Attribute(
        "model", ValueKind.TEXT, {NVIDIA: _OF_RESOURCE["product"], AMD: ((f"{AMD}gpu.product-name",),)}, ("product",)
    ),
    Attribute("family", ValueKind.TEXT, {NVIDIA: _nvidia("gpu.family"), AMD: ((f"{AMD}gpu.family",),)}),
    Attribute(
        "ecc", ValueKind.SWITCH, {NVIDIA: ((GPU_ECC,),), AMD: ((GPU_ECC,),)}, (f"{NVIDIA}ecc", f"{NVIDIA}gpu-ecc")
    ),
    Attribute(
        "computeCapability",
        ValueKind.VERSION,
        {NVIDIA: _nvidia("gpu.compute.major", "gpu.compute.minor")},
        (f"{NVIDIA}compute-capability",),
    ),
    Attribute("driver", ValueKind.VERSION, {NVIDIA: _DRIVER, AMD: ((f"{AMD}gpu.driver-version",),)}),
    Attribute("cuda", ValueKind.VERSION, {NVIDIA: _CUDA}),
    Attribute("count", ValueKind.NUMBER, {NVIDIA: _OF_RESOURCE["count"]}),
    Attribute("nvlink", ValueKind.SWITCH, {NVIDIA: ((GPU_NVLINK,),)}, (f"{NVIDIA}nvlink",)),
    Attribute("clique", ValueKind.TEXT, {NVIDIA: _nvidia("gpu.clique")}, optional=True),
)
ATTRIBUTES: Mapping[str, Attribute] = {row.name: row for row in _ROWS}
_BY_NAME = {name: row for row in _ROWS for name in (row.name, *row.also)} | {
    labels[0].replace(_RESOURCE, WHOLE): row
    for row in _ROWS
    for ways in row.labels.values()
    for labels in ways
    if len(labels) == 1
}
_LABELS = frozenset(
    label.replace(_RESOURCE, WHOLE)
    for row in _ROWS
    for ways in row.labels.values()
    for labels in ways
    for label in labels
)
_OF_MIG = tuple(f".{name}" for name in _OF_RESOURCE)


def attribute(name: str) -> Attribute:
    """The attribute of this name, or of this label. Raises ValueError."""
    if name not in _BY_NAME:
        raise ValueError(f"no attribute; write one of {' '.join(ATTRIBUTES)}")
    return _BY_NAME[name]


def names_of(kind: ValueKind) -> Names:
    """All names of attributes of a kind, labels among them."""
    return tuple(name for name, row in _BY_NAME.items() if row.kind is kind)


@dataclass(frozen=True, slots=True, eq=False)
class NodeAttributes:
    """The labels of one node that say attributes of its GPUs. Nodes with the same labels share one."""

    labels: Mapping[str, str]

    def of(self, wanted: Attribute, resource: str) -> Value | None:
        """What is so of the GPUs that this resource counts; None where no label says it in a form that can be read."""
        vendor = AMD if resource.startswith(AMD) else NVIDIA
        whole = resource.removesuffix(SHARED)
        for row in wanted.labels.get(vendor, ()):
            words = [self.labels.get(label.replace(_RESOURCE, whole), "") for label in row]
            try:
                return READ[wanted.kind](".".join(word for word in words if word))
            except ValueError:
                continue
        return None

    def said(self, attribute: str, resource: str) -> list[tuple[str, str]]:
        """The labels that say an attribute, and their values, as they stand on the node."""
        labels = ATTRIBUTES[attribute].labels_of(resource)
        return [(label, self.labels[label]) for label in labels if label in self.labels]

    def lacks(self, wanted: Attribute, resource: str) -> bool:
        """Whether the GPUs surely have no such thing: their discovery is at work, and would have said it."""
        return wanted.optional and self.of(ATTRIBUTES["model"], resource) is not None


NO_FACTS = NodeAttributes({})


def facts_of(labels: Mapping[str, str]) -> NodeAttributes:
    """Of a node with these labels."""
    known = labels.keys() & _LABELS
    if MIG in "\n".join(labels):  # as on few nodes; to look at each of a hundred labels takes three times as long
        known |= {key for key in labels if _of_mig(key)}
    return _shared(tuple(sorted((key, labels[key]) for key in known))) if known else NO_FACTS


def _of_mig(label: str) -> bool:
    return label.startswith(MIG) and label.endswith(_OF_MIG)


@lru_cache(maxsize=1024)
def _shared(labels: tuple[tuple[str, str], ...]) -> NodeAttributes:
    return NodeAttributes(dict(labels))
