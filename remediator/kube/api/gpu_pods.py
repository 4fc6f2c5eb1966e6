"""GPUs: how many a Node offers and how many a Pod requests. The scheduler handles all other resources."""

import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import ceil

import msgspec
from msgspec import field

from remediator.core import job, names
from remediator.core.node import Gpus
from remediator.core.sharing import counts_mig
from remediator.kube.api.builtin import Node, Quantities
from remediator.kube.api.common import Base, controller_kind
from remediator.kube.wire.client import Kind


class Resources(Base, frozen=True, kw_only=True):
    """What one container asks for."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class Container(Base, frozen=True, kw_only=True):
    """One container; an init container that restarts always is a sidecar."""

    resources: Resources | None = None
    restart_policy: str | None = None


class SchedulingGroup(Base, frozen=True, kw_only=True):
    """Which PodGroup a Pod is of."""

    pod_group_name: str | None = None


class GpuPodSpec(Base, frozen=True, kw_only=True):
    """Where a Pod runs, what it asks for, and with whom."""

    node_name: str | None = None
    scheduling_group: SchedulingGroup | None = None
    active_deadline_seconds: int | None = None
    priority_class_name: str | None = None
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None


class PodOwner(Base, frozen=True, kw_only=True):
    """Whose Pod it is."""

    kind: str = ""
    controller: bool | None = None


# Of gpushare-scheduler-extender: which card a Pod was given, and how much of it; and the same by container, as JSON.
CARD_INDEX, CARD_MEMORY = "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_POD"
CARD_ALLOCATION = "scheduler.framework.gpushare.allocation"


class Annotations(Base, frozen=True, kw_only=True):
    """What a Pod asks of GPUs, beside their number, and of the health of its node."""

    gpu: str | None = field(default=None, name=names.GPU)
    gpu_preferred: str | None = field(default=None, name=names.GPU_PREFERRED)
    gpu_affinity: str | None = field(default=None, name=names.GPU_AFFINITY)
    require_health: str | None = field(default=None, name=names.REQUIRE_HEALTH)
    gpu_mps: str | None = field(default=None, name=names.ASKS_MPS)
    gpu_cards: str | None = field(default=None, name=names.GPU_CARDS)
    card_index: str | None = field(default=None, name=CARD_INDEX)
    card_memory: str | None = field(default=None, name=CARD_MEMORY)
    card_allocation: str | None = field(default=None, name=CARD_ALLOCATION)
    volcano: str | None = field(default=None, name=job.VOLCANO)
    size: str | None = field(default=None, name=names.GANG_SIZE)
    size_of_group: str | None = field(default=None, name="leaderworkerset.sigs.k8s.io/size")
    size_of_kueue: str | None = field(default=None, name="kueue.x-k8s.io/pod-group-total-count")


class GangLabels(Base, frozen=True, kw_only=True):
    """The labels that name the gang of a Pod: those of core/job.py."""

    own: str | None = field(default=None, name=job.OWN)
    jobset: str | None = field(default=None, name="jobset.sigs.k8s.io/jobset-name")
    group: str | None = field(default=None, name="leaderworkerset.sigs.k8s.io/group-key")
    training: str | None = field(default=None, name="training.kubeflow.org/job-name")
    volcano: str | None = field(default=None, name="volcano.sh/job-name")
    ray: str | None = field(default=None, name="ray.io/cluster")
    pod_group: str | None = field(default=None, name="scheduling.x-k8s.io/pod-group")
    kueue: str | None = field(default=None, name="kueue.x-k8s.io/pod-group-name")


class GpuPodMeta(Base, frozen=True, kw_only=True):
    """What we read of a Pod's metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    annotations: Annotations | None = None
    labels: GangLabels | None = None
    owner_references: tuple[PodOwner, ...] | None = None


class GpuPodStatus(Base, frozen=True, kw_only=True):
    """How far a Pod has come."""

    phase: str = ""


