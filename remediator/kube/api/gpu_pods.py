"""GPUs: how many a Node offers and how many a Pod requests. The scheduler handles all other resources."""

import re
from collections import Counter

from remediator.core.node import Gpus
from remediator.kube.api.builtin import Node, Quantities
from remediator.kube.api.common import Base
from remediator.kube.wire.client import Kind


class Resources(Base, frozen=True, kw_only=True):
    """What one container asks for."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class Container(Base, frozen=True, kw_only=True):
    """One container; an init container that restarts always is a sidecar."""

    resources: Resources | None = None
    restart_policy: str | None = None


class PodSpec(Base, frozen=True, kw_only=True):
    """Where a Pod runs and what it asks for."""

    node_name: str | None = None
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None


class Owner(Base, frozen=True, kw_only=True):
    """Whose Pod it is."""

    kind: str = ""
    controller: bool | None = None


class PodMeta(Base, frozen=True, kw_only=True):
    """What we read of a Pod's metadata."""

    owner_references: tuple[Owner, ...] | None = None


class Pod(Base, frozen=True, kw_only=True):
    """A Pod as far as placing it goes."""

    metadata: PodMeta = PodMeta()
    spec: PodSpec = PodSpec()

    @property
    def daemon(self) -> bool:
        """Whether a DaemonSet made it: such a Pod has one node only, healthy or not."""
        return any(owner.kind == "DaemonSet" and owner.controller for owner in self.metadata.owner_references or ())


POD: Kind[Pod] = Kind("", "v1", "pods", "Pod", Pod, namespaced=True)
RUNNING = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"  # the Pods that hold what they asked for

_GPU = re.compile(r"nvidia\.com/(gpu(\.shared)?|mig-.{1,59})|amd\.com/gpu|gpu\.intel\.com/(i915|xe)")
_QUANTITY = re.compile(r"([0-9]{1,18})(?:([kMG]|[KMG]i)|e([0-9]))?")
_UNITS = {"k": (10, 3), "M": (10, 6), "G": (10, 9), "Ki": (2, 10), "Mi": (2, 20), "Gi": (2, 30)}


def offered(node: Node) -> Gpus:
    """GPUs that the node can give; 0 where it had some. A resource that is absent may still come from a DRA driver.

    Raises ValueError for a count that cannot be read.
    """
    return tuple(sorted(_gpus(node.status.allocatable)))


def readable(node: Node) -> Gpus:
    """What the node offers of resources whose count can be read: an odd one must not hide the node from its repair."""
    quantities = node.status.allocatable or {}
    return tuple(sorted(gpu for name, value in quantities.items() for gpu in _countable(name, value)))


def _countable(name: str, value: str | int) -> list[tuple[str, int]]:
    try:
        return _gpus({name: value})
    except ValueError:
        return []


def size(pod: Pod) -> int:
    """How much there is to read: containers, and what they ask for."""
    containers = (pod.spec.init_containers or ()) + (pod.spec.containers or ())
    wants = [container.resources for container in containers if container.resources is not None]
    return len(containers) + sum(len(wanted.requests or ()) + len(wanted.limits or ()) for wanted in wants)


def asked(pod: Pod) -> Gpus:
    """GPUs that the Pod needs at once: containers and sidecars together, or what one init container needs if more."""
    sidecars: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for container in pod.spec.init_containers or ():
        for name, number in _wanted(container).items():  # what only sidecars want counts with the containers below
            peak[name] = max(peak[name], sidecars[name] + number)
            sidecars[name] += number * (container.restart_policy == "Always")
    together = sum((_wanted(container) for container in pod.spec.containers or ()), sidecars)
    return tuple(sorted((together | peak).items()))


def _wanted(container: Container) -> Counter[str]:
    """Requests; a limit without a request is one, too."""
    resources = container.resources
    if resources is None:
        return Counter()
    return Counter(dict(_gpus((resources.limits or {}) | (resources.requests or {}))))


def _gpus(quantities: Quantities | None) -> list[tuple[str, int]]:
    return [(name, count(value)) for name, value in (quantities or {}).items() if _GPU.fullmatch(name)]


def count(quantity: str | int) -> int:
    """A quantity of things that come whole. Raises ValueError for anything that is no whole number.

    >>> [count(quantity) for quantity in ("8", 8, "2k", "1Ki", "1e3")]
    [8, 8, 2000, 1024, 1000]
    """
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        raise ValueError(f"not a whole number of GPUs: {str(quantity)[:40]!r}")
    digits, unit, exponent = match.groups()
    base, power = _UNITS[unit] if unit else (10, int(exponent or 0))
    factor: int = base**power
    return int(digits) * factor
