"""What nodes run on: which systems we know, how a node shows them, and which operations are refused there, and why.

The one table of it: `remediator lint` and docs/hosts.md read it, and tests hold the programs on nodes to it.
"""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple


class HostKind(StrEnum):
    """A system that nodes run, a runtime of theirs, or a distribution of Kubernetes. One node may be of several."""

    LINUX = "linux"
    CRI_O = "cri-o"
    K3S = "k3s"
    RKE2 = "rke2"
    FLATCAR = "flatcar"
    OPENSHIFT = "openshift"
    GKE = "gke"
    GKE_AUTOPILOT = "gke-autopilot"
    BOTTLEROCKET = "bottlerocket"
    TALOS = "talos"


class HostRefusal(NamedTuple):
    """Why an operation is refused on a host, and what helps instead."""

    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.why}: {self.remedy}"


class HostRow(NamedTuple):
    """One host: its `title`, what it `needs` from us, what is `refused` there, and what to know of what works."""

    title: str
    needs: str = ""
    refused: Mapping[str, HostRefusal] = {}
    notes: Mapping[str, str] = {}


# Operations whose Pods run on the node, or whose programs a watchdog runs there. All others act through the API server
# or a BMC, and so on every host.
ON_NODE = (
    "reboot",
    "restart-service",
    "reset-gpu",
    "reload-driver",
    "kill-orphaned-processes",
    "remount-nfs",
    "clear-disk",
    "gpu-check",
    "collect-diagnostics",
    "run-command",
    "restart-kubelet",
    "restart-runtime",
    "reboot-by-watchdog",
)
DETECTORS = "detectors"  # all of them, as a row beside those of operations
_AUTOPILOT = HostRefusal("Autopilot admits no Pod with privileges or with folders of the node", "use GKE Standard")
_SERVICES = HostRefusal("Talos has no systemd", "take the rung out, or restart the service with talosctl service")
_IMAGE = HostRefusal("Talos loads the modules that its machine configuration names, at boot", "reboot the node")

