"""What a benchmark turns on besides deploy/: policies that wait, confirm and name an alert, and who answers them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import yaml

from remediator.kube import api
from tests.cluster.control_plane import HOST

FILE = Path(__file__).with_name("features.yaml")
ALERTS = "/api/v2/alerts"
NOTHING = {"status": "success", "data": {"resultType": "vector", "result": []}}


def policies() -> list[dict[str, Any]]:
    """The policies, as they are written."""
    return list(yaml.safe_load_all(FILE.read_text()))


def racks(label: str) -> dict[str, Any]:
    """One budget for all GPU nodes, by rack."""
    spec = {"selector": {"matchLabels": {"nvidia.com/gpu.present": "true"}}, "groupBy": label, "maxUnavailable": 1}
    return {"apiVersion": api.API_VERSION, "kind": api.BUDGET.name, "metadata": {"name": "racks"}, "spec": spec}


class _Quiet(BaseHTTPRequestHandler):
    """An Alertmanager in which nothing fires, and a Prometheus without series."""

    def do_GET(self) -> None:
        body = json.dumps([] if self.path.startswith(ALERTS) else NOTHING).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nobody reads it."""


@contextmanager
def answered() -> Iterator[str]:
    """The URL of both while it is open; a thread answers, which is asked every 30 seconds."""
    with ThreadingHTTPServer((HOST, 0), _Quiet) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{HOST}:{server.server_port}"
        finally:
            server.shutdown()
