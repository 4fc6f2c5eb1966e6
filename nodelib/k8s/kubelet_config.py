"""How the node's own kubelet reaches the API server, as the node's files say.

A kubelet may list the Pods of its own node and no others: whoever asks as it needs no right of its own.
"""

import base64
import os
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nodelib.host.cgroups import any_pod
from nodelib.host.root import within

# Where kubelets keep it that are no program of their own: kubeadm; EKS, GKE, AKS and OpenShift; RKE2; K3s; Talos;
# MicroK8s.
USUAL = (
    "/etc/kubernetes/kubelet.conf",
    "/var/lib/kubelet/kubeconfig",
    "/var/lib/rancher/rke2/agent/kubelet.kubeconfig",
    "/var/lib/rancher/k3s/agent/kubelet.kubeconfig",
    "/etc/kubernetes/kubeconfig-kubelet",
    "/var/snap/microk8s/current/credentials/kubelet.config",
)
# A file of one cluster and one user, in YAML or JSON: each of these stands there once at most.
WORD = re.compile(
    r"""(?<![\w-])["']?(server|(?:certificate-authority|client-certificate|client-key)(?:-data)?)["']?\s*:"""
    r"""\s*["']?([^"'\s,}]+)"""
)


class Unusable(Exception):
    """The file is not such that this program could speak as the kubelet; the message says why."""


class KubeletConfig(NamedTuple):
    """Where the API server is, and the PEM texts of its authority and of the kubelet's certificate with its key."""

    host: str
    port: int
    authority: str
    certificate: str

    def context(self) -> ssl.SSLContext:
        """Return how to speak TLS as the kubelet. The key touches no file system: ssl reads it from memory."""
        context = ssl.create_default_context(cadata=self.authority)
        handle = os.memfd_create("kubelet")
        with os.fdopen(handle, "w") as memory:
            memory.write(self.certificate)
            memory.flush()
            context.load_cert_chain(f"/proc/self/fd/{handle}")
        return context


def find(proc: Path, root: Path) -> str:
    """Return the path of the kubelet's kubeconfig on the node, whose files are in `root`, "" where there is none."""
    started_with = next((path for folder in _kubelets(proc) if (path := _started_with(folder))), "")
    if started_with:
        return started_with
    return next((path for path in USUAL if within(root, path).is_file()), "")


def read(root: Path, path: str) -> KubeletConfig:
    """Read the kubeconfig at `path` of the node, whose files are in `root`. Raises Unusable, OSError, ValueError."""
    pairs = WORD.findall(within(root, path).read_text())
    words = dict(pairs)
    if len(words) != len(pairs):
        raise Unusable(f"{path} has more than one cluster or user")
    server = re.fullmatch(r"https://\[?([^/\]]+?)\]?(?::([0-9]+))?/?", words.get("server", ""))
    if not server:
        raise Unusable(f"{path} names no server")
    parts = {word: _pem(root, words, word) for word in ("certificate-authority", "client-certificate", "client-key")}
    missing = [word for word, text in parts.items() if not text]
    if missing:
        raise Unusable(f"{path} has no {missing[0]}")
    certificate = "\n".join(dict.fromkeys((parts["client-certificate"], parts["client-key"])))
    return KubeletConfig(server[1], int(server[2] or 443), parts["certificate-authority"], certificate)


def _pem(root: Path, words: dict[str, str], word: str) -> str:
    if word in words:
        return within(root, words[word]).read_text()
    return base64.b64decode(words.get(f"{word}-data", "")).decode()


def _kubelets(proc: Path) -> Iterator[Path]:
    """Yield the folders in /proc of this node's kubelet: root's, of no Pod, and with the files of the node."""
    for folder in proc.iterdir():
        try:
            if folder.name.isdecimal() and (folder / "comm").read_text() == "kubelet\n" and _is_nodes_own(proc, folder):
                yield folder
        except OSError:
            continue


def _is_nodes_own(proc: Path, folder: Path) -> bool:
    return (
        folder.stat().st_uid == 0
        and not any_pod((folder / "cgroup").read_text())
        and (folder / "root").samefile(proc / "1/root")
    )


def _started_with(folder: Path) -> str:
    words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, sign, value = word.partition("=")
        if name.lstrip("-") == "kubeconfig" and word.startswith("-"):
            path = value if sign else following
            return path if path.startswith("/") else ""
    return ""
