"""Faults of nodes, and what cures them."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from remediator.core.device_count import DEVICES_MISSING
from remediator.core.idle_result import IDLE_TEST_FAILED
from remediator.core.node_versions import NODE_DRIFT
from remediator.core.reboot_loop import REBOOT_LOOP
from remediator.core.stuck_pods import STUCK_PODS


@dataclass(slots=True)
class Fault:
    """A condition that is bad. It goes with the operation number `tries` of those in `cures`; with none where empty.

    Cured, it comes back so often, each time after so many seconds: `returns`, `after`.
    """

    condition: str
    cures: tuple[str, ...] = ()
    tries: int = 1
    status: str = ""
    message: str = "broken by the plan"
    returns: int = 0
    after: float = 0.0

    def cured_by(self, operation: str) -> bool:
        """Whether this operation, carried out now, ends it."""
        self.tries -= operation in self.cures
        return bool(self.cures) and self.tries <= 0

    def again(self) -> "Fault":
        """The fault as it comes back."""
        return replace(self, tries=1, returns=self.returns - 1)

    def __str__(self) -> str:
        how = f"cured by {' or '.join(self.cures)} number {self.tries}" if self.cures else "nothing cures it"
        back = f", comes back {self.returns} times" if self.returns else ""
        return f"{self.condition} ({how}{back})"


class Known(NamedTuple):
    """What a shipped policy asks about, which operations of its ladder may cure that, and the status that is bad."""

    condition: str
    cures: tuple[str, ...] = ()
    status: str = ""


# By shipped policy: those that act, and those that only tell a person.
ACTING: dict[str, Known] = {
    "clock-skew": Known("ClockSkew", ("restart-service",)),
    "cni-unavailable": Known("CniUnavailable", ("reboot",)),
    "device-nodes-missing": Known("DeviceNodesMissing", ("reload-driver", "reboot")),
    "disk-pressure": Known("DiskPressure", ("clear-disk",)),
    "driver-mismatch": Known("DriverMismatch", ("reload-driver", "reboot")),
    "filesystem-error": Known("FilesystemError", ("reboot",)),
    "gpu-ecc": Known("GpuEccFault", ("reset-gpu", "reboot")),
    "gpu-lost": Known("GpuLost", ("reboot",)),
    "gpu-nvlink-fault": Known("GpuNvlinkFault", ("reset-gpu", "reboot")),
    "gpu-recovery-required": Known("GpuRecoveryRequired", ("reset-gpu", "reboot")),
    "gpu-xid": Known("GpuXid", ("reset-gpu", "reboot")),
    "memory-ecc": Known("MemoryEcc", ("reboot",)),
    "nfs-stale": Known("NfsStale", ("remount-nfs", "reboot")),
    "node-not-ready": Known("Ready", ("reboot",)),
    "node-unreachable": Known("Ready", ("power-cycle",), "Unknown"),
    "pcie-link-degraded": Known("PcieLinkDegraded", ("reboot",)),
    "runtime-unhealthy": Known("RuntimeUnhealthy", ("restart-service", "reboot")),
    "unkillable-process": Known("UnkillableProcess", ("reboot",)),
}
TELLING: dict[str, Known] = {
    "disk-fault": Known("DiskFault"),
    "dns-unavailable": Known("DnsUnavailable"),
    "gpu-busy-without-pod": Known("GpuBusyWithoutPod"),
    "gpu-throttled": Known("GpuThrottled"),
    "network-link-fault": Known("NetworkLinkFault"),
    "nfs-unavailable": Known("NfsUnavailable"),
    "node-pressure": Known("MemoryPressure"),
    "volume-error": Known("VolumeError"),
}
# Those that no seed draws: small plans ask for them by name.
UNDRAWN: dict[str, Known] = {
    "chassis-fault": Known("ChassisFault"),
    "cloud-maintenance": Known("CloudMaintenance"),
    "devices-missing": Known(DEVICES_MISSING),
    "filesystem-damage": Known("FilesystemDamage"),
    "gpu-memory-warning": Known("GpuMemoryWarning"),
    "gpu-memory-worn": Known("GpuMemoryWorn"),
    "idle-test-failed": Known(IDLE_TEST_FAILED),
    "kernel-fault": Known("KernelFault", ("reboot",)),
    "network-path-slow": Known("NetworkPathSlow"),
    "node-drift": Known(NODE_DRIFT),
    "nvlink-domain-fault": Known("NvlinkDomainFault"),
    "nvml-hung": Known("NvmlHung"),
    "pod-network-unavailable": Known("PodNetworkUnavailable"),
    "pods-stuck-terminating": Known(STUCK_PODS),
    "reboot-loop": Known(REBOOT_LOOP),
    "system-oom": Known("SystemOom"),
    "task-hung": Known("TaskHung"),
}
KNOWN = ACTING | TELLING | UNDRAWN
# Those that act within minutes, and first drain the node.
DRAINING = frozenset(ACTING) - {
    "clock-skew",
    "cni-unavailable",
    "disk-pressure",
    "driver-mismatch",
    "node-not-ready",
    "node-unreachable",
    "runtime-unhealthy",
}