class GpuPod(Base, frozen=True, kw_only=True):
    """A Pod as far as placing it goes."""

    metadata: GpuPodMeta = GpuPodMeta()
    spec: GpuPodSpec = GpuPodSpec()
    status: GpuPodStatus = GpuPodStatus()

    @property
    def daemon(self) -> bool:
        """Whether a DaemonSet made it: such a Pod has one node only, healthy or not."""
        return controller_kind(self.metadata.owner_references or ()) == "DaemonSet"

    @property
    def gives_way(self) -> bool:
        """Whether it tests an idle node: what it holds is free for any other Pod."""
        return self.spec.priority_class_name == names.IDLE_TEST_PRIORITY

    @property
    def gang(self) -> job.Job | None:
        """The gang that it is of; None where it is of none."""
        labels, annotations = self.metadata.labels, self.metadata.annotations
        group = self.spec.scheduling_group
        named = {label: value for name, label in _GANG_LABELS if (value := getattr(labels, name, None))}
        volcano = {job.VOLCANO: annotations.volcano} if annotations is not None and annotations.volcano else {}
        if not (named or volcano or group):
            return None
        its = job.job_of(self.metadata.namespace, "", named, volcano, (group.pod_group_name if group else "") or "")
        return its if job.is_gang(its) else None

    @property
    def gang_size(self) -> int:
        """How many Pods its gang has, as annotations say; 0 where none does."""
        asked = self.metadata.annotations or Annotations()
        sizes = (asked.size, asked.size_of_group, asked.size_of_kueue)
        return next((int(size) for size in sizes if size and re.fullmatch("[0-9]{1,6}", size)), 0)


_GANG_LABELS = tuple((each.name, each.encode_name) for each in msgspec.structs.fields(GangLabels))
POD: Kind[GpuPod] = Kind("", "v1", "pods", "Pod", GpuPod, namespaced=True)
RUNNING = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"  # the Pods that hold what they asked for

CPU = "cpu"
LONGEST_ASKED = 1024  # characters of what a Pod that runs asks of GPUs: more is not kept
_GPU = re.compile(r"nvidia\.com/(gpu(\.shared)?|mig-.{1,59})|amd\.com/gpu|gpu\.intel\.com/(i915|xe)")
_QUANTITY = re.compile(r"([0-9]{1,18})(?:([kMG]|[KMG]i)|e([0-9]))?")
_UNITS = {"k": (10, 3), "M": (10, 6), "G": (10, 9), "Ki": (2, 10), "Mi": (2, 20), "Gi": (2, 30)}


def is_gpu(resource: str) -> bool:
    """Whether a resource counts GPUs."""
    return _GPU.fullmatch(resource) is not None


def offered(node: Node) -> Gpus:
    """GPUs that the node can give; 0 where it had some. A resource that is absent may still come from a DRA driver.

    Raises ValueError for a count that cannot be read.
    """
    return tuple(sorted(_gpus(node.status.allocatable)))


def readable(node: Node) -> Gpus:
    """What the node offers of resources whose count can be read: an odd one must not hide the node from its repair."""
    quantities = node.status.allocatable or {}
    return tuple(sorted(gpu for name, value in quantities.items() for gpu in _countable(name, value)))


COUNT_LABEL = "nvidia.com/gpu.count"  # of GPU feature discovery: what NVML lists
MOST_DEVICES = 16  # kinds of them that a case has room for


def devices(node: Node) -> Gpus:
    """The GPUs that the node is known to have, sick ones too: its capacity by resource, and what NVML lists."""
    capacity = [gpu for name, value in (node.status.capacity or {}).items() for gpu in _countable(name, value)]
    labels = node.metadata.labels
    listed = "" if counts_mig(labels) else labels.get(COUNT_LABEL, "")
    label = [(COUNT_LABEL, int(listed))] if re.fullmatch("[0-9]{1,6}", listed) else []
    return tuple(sorted([*capacity, *label])[:MOST_DEVICES])


