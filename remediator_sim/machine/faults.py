"""What can break on a simulated machine, and what mends it."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple


class Cure(StrEnum):
    """What can be done to a node, by the name of its operation."""

    RESET_GPU = "reset-gpu"
    REMOUNT = "remount-nfs"
    REBOOT = "reboot"


class FaultKind(StrEnum):
    """What breaks."""

    GPU_LOST = "gpu-lost"  # has fallen off the bus
    GPU_ECC = "gpu-ecc"  # uncorrected memory errors, and a row remap that waits for a reset
    GPU_WORN = "gpu-worn"  # no spare rows left in its memory
    MOUNT_STUCK = "mount-stuck"  # the client hangs though the server answers
    MOUNT_STALE = "mount-stale"  # the server no longer knows what was mounted
    UNKILLABLE = "unkillable"  # a thread of a Pod sleeps in the kernel with SIGKILL pending


CURES: Mapping[FaultKind, frozenset[Cure]] = {
    FaultKind.GPU_LOST: frozenset({Cure.REBOOT}),
    FaultKind.GPU_ECC: frozenset({Cure.RESET_GPU, Cure.REBOOT}),
    FaultKind.GPU_WORN: frozenset(),
    FaultKind.MOUNT_STUCK: frozenset({Cure.REMOUNT, Cure.REBOOT}),
    FaultKind.MOUNT_STALE: frozenset({Cure.REMOUNT, Cure.REBOOT}),
    FaultKind.UNKILLABLE: frozenset({Cure.REBOOT}),
}


class MachineFault(NamedTuple):
    """One fault. `where`: index of a GPU, mount point, or uid of a Pod; `returns`: back after every cure."""

    kind: FaultKind
    where: int | str
    returns: bool = False


def cured(faults: Iterable[MachineFault], cure: Cure, where: int | str | None = None) -> tuple[MachineFault, ...]:
    """The faults that are left after a cure of `where`, or of everything."""
    return tuple(
        fault
        for fault in faults
        if fault.returns or cure not in CURES[fault.kind] or (where is not None and fault.where != where)
    )
