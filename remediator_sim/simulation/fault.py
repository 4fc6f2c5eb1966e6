"""Faults of nodes, and what cures them."""

from dataclasses import dataclass


@dataclass(slots=True)
class Fault:
    """A condition that is bad. It goes with the operation number `tries` of those in `cures`; with none where empty."""

    condition: str
    cures: tuple[str, ...] = ()
    tries: int = 1
    status: str = ""
    message: str = "broken by the plan"

    def cured_by(self, operation: str) -> bool:
        """Whether this operation, carried out now, ends it."""
        self.tries -= operation in self.cures
        return bool(self.cures) and self.tries <= 0

    def __str__(self) -> str:
        how = f"cured by {' or '.join(self.cures)} number {self.tries}" if self.cures else "nothing cures it"
        return f"{self.condition} ({how})"


# By shipped policy: the condition that it asks about, and the operations of its ladder.
KNOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "gpu-lost": ("GpuLost", ("reboot",)),
    "gpu-ecc": ("GpuEccFault", ("reset-gpu", "reboot")),
    "gpu-xid": ("GpuXid", ("reset-gpu", "reboot")),
    "gpu-nvlink-fault": ("GpuNvlinkFault", ("reset-gpu", "reboot")),
    "nfs-stale": ("NfsStale", ("remount-nfs", "reboot")),
    "driver-mismatch": ("DriverMismatch", ("reload-driver", "reboot")),
    "runtime-unhealthy": ("RuntimeUnhealthy", ("restart-service", "reboot")),
    "unkillable-process": ("UnkillableProcess", ("reboot",)),
    "node-not-ready": ("Ready", ("reboot",)),
}
