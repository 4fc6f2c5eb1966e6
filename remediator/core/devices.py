"""What drivers of DRA say of the GPUs of a node by taints in ResourceSlices, as a Condition of the node. Pure.

Taints of DeviceTaintRules stand in no slice: what we, or a user, isolate by a rule is no evidence of a fault.
Source: k8s.io/api resource/v1, types.go.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from remediator.core import names
from remediator.core.node import Status
from remediator.core.own_condition import OwnCondition

CONDITION = "GpuDeviceTainted"
GPU_DRIVERS = "gpu."  # how drivers of GPUs begin: gpu.nvidia.com, gpu.amd.com, gpu.intel.com
EFFECTS = ("NoExecute", "NoSchedule")  # that keep Pods off, the stronger first; all others say nothing of a fault
UNTAINTED, INCOMPLETE, ABSENT = "NoDeviceTaint", "PoolIncomplete", "NoResourceSlice"
MOST = 16  # devices, or pools, in a message


@dataclass(frozen=True, slots=True)
class DeviceTaint:
    """One taint of a device."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Device:
    """One device with taints; `uuid` is "" where the driver tells none."""

    name: str
    uuid: str
    taints: tuple[DeviceTaint, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a pool of devices: `slices` is how many parts this generation of the pool has. "" is no one node."""

    name: str
    node: str
    driver: str
    pool: str
    generation: int
    slices: int
    tainted: tuple[Device, ...] = ()
    version: str = field(default="", compare=False)

    @property
    def of_gpus(self) -> bool:
        """Whether the driver is one of GPUs."""
        return self.driver.startswith(GPU_DRIVERS)


def own_condition(slices: Iterable[Slice]) -> OwnCondition:
    """What these slices, all of one node, say of its GPUs.

    A taint that keeps Pods off is a fault; its key is the reason, of several that of the strongest, then the first in
    the alphabet. Without one, a pool of which parts are missing, or a node without any pool, proves nothing.
    """
    newest = [current for pool in _pools(slices) for current in pool]
    tainted = (device for part in newest for device in part.tainted)
    faults = sorted(((taint, device) for device in tainted for taint in _faults(device)), key=_rank)
    if faults:
        return OwnCondition(CONDITION, Status.TRUE, faults[0][0].key, _message(faults))
    if not newest:
        return OwnCondition(CONDITION, Status.UNKNOWN, ABSENT, "no driver publishes GPUs of this node now")
    missing = sorted(pool[0].pool for pool in _pools(slices) if len(pool) < pool[0].slices)
    if missing:
        return OwnCondition(
            CONDITION, Status.UNKNOWN, INCOMPLETE, f"parts are missing of the pool {_listed(missing, ', ')}"
        )
    return OwnCondition(CONDITION, Status.FALSE, UNTAINTED, "no driver has tainted a GPU of this node")


def _pools(slices: Iterable[Slice]) -> list[list[Slice]]:
    """The slices of GPUs by pool, of each only its newest generation: older ones are about to go."""
    ours = sorted((part for part in slices if part.of_gpus), key=lambda part: (part.driver, part.pool))
    pools = [list(parts) for _, parts in groupby(ours, key=lambda part: (part.driver, part.pool))]
    return [[part for part in parts if part.generation == max(each.generation for each in parts)] for parts in pools]


def _faults(device: Device) -> list[DeviceTaint]:
    """Those of its taints that keep Pods off and are not ours."""
    return [taint for taint in device.taints if taint.effect in EFFECTS and not taint.key.startswith(f"{names.GROUP}/")]


def _rank(faults: tuple[DeviceTaint, Device]) -> tuple[int, str, str, str]:
    taint, device = faults
    return EFFECTS.index(taint.effect), taint.key, device.name, taint.value


def _message(faults: Sequence[tuple[DeviceTaint, Device]]) -> str:
    """Which device has which taint, with the UUID by which other programs know the GPU."""
    lines = [f"{device.name}{f' ({device.uuid})' if device.uuid else ''} {taint}" for taint, device in faults]
    return _listed(lines, "; ")


def _listed(texts: Sequence[str], between: str) -> str:
    more = f" and {len(texts) - MOST} more" if len(texts) > MOST else ""
    return f"{between.join(texts[:MOST])}{more}"
