"""A control plane whose API server is also known by the address of its Service, as Pods call it."""

from pathlib import Path
from urllib.parse import urlsplit

from tests.cluster.control_plane import HOST, ControlPlane

SERVICE = "10.96.0.1"  # the first address of the control plane's range: Kubernetes gives it to itself
PORT = 443


class NodePlane(ControlPlane):
    """etcd, API server, controllers and scheduler; nodes reach it at SERVICE, through a relay."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, kwok=False)

    @property
    def target(self) -> tuple[str, int]:
        """Host and port where it really listens."""
        parts = urlsplit(self.url)
        return parts.hostname or HOST, parts.port or PORT

    def kubelet_kubeconfig(self, name: str) -> Path:
        """What the kubelet of a node connects with: the node's own name and rights."""
        return self._keys.kubeconfig(f"https://{SERVICE}:{PORT}", f"system:node:{name}", ["system:nodes"])

    def _server_flags(self, port: int) -> list[str]:
        flags = super()._server_flags(port)
        self._keys.issue("server", addresses=[HOST, SERVICE])  # into the same two files
        return flags
