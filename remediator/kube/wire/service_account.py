"""The connection of a Pod: the address in its environment, and the service account that its kubelet mounts."""

import os
from pathlib import Path

from remediator.kube.wire.connection import Connection, TokenFile, tls

MOUNTED = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def connection() -> Connection:
    """As the service account of this Pod; TOKEN_DIR is where simulated kubelets mount it.

    Raises ValueError or OSError outside a cluster.
    """
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    if not host or not port:
        raise ValueError("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    address = f"[{host}]" if ":" in host else host
    mounted = Path(os.environ.get("TOKEN_DIR") or MOUNTED)
    return Connection(f"https://{address}:{port}", tls(mounted / "ca.crt"), TokenFile(mounted / "token"))
