"""Which Conditions have a page that says what to do, and where it is: docs/conditions/NAME.md of the repository."""

FOLDER = "docs/conditions"

PAGES = frozenset(
    {
        *("ChassisFault", "ClockSkew", "CloudMaintenance", "CniUnavailable", "DetectorStale", "DeviceInventory"),
        *("DeviceNodesMissing", "DevicesMissing", "DiskFault", "DiskPressure", "DnsUnavailable", "DriverMismatch"),
        *("FilesystemDamage", "FilesystemError", "GpuBusyWithoutPod", "GpuDeviceTainted", "GpuEccFault", "GpuLost"),
        *(
            "GpuMemoryWarning",
            "GpuMemoryWorn",
            "GpuNvlinkFault",
            "GpuRecoveryRequired",
            "GpuThrottled",
            "GpuUse",
            "GpuXid",
        ),
        *("IdleTestFailed", "KernelFault", "MemoryEcc", "MemoryPressure", "MpsUnhealthy", "NetworkLinkFault"),
        *("NetworkPathSlow", "NfsStale", "NfsUnavailable", "NodeDrift", "NodeVersions", "NvlinkDomainFault"),
        *("NvmlHung", "PIDPressure", "PcieLinkDegraded", "PodNetworkUnavailable", "PodsRejected"),
        *("PodsStuckTerminating", "Ready", "RebootLoop", "RemoteMountFault", "RuntimeUnhealthy", "SystemOom"),
        *("TaskHung", "UnkillableProcess", "VolumeError"),
    }
)


def runbook(condition: str) -> str:
    """The page of a Condition; "" for one of your own, and for an alert.

    >>> runbook("GpuXid"), runbook("Alert/NodeGpuXid")
    ('docs/conditions/GpuXid.md', '')
    """
    return f"{FOLDER}/{condition}.md" if condition in PAGES else ""


def runbook_address(condition: str, docs: str) -> str:
    """Where people read that page, whose docs/ are at `docs`; its path in the repository where nobody has said.

    >>> runbook_address("GpuXid", "https://git.example.org/docs"), runbook_address("GpuXid", "")
    ('https://git.example.org/docs/conditions/GpuXid.md', 'docs/conditions/GpuXid.md')
    """
    path = runbook(condition)
    return f"{docs}/{path.removeprefix('docs/')}" if docs and path else path
