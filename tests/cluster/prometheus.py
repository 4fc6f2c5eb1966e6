"""A real Prometheus on loopback that scrapes one exporter, whose metrics a test sets, and may send alerts."""

import json
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests

from remediator_sim.ports import free_port
from tests.cluster.processes import Child
from tests.kubelet.programs import Missing, fetched

CONFIG = """
global: {scrape_interval: EVERY, scrape_timeout: EVERY, evaluation_interval: 1s}
scrape_configs:
- job_name: exporter
  honor_labels: true
  static_configs: [{targets: [EXPORTER]}, {targets: TARGETS, labels: LABELS}]
"""
ALERTING = """
rule_files: [rules.yml]
alerting: {alertmanagers: [{static_configs: [{targets: ["HOST"]}]}]}
"""


def program() -> Path:
    """This machine's, else Debian's, unpacked into the cache. Raises Missing."""
    found = shutil.which("prometheus")
    return Path(found) if found else fetched("prometheus", ["prometheus"]) / "usr/bin/prometheus"


class Exporter:
    """What a node's exporter says, until it is gone."""

    def __init__(self) -> None:
        self.lines: dict[str, str] = {}
        self.gone = False
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = "".join(f"{name} {said}\n" for name, said in exporter.lines.items()).encode()
                self.send_response(503 if exporter.gone else 200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"

    def write(self, name: str, value: float, at: float | None = None, **labels: str) -> None:
        """A sample of one series, as of now unless said otherwise."""
        shown = ",".join(f'{key}="{text}"' for key, text in labels.items())
        self.lines[f"{name}{{{shown}}}"] = f"{value:g}" + (f" {round(at * 1000)}" if at else "")


class RealPrometheus:
    """A server and its exporter."""

    def __init__(self, url: str, exporter: Exporter) -> None:
        self.url, self.exporter, self.write = url, exporter, exporter.write

    def stop_target(self) -> None:
        """The exporter answers no more."""
        self.exporter.gone = True


@contextmanager
def real_prometheus(
    folder: Path, rules: str = "", alertmanager: str = "", targets: Sequence[str] = (), every: str = "1s", **labels: str
) -> Iterator[RealPrometheus]:
    """A server that scrapes as `every` says, until the block is left. Raises Missing where there is none.

    `rules`: a file of alert rules, which it evaluates every second; `alertmanager`: the address to which it sends them;
    `targets`: what it scrapes besides, as host:port, each time with `every` to answer; `labels`: what
    all that these say has besides, as of a monitor.
    """
    exporter, port = Exporter(), free_port()
    thread = threading.Thread(target=exporter.server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    filled = {"EXPORTER": exporter.address, "TARGETS": [*targets], "LABELS": labels}
    alerting = ALERTING.replace("HOST", urlsplit(alertmanager).netloc) if rules else ""
    (folder / "rules.yml").write_text(rules)
    config = CONFIG.replace("EVERY", every)
    for word, value in filled.items():
        config = config.replace(word, json.dumps(value))
    (folder / "prometheus.yml").write_text(config + alerting)
    command = [program(), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    options = [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn", "--storage.tsdb.retention.time=1h"]
    server = Child([*command, *options], folder / "prometheus.log")
    url = f"http://127.0.0.1:{port}"
    try:
        server.wait_until(lambda: _scrapes(url), 60)
        yield RealPrometheus(url, exporter)
    finally:
        server.stop()
        exporter.server.shutdown()
        exporter.server.server_close()
        thread.join()


def _scrapes(url: str) -> bool:
    """Whether the exporter was scraped: the first time is seconds after the start."""
    with suppress(requests.RequestException):
        found = requests.get(f"{url}/api/v1/query", params={"query": "up == 1"}, timeout=1).json()
        return bool(found.get("data", {}).get("result"))
    return False


__all__ = ["Missing", "RealPrometheus", "real_prometheus"]
