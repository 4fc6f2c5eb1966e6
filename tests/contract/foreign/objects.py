"""What was seen on nodes: of each source what it wrote, when that was looked at, and where it is recorded.

Facts only, written down anew: types, statuses, reasons, times, labels of Pods. `well` and `sick` are Conditions as they
were recorded, or as the source's own code and pages say that they are written; a reason that neither shows is empty.
"""

from typing import Any, NamedTuple

Object = dict[str, Any]


class Recorded(NamedTuple):
    """A node as one source leaves it. `pod` is that of the source, where it matters whether that is Ready."""

    policy: str
    source: str
    at: str  # when it was looked at
    well: tuple[Object, ...]
    sick: Object | None
    pod: Object | None = None


def said(type: str, status: str, reason: str, beat: str, since: str, message: str = "") -> Object:
    """One Condition."""
    times = {"lastHeartbeatTime": beat, "lastTransitionTime": since}
    return {"type": type, "status": status, "reason": reason, "message": message, **times}


def pod(namespace: str, owner: str = "DaemonSet", **labels: str) -> Object:
    """A Pod, with the labels that matter."""
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "x", "uid": "u", "controller": True}]
    return {"namespace": namespace, "labels": labels, "ownerReferences": owners}


NAME = "app.kubernetes.io/name"
# A node of a cluster with NVSentinel 1.174.8: the one was over for 3 hours and 9 days, and both were last written then.
SYSLOG = (
    said("SysLogsXIDError", "False", "SysLogsXIDErrorIsHealthy", "2025-11-27T04:00:42Z", "2025-11-27T04:00:42Z"),
    said("SysLogsSXIDError", "False", "SysLogsSXIDErrorIsHealthy", "2025-11-27T04:00:42Z", "2025-11-18T11:30:58Z"),
    said(
        "SysLogsGPUFallenOff", "False", "SysLogsGPUFallenOffIsHealthy", "2025-11-27T04:00:42Z", "2025-11-18T11:30:58Z"
    ),
)
WATCHES = tuple(
    said(check, "False", f"{check}IsHealthy", "2025-11-06T10:00:00Z", "2025-11-06T10:00:00Z", "No Health Failures")
    for check in ("GpuMemWatch", "GpuInforomWatch", "GpuSmWatch", "GpuNvlinkWatch", "GpuPcieWatch")
)
INFOROM = "ErrorCode:DCGM_FR_CORRUPT_INFOROM GPU:0 Recommended Action=COMPONENT_RESET;"
EKS = (
    ("AcceleratedHardwareReady", "NvidiaAcceleratedHardwareIsReady"),
    ("KernelReady", "KernelIsReady"),
    ("StorageReady", "StorageIsReady"),
    ("NetworkingReady", "NetworkingIsReady"),
    ("ContainerRuntimeReady", "ContainerRuntimeIsReady"),
)
EKS_WELL = tuple(said(type, "True", reason, "2025-12-24T02:32:26Z", "2025-12-24T02:32:26Z") for type, reason in EKS)
EKS_SICK = said("AcceleratedHardwareReady", "False", "NvidiaXID79Error", "2025-12-24T02:40:12Z", "2025-12-24T02:40:12Z")
GKE_BEAT, GKE_SINCE = "2024-05-09T08:35:17Z", "2024-05-09T08:00:13Z"
GKE = (
    ("FrequentUnregisterNetDevice", "NoFrequentUnregisterNetDevice"),
    ("FrequentKubeletRestart", "NoFrequentKubeletRestart"),
    ("FrequentContainerdRestart", "NoFrequentContainerdRestart"),
    ("KernelDeadlock", "KernelHasNoDeadlock"),
    ("ReadonlyFilesystem", "FilesystemIsNotReadOnly"),
    ("CorruptDockerOverlay2", "NoCorruptDockerOverlay2"),
)
AKS_BEAT, AKS_SINCE = "2026-06-30T16:58:18Z", "2026-06-30T16:57:54Z"
AKS = ("GPUMissing", "NVLinkStatusInactive", "XIDError", "XIDErrors", "IBLinkFlapping")
AKS_REASONS = {"XIDError": "XIDErrorIsNotPresent"}
AKS_NODE = (
    "FilesystemCorruptionProblem",
    "ReadonlyFilesystem",
    "KernelDeadlock",
    "KubeletProblem",
    "ContainerRuntimeProblem",
    "FrequentContainerdRestart",
)

