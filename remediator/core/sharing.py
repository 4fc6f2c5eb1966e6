"""How the GPUs of a node are divided and shared, by the labels of GPU Feature Discovery and of the GPU operator.

Users change that at any time, and with it how many of each resource a node counts.
"""

from collections.abc import Mapping

from remediator.core import names
from remediator.core.node import Node

PRODUCT = "nvidia.com/gpu.product"
STRATEGY = "nvidia.com/mig.strategy"
_HOW = (".sharing-strategy", ".replicas")  # labels of each resource: nvidia.com/mig-1g.10gb.replicas
_WHOLE = "nvidia.com/gpu"
_NVIDIA, _COUNT_LABEL = "nvidia.com/", "nvidia.com/gpu.count"  # the label is among the devices of a node, too
# Users write these: what the MIG manager makes of the GPUs, and the configuration of the device plugin.
_MIG_WISH = "nvidia.com/mig.config"
_WISHES = (_MIG_WISH, "nvidia.com/device-plugin.config")
_MIG_STATE = f"{_MIG_WISH}.state"  # the MIG manager writes it: pending, rebooting, success, failed
_MIG_RESOURCE = "/mig-"
_DISCOVERED = (STRATEGY, *(_WHOLE + how for how in _HOW))
_MOST_OF_MIG = 10  # labels of MIG resources: a case has room for 16 in all
_NOTHING = frozenset({"", "none", "0", "1", "all-disabled"})  # values that say the same as no label
_MIG, _INVALID = "-MIG-", "INVALID"

Layout = tuple[tuple[str, str], ...]  # (label, value), sorted


def layout(node: Node) -> Layout:
    """What the labels say of it. PRODUCT stands for the profile of its MIG devices where all have the same."""
    labels = (*_WISHES, *_DISCOVERED, *_of_mig(node.labels))
    words = {label: _value(node.labels, label) for label in labels} | {PRODUCT: _profile(node.labels)}
    return tuple(sorted((label, word) for label, word in words.items() if word))


def changed(before: Layout, node: Node) -> bool:
    """Whether the node is divided or shared otherwise than before. A label that is gone says nothing where nobody
    discovers GPUs now; nor do replicas and profile while the MIG devices make no sense, as after a reset. The
    labels of a MIG resource go with its devices: that they are gone says nothing.
    """
    then, now = dict(before), dict(layout(node))
    heard = _heard(node.labels)
    other = {label for label in {*then, *now} if then.get(label, "") != now.get(label, "")}
    telling = {*now, *((*_DISCOVERED, *node.labels) if heard else ())} - {PRODUCT}
    return bool(other & telling) or (PRODUCT in other and PRODUCT in then and PRODUCT in now)


def divides_by_growth(node: Node, resource: str) -> bool:
    """Whether more of a resource than before says that somebody has divided the GPUs otherwise. It does not while the
    MIG manager is at work, nor do whole GPUs where a label wishes for MIG devices: a reboot may have undone these.
    """
    settled = node.labels.get(_MIG_STATE, "") in {"", "success"}
    return settled and (_MIG_RESOURCE in resource or not _value(node.labels, _MIG_WISH))


def shares(node: Node, resource: str) -> bool:
    """Whether several Pods may have one device of a resource at once: time slicing or MPS. Where no label is about this
    resource, those of whole GPUs are.
    """
    own = any(resource + how in node.labels for how in _HOW)
    return any(_value(node.labels, (resource if own else _WHOLE) + how) for how in _HOW)


def exclusive(node: Node, gpus: int) -> bool:
    """Whether each of the `gpus` GPUs that NVML lists is known to be of one Pod at a time.

    It is not where nothing counts whole GPUs: claims of devices may be of several Pods, too.
    """
    counts = {name: count for name, count in node.devices if name.startswith(_NVIDIA) and name != _COUNT_LABEL}
    whole = counts.pop(_WHOLE, 0)
    shared = shares(node, _WHOLE) or node.cards.shared or node.labels.get(names.GPU_MPS) == "true"
    return 0 < whole <= gpus and not shared and not any(counts.values())


def counts_mig(labels: Mapping[str, str]) -> bool:
    """Whether the label nvidia.com/gpu.count counts MIG devices: strategy `single`, where GPUs are divided."""
    return labels.get(STRATEGY) == "single" and _MIG in labels.get(PRODUCT, _MIG)


def _value(labels: Mapping[str, str], label: str) -> str:
    value = labels.get(label, "")
    return "" if value in _NOTHING else value


def _of_mig(labels: Mapping[str, str]) -> list[str]:
    """The labels that say how MIG resources are shared."""
    shared = (label for label in labels if _MIG_RESOURCE in label and label.endswith(_HOW) and _value(labels, label))
    return sorted(shared)[:_MOST_OF_MIG]


def _profile(labels: Mapping[str, str]) -> str:
    profile = labels.get(PRODUCT, "").partition(_MIG)[2].removesuffix("-SHARED")
    return "" if profile == _INVALID else profile


def _heard(labels: Mapping[str, str]) -> bool:
    """Whether GPU Feature Discovery tells of the node now, and makes sense of it."""
    product = labels.get(PRODUCT, "")
    return bool(product) and not product.endswith(_MIG + _INVALID)