def _countable(name: str, value: str | int) -> list[tuple[str, int]]:
    try:
        return _gpus({name: value})
    except ValueError:
        return []


def size(pod: GpuPod) -> int:
    """How much there is to read: containers, and what they ask for."""
    containers = (pod.spec.init_containers or ()) + (pod.spec.containers or ())
    wants = [container.resources for container in containers if container.resources is not None]
    return len(containers) + sum(len(wanted.requests or ()) + len(wanted.limits or ()) for wanted in wants)


def asked(pod: GpuPod) -> Gpus:
    """GPUs that the Pod needs at once: containers and sidecars together, or what one init container needs if more."""
    return needed(pod)[0]


def needed(pod: GpuPod) -> tuple[Gpus, int]:
    """The same of GPUs, and of CPU in thousandths of a core. Raises ValueError for a count that cannot be read."""
    together = _together(pod, _wanted)
    cpu = together.pop(CPU, 0)
    return tuple(sorted(together.items())), cpu


def at_once(pod: GpuPod, resource: re.Pattern[str]) -> Counter[str]:
    """The same of the resources whose name is so. Raises ValueError for a count that cannot be read."""
    return _together(pod, lambda container: wanted(container, resource))


def _together(pod: GpuPod, wanted: Callable[[Container], Counter[str]]) -> Counter[str]:
    sidecars: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for container in pod.spec.init_containers or ():
        for name, number in wanted(container).items():  # what only sidecars want counts with the others below
            peak[name] = max(peak[name], sidecars[name] + number)
            sidecars[name] += number * (container.restart_policy == "Always")
    return sum((wanted(container) for container in pod.spec.containers or ()), sidecars) | peak


def wanted(container: Container, resource: re.Pattern[str]) -> Counter[str]:
    """Requests of one container; a limit without a request is one, too. Raises ValueError."""
    return Counter(dict(_gpus(_quantities(container), resource)))


def _quantities(container: Container) -> Quantities:
    resources = container.resources
    return (resources.limits or {}) | (resources.requests or {}) if resources is not None else {}


def asks(annotations: Annotations | None) -> tuple[str, str]:
    """The two annotations that require attributes of GPUs; empty where they are longer than anybody reads."""
    if annotations is None:
        return _NO_ASKS
    asked = annotations.gpu or "", annotations.gpu_affinity or ""
    return asked if len(asked[0]) + len(asked[1]) <= LONGEST_ASKED else _NO_ASKS


_NO_ASKS = ("", "")


def _wanted(container: Container) -> Counter[str]:
    """GPUs, and CPU in thousandths of a core."""
    quantities = _quantities(container)
    wanted = Counter(dict(_gpus(quantities)))
    if CPU in quantities:
        wanted[CPU] = milli_cores(quantities[CPU])
    return wanted


@lru_cache(4096)
def milli_cores(quantity: str | int) -> int:
    """A quantity of CPU in thousandths of a core, rounded up; 0 for what cannot be read: only scores rest on it.

    >>> [milli_cores(quantity) for quantity in (2, "2", "1500m", "0.5", "1e3", "100u", "many")]
    [2000, 2000, 1500, 500, 1000000, 1, 0]
    """
    match = _CORES.fullmatch(str(quantity)[:40])
    if match is None:
        return 0
    digits, unit, exponent = match.groups()
    value: Fraction = Fraction(digits) * Fraction(10) ** (3 + _DECIMAL[unit or ""] + int(exponent or 0))
    return ceil(value)


_CORES = re.compile(r"([0-9]{1,9}(?:\.[0-9]{0,9})?)(?:([numk])|[eE]([0-9]))?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3}


def _gpus(quantities: Quantities | None, resource: re.Pattern[str] = _GPU) -> list[tuple[str, int]]:
    return [(name, count(value)) for name, value in (quantities or {}).items() if resource.fullmatch(name)]


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