RECORDED = (
    Recorded(
        "nvsentinel-syslog",
        "https://github.com/NVIDIA/NVSentinel/issues/458: kubectl describe, 2025-11-27",
        "2025-11-27T07:00:00Z",
        SYSLOG,
        said("SysLogsXIDError", "True", "SysLogsXIDErrorIsNotHealthy", "2025-11-27T03:16:10Z", "2025-11-27T03:16:10Z"),
        pod("nvsentinel", **{NAME: "syslog-health-monitor"}),
    ),
    Recorded(
        "nvsentinel-gpu",
        "https://github.com/NVIDIA/NVSentinel: end-to-end tests of its GPU monitor, process_node_events.go (2025-11)",
        "2025-11-06T22:00:00Z",
        WATCHES,
        said(
            "GpuInforomWatch",
            "True",
            "GpuInforomWatchIsNotHealthy",
            "2025-11-06T10:05:00Z",
            "2025-11-06T10:05:00Z",
            INFOROM,
        ),
        pod("nvsentinel", **{NAME: "gpu-health-monitor"}),
    ),
    Recorded(
        "eks-accelerated-hardware",
        "https://github.com/aws/eks-node-monitoring-agent: node_exporter.go (heartbeatInterval), a node of 2025-12-24",
        "2025-12-24T02:41:00Z",
        EKS_WELL,
        EKS_SICK,
    ),
    Recorded(
        "eks-node",
        "the same",
        "2025-12-24T02:41:00Z",
        EKS_WELL,
        said("KernelReady", "False", "ForkFailedOutOfPIDs", "2025-12-24T02:40:12Z", "2025-12-24T02:40:12Z"),
    ),
    Recorded(
        "gke-node",
        "https://github.com/cryptnono/cryptnono/issues/34: kubectl describe, GKE 1.29, 2024-05-09",
        "2024-05-09T08:38:06Z",
        tuple(said(type, "False", reason, GKE_BEAT, GKE_SINCE) for type, reason in GKE),
        said("FrequentContainerdRestart", "True", "FrequentContainerdRestart", GKE_BEAT, GKE_SINCE),
    ),
    Recorded(
        "gke-xid",
        "https://github.com/GoogleCloudPlatform/container-engine-accelerators/pull/497: YAML of a node, 2025-06-23",
        "2025-06-23T20:30:00Z",
        (),
        said("XidCriticalError", "True", '{"31":true}', "2025-06-23T18:58:44Z", "2025-06-23T18:44:57Z"),
        pod("kube-system", **{"k8s-app": "nvidia-gpu-device-plugin"}),
    ),
    Recorded(
        "aks-gpu",
        "https://github.com/Azure/AgentBaker/pull/8797: a node, 2026-06-30; types: Microsoft's page on NPD in AKS",
        "2026-06-30T17:00:00Z",
        tuple(said(type, "False", AKS_REASONS.get(type, ""), AKS_BEAT, AKS_SINCE) for type in AKS),
        said("XIDError", "True", "", AKS_BEAT, AKS_SINCE),
    ),
    Recorded(
        "aks-node",
        "the same",
        "2026-06-30T17:00:00Z",
        tuple(said(type, "False", "", AKS_BEAT, AKS_SINCE) for type in AKS_NODE),
        said("ContainerRuntimeProblem", "True", "ContainerRuntimeIsDown", AKS_BEAT, AKS_SINCE),
    ),
    Recorded(
        "gpu-operator-validator",
        "https://github.com/NVIDIA/gpu-operator: the Pod nvidia-operator-validator of a node, 2023-06-08",
        "2023-06-09T10:00:00Z",
        (),
        None,
        pod("gpu-operator", app="nvidia-operator-validator"),
    ),
)
