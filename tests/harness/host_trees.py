"""What hosts have, as far as programs on nodes look at it: one tree of files for each, with links where it has some.

The lines of os-release are those of the systems. What has no content here is empty: only that it is there counts.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from remediator.core.hosts import HostKind

LINUX = (
    *("run/systemd/system/", "usr/bin/ls", "usr/bin/df", "usr/bin/umount", "usr/sbin/mount.nfs", "usr/bin/sh"),
    *("usr/sbin/modprobe", "usr/bin/systemctl", "var/lib/kubelet/pods/"),
)
UBUNTU = 'PRETTY_NAME="Ubuntu 24.04.3 LTS"\nNAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\nID_LIKE=debian\n'
CONTAINERD, CRIO = "run/containerd/containerd.sock", "run/crio/crio.sock"
RANCHER = "run/k3s/containerd/containerd.sock"


class HostTree(NamedTuple):
    """A host: its os-release, further `paths` (folders end with /), links, its runtime's socket, unit and NVML.

    `told`: osImage, containerRuntimeVersion and kubeletVersion of its Node. `kubeconfig`: the kubelet's.
    """

    release: str
    told: tuple[str, str, str]
    socket: str
    units: tuple[str, str]  # the service that is the runtime, and the one that is the kubelet; "" without systemd
    kubeconfig: str
    paths: tuple[str, ...] = LINUX
    links: Mapping[str, str] = {"bin": "usr/bin", "sbin": "usr/sbin"}
    nvml: str = "usr/lib/x86_64-linux-gnu"
    smi: str = "nvidia-smi"

    def build(self, root: Path) -> None:
        """Make it below `root`."""
        files = {"etc/os-release": self.release, self.socket: "", self.kubeconfig: "", f"{self.nvml}/{NVML}": ""}
        for path, target in self.links.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).symlink_to(target)
        for path in self.paths:
            if path.endswith("/"):
                (root / path).mkdir(parents=True, exist_ok=True)
        for path, text in {
            **dict.fromkeys((path for path in self.paths if not path.endswith("/")), ""),
            **files,
        }.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)


NVML = "libnvidia-ml.so.1"
KUBEADM, LIB_KUBELET = "etc/kubernetes/kubelet.conf", "var/lib/kubelet/kubeconfig"
COS = "home/kubernetes/bin/nvidia"
TESLA = "usr/libexec/nvidia/tesla/bin/nvidia-smi"
PLAIN = ("containerd", "kubelet")

TREES: Mapping[HostKind, HostTree] = {
    HostKind.LINUX: HostTree(
        UBUNTU, ("Ubuntu 24.04.3 LTS", "containerd://2.1.4", "v1.34.1"), CONTAINERD, PLAIN, KUBEADM
    ),
    HostKind.CRI_O: HostTree(
        UBUNTU, ("Ubuntu 24.04.3 LTS", "cri-o://1.34.0", "v1.34.1"), CRIO, ("crio", "kubelet"), KUBEADM
    ),
    HostKind.K3S: HostTree(
        UBUNTU,
        ("Ubuntu 24.04.3 LTS", "containerd://2.1.4-k3s1", "v1.34.1+k3s1"),
        RANCHER,
        ("k3s-agent", "k3s-agent"),
        "var/lib/rancher/k3s/agent/kubelet.kubeconfig",
    ),
    HostKind.RKE2: HostTree(
        UBUNTU,
        ("Ubuntu 24.04.3 LTS", "containerd://2.1.4-k3s2", "v1.34.1+rke2r1"),
        RANCHER,
        ("rke2-agent", "rke2-agent"),
        "var/lib/rancher/rke2/agent/kubelet.kubeconfig",
    ),
    HostKind.FLATCAR: HostTree(
        'NAME="Flatcar Container Linux by Kinvolk"\nID=flatcar\nID_LIKE=coreos\nVERSION=4230.2.1\n'
        'PRETTY_NAME="Flatcar Container Linux by Kinvolk 4230.2.1 (Oklo)"\n',
        ("Flatcar Container Linux by Kinvolk 4230.2.1 (Oklo)", "containerd://1.7.25", "v1.34.1"),
        CONTAINERD,
        PLAIN,
        KUBEADM,
        nvml="usr/lib64",
    ),
    HostKind.OPENSHIFT: HostTree(
        'NAME="Red Hat Enterprise Linux CoreOS"\nID="rhel"\nVARIANT_ID=coreos\nOPENSHIFT_VERSION="4.19"\n'
        'PRETTY_NAME="Red Hat Enterprise Linux CoreOS 9.6.20250925-0 (Plow)"\n',
        ("Red Hat Enterprise Linux CoreOS 9.6.20250925-0 (Plow)", "cri-o://1.32.9-2.rhaos4.19", "v1.32.9"),
        CRIO,
        ("crio", "kubelet"),
        LIB_KUBELET,
        nvml="run/nvidia/driver/usr/lib64",
    ),
    HostKind.GKE: HostTree(
        'NAME="Container-Optimized OS"\nID=cos\nPRETTY_NAME="Container-Optimized OS from Google"\nVERSION_ID=121\n',
        ("Container-Optimized OS from Google", "containerd://2.0.6", "v1.33.5-gke.1162000"),
        CONTAINERD,
        PLAIN,
        LIB_KUBELET,
        (*LINUX, f"{COS}/bin/nvidia-smi"),
        nvml=f"{COS}/lib64",
        smi=f"env LD_LIBRARY_PATH=/{COS}/lib64 /{COS}/bin/nvidia-smi",
    ),
    HostKind.BOTTLEROCKET: HostTree(
        'NAME=Bottlerocket\nID=bottlerocket\nPRETTY_NAME="Bottlerocket OS 1.49.0 (aws-k8s-1.34-nvidia)"\n'
        "VARIANT_ID=aws-k8s-1.34-nvidia\nVERSION_ID=1.49.0\n",
        ("Bottlerocket OS 1.49.0 (aws-k8s-1.34-nvidia)", "containerd://2.1.4+bottlerocket", "v1.34.1-eks-113cf36"),
        CONTAINERD,
        PLAIN,
        "etc/kubernetes/kubelet/kubeconfig",
        (
            "x86_64-bottlerocket-linux-gnu/sys-root/usr/",  # where its links lead
            *("run/systemd/system/", "usr/bin/ls", "usr/bin/df", "usr/bin/umount", "usr/bin/systemctl"),
            *("var/lib/kubelet/pods/", TESLA),
        ),
        {
            "usr": "x86_64-bottlerocket-linux-gnu/sys-root/usr",
            "bin": "usr/bin",
            "sbin": "usr/sbin",
        },
        nvml="usr/lib/nvidia/tesla",
        smi=f"env LD_LIBRARY_PATH=/usr/lib/nvidia/tesla /{TESLA}",
    ),
    HostKind.TALOS: HostTree(
        'NAME="Talos"\nID=talos\nVERSION_ID=v1.11.2\nPRETTY_NAME="Talos (v1.11.2)"\nVENDOR_NAME="Sidero Labs"\n',
        ("Talos (v1.11.2)", "containerd://2.1.4", "v1.34.1"),
        CONTAINERD,
        ("", ""),
        "etc/kubernetes/kubeconfig-kubelet",
        ("usr/bin/containerd", "sbin/init", "usr/local/bin/nvidia-smi", "var/lib/kubelet/pods/"),
        {},
        nvml="usr/local/glibc/usr/lib",
    ),
}