HOSTS: Mapping[HostKind, HostRow] = {
    HostKind.LINUX: HostRow("systemd, containerd (Ubuntu, RHEL, DGX OS, Amazon Linux)"),
    HostKind.CRI_O: HostRow("CRI-O", notes={"restart-runtime": "restarts crio", "restart-service": "knows crio"}),
    HostKind.K3S: HostRow(
        "k3s",
        notes={
            "restart-kubelet": "restarts k3s or k3s-agent, which is the runtime, too",
            "restart-runtime": "restarts k3s or k3s-agent, which is the kubelet, too",
            "clear-disk": "asks `k3s crictl`",
        },
    ),
    HostKind.RKE2: HostRow(
        "RKE2",
        notes={
            "restart-kubelet": "restarts rke2-server or rke2-agent, which is the runtime, too",
            "restart-runtime": "restarts rke2-server or rke2-agent, which is the kubelet, too",
            "clear-disk": "asks RKE2's own crictl",
        },
    ),
    HostKind.FLATCAR: HostRow(
        "Flatcar Container Linux", notes={"clear-disk": "no images are removed: Flatcar has no crictl"}
    ),
    HostKind.OPENSHIFT: HostRow(
        "OpenShift (Red Hat Enterprise Linux CoreOS, CRI-O)",
        needs="deploy/hosts/openshift: SecurityContextConstraints for Pods with privileges",
        notes={"restart-runtime": "restarts crio"},
    ),
    HostKind.GKE: HostRow(
        "GKE Standard (Container-Optimized OS, Ubuntu)",
        needs="deploy/hosts/gke: quotas that let Pods have the priority classes of the system",
        refused={
            "reload-driver": HostRefusal(
                "GKE's installer loads the driver from a folder that modprobe does not know", "reboot the node"
            ),
        },
        notes={
            "reset-gpu": "finds nvidia-smi in /home/kubernetes/bin/nvidia",
            "remount-nfs": "only where the image has mount.nfs; else the program refuses",
            DETECTORS: "those that list Pods as the kubelet cannot tell: its kubeconfig has no certificate",
        },
    ),
    HostKind.GKE_AUTOPILOT: HostRow("GKE Autopilot", refused=dict.fromkeys((*ON_NODE, DETECTORS), _AUTOPILOT)),
    HostKind.BOTTLEROCKET: HostRow(
        "Bottlerocket",
        needs="deploy/hosts/bottlerocket: the SELinux type super_t, which may do what control_t, else theirs, may not",
        refused={
            "reload-driver": HostRefusal(
                "Bottlerocket loads the driver of its image at boot, and only then", "reboot the node"
            ),
            "remount-nfs": HostRefusal("Bottlerocket has no mount.nfs", "drain the node, and reboot it"),
        },
        notes={
            "clear-disk": "no images are removed: Bottlerocket has no crictl",
            "restart-kubelet": "its healthz is not asked: Bottlerocket has no curl",
            "reset-gpu": "finds nvidia-smi in /usr/libexec/nvidia/tesla/bin",
            DETECTORS: "those that list Pods as the kubelet cannot tell: its kubeconfig has no certificate",
        },
    ),
    HostKind.TALOS: HostRow(
        "Talos Linux",
        needs="deploy/hosts/talos: ladders without what is refused",
        refused={
            "restart-service": _SERVICES,
            "restart-kubelet": _SERVICES,
            "restart-runtime": _SERVICES,
            "reload-driver": _IMAGE,
            "kill-orphaned-processes": HostRefusal(
                "Talos has no ls and no crictl, so nobody can say which Pods live", "reboot the node"
            ),
            "remount-nfs": HostRefusal(
                "Talos has no mount.nfs outside of its kubelet", "drain the node, and reboot it"
            ),
            "clear-disk": HostRefusal(
                "Talos has neither df nor a journal", "lower imageGCHighThresholdPercent of the kubelet"
            ),
        },
        notes={
            "reboot": "by the kernel (sysrq: sync, read-only, reboot), after the drain: there is no systemd to ask",
            "reboot-by-watchdog": "by the kernel, as reboot",
            DETECTORS: "libraries of the driver are found in /usr/local/glibc",
        },
    ),
}
# How a node shows what it is, in status.nodeInfo: the field, and what is found in it.
SIGNS: tuple[tuple[HostKind, str, re.Pattern[str]], ...] = (
    (HostKind.TALOS, "os", re.compile(r"^Talos\b")),
    (HostKind.BOTTLEROCKET, "os", re.compile(r"^Bottlerocket\b")),
    (HostKind.FLATCAR, "os", re.compile(r"^Flatcar\b")),
    (HostKind.OPENSHIFT, "os", re.compile(r"^Red Hat Enterprise Linux CoreOS\b")),
    (HostKind.GKE, "os", re.compile(r"^Container-Optimized OS\b")),
    (HostKind.GKE, "kubelet", re.compile(r"-gke\.")),  # also with Ubuntu
    (HostKind.CRI_O, "runtime", re.compile(r"^cri-o://")),
    (HostKind.RKE2, "kubelet", re.compile(r"\+rke2r")),
    (HostKind.K3S, "kubelet", re.compile(r"\+k3s")),
)


def kinds(os_image: str, runtime: str, kubelet: str) -> tuple[HostKind, ...]:
    """What a node is, by osImage, containerRuntimeVersion and kubeletVersion; () where these say nothing special.

    >>> kinds("Talos (v1.11.2)", "containerd://2.1.4", "v1.34.1")
    (<HostKind.TALOS: 'talos'>,)
    """
    fields = {"os": os_image, "runtime": runtime, "kubelet": kubelet}
    return tuple(dict.fromkeys(kind for kind, field, sign in SIGNS if sign.search(fields[field])))


def refusals(kind: HostKind, operations: Mapping[str, str]) -> Iterator[tuple[str, HostRefusal]]:
    """What is refused on a host of `operations`, which are names by place: each place, and the reason."""
    refused = HOSTS[kind].refused
    yield from ((place, refused[name]) for place, name in operations.items() if name in refused)
