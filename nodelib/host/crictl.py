"""What the node's own kubelet and container runtime know of Pods and images: no token, no API server."""

import json
import re
from typing import Any

from nodelib.contract.operation import Refused
from nodelib.host.cgroups import UID, bare
from nodelib.host.commands import CommandOutput, run

ASK_SECONDS = 60.0
KUBELET = "/var/lib/kubelet"
# Where hosts have crictl: RKE2, whose own knows its socket from a file; most of them; k3s, which is crictl, too; GKE.
CLIENTS: tuple[tuple[str, ...], ...] = (
    ("/var/lib/rancher/rke2/bin/crictl", "--config", "/var/lib/rancher/rke2/agent/etc/crictl.yaml"),
    ("crictl",),
    ("k3s", "crictl"),
    ("/home/kubernetes/bin/crictl",),
)


def crictl_of_node() -> tuple[str, ...]:
    """Return the first client of the runtime that this node has, with what it has to be told; () for none."""
    return next((client for client in CLIENTS if not is_absent(run((*client, "--version"), ASK_SECONDS))), ())


def crictl(*words: str, client: tuple[str, ...]) -> dict[str, Any] | None:
    """Return what the runtime answers; None where crictl is not installed. Raises Refused when it does not report."""
    if not client:
        return None
    output = run((*client, *words, "-o", "json"), ASK_SECONDS)
    if is_absent(output):
        return None
    try:
        answer = json.loads(output.text[max(0, output.text.find("{")) :])  # a warning may come before it
    except ValueError:
        answer = None
    if output.code != 0 or not isinstance(answer, dict):
        raise Refused(f"the container runtime does not answer ({' '.join(('crictl', *words))}): {output.last}")
    return answer


def is_absent(output: CommandOutput) -> bool:
    """Whether nsenter did not find the program on the node."""
    return bool(output.code) and "failed to execute" in output.text


def known_pods(root: str = KUBELET, own: str = "") -> set[str]:
    """Return the uids (32 hex digits) of all Pods that the kubelet still keeps a folder of, or the runtime runs.

    A kubelet makes the folder before anything of the Pod runs, static Pods under their hash, and keeps it until all of
    it has ended. Raises Refused when that is unknown, or when `own`, the uid of the Pod that asks, is not there.
    """
    output = run(("ls", "-1A", f"{root}/pods"), ASK_SECONDS)
    uids = {bare(name) for name in output.text.split() if re.fullmatch(UID, name, re.IGNORECASE)}
    if output.code != 0 or not uids:
        raise Refused(f"cannot determine which Pods live from {root}/pods ({output.last}): set PARAMETERS.kubeletRoot")
    if own and bare(own) not in uids:
        raise Refused(
            f"{root}/pods does not know this very Pod, so it is not the kubelet's: set PARAMETERS.kubeletRoot"
        )
    return uids | _running_pods()


def _running_pods() -> set[str]:
    client = crictl_of_node()
    sandboxes = (crictl("pods", client=client) or {}).get("items") or []
    ready = {pod["metadata"]["uid"] for pod in sandboxes if pod.get("state") == "SANDBOX_READY"}
    running = (crictl("ps", client=client) or {}).get("containers") or []
    return {
        bare(uid)
        for uid in ready | {(container.get("labels") or {}).get("io.kubernetes.pod.uid", "") for container in running}
    }


def kubelet_root(given: dict[str, Any]) -> str:
    """Return PARAMETERS.kubeletRoot, the kubelet's --root-dir. Raises Refused when it is no absolute path."""
    root = given.get("kubeletRoot", KUBELET)
    if not isinstance(root, str) or not re.fullmatch(r"(?:/[A-Za-z0-9._-]+)+", root):
        raise Refused(f'PARAMETERS.kubeletRoot is not an absolute path: write {{"kubeletRoot": "{KUBELET}"}}')
    return root
