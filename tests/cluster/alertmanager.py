"""A real Alertmanager on loopback that sends to one webhook, and to which a test posts as Prometheus does."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import requests

from deploy.images.programs import binary
from remediator_sim.ports import free_port
from tests.cluster.processes import Child

CONFIG: dict[str, Any] = {
    "route": {
        "receiver": "remediator",
        "group_by": ["cluster", "node"],
        "group_wait": "1s",
        "group_interval": "1s",
        "repeat_interval": "4h",
    },
}


class RealAlertmanager:
    """A server, which can be killed and started again with nothing in its memory."""

    def __init__(self, folder: Path, webhook: str = "") -> None:
        """`webhook`: where it posts; "" for nowhere. Raises NotBuilt."""
        self._folder, self._port, self._webhook = folder, free_port(), webhook
        self.url = f"http://127.0.0.1:{self._port}"
        self._configure()
        self.start()

    def reload(self, most: int = 0, **config: Any) -> None:
        """Configure it anew while it runs. `most`: how many alerts it puts into one post; 0 for all of them."""
        self._configure(most, **config)
        requests.post(f"{self.url}/-/reload", timeout=5).raise_for_status()

    def _configure(self, most: int = 0, **config: Any) -> None:
        receiver: dict[str, Any] = {"name": "remediator"}
        if self._webhook:
            receiver["webhook_configs"] = [{"url": self._webhook, "send_resolved": True, "max_alerts": most}]
        written = CONFIG | {"receivers": [receiver, {"name": "other"}]} | config
        (self._folder / "alertmanager.yml").write_text(json.dumps(written))

    def start(self) -> None:
        """Start it, and wait until it answers."""
        storage = self._folder / "data"
        shutil.rmtree(storage, ignore_errors=True)
        options = [f"--web.listen-address=127.0.0.1:{self._port}", "--cluster.listen-address=", "--log.level=warn"]
        files = [f"--config.file={self._folder}/alertmanager.yml", f"--storage.path={storage}"]
        self._child = Child([binary("alertmanager"), *files, *options], self._folder / "alertmanager.log")
        self._child.wait_until(self._answers, 60)

    def stop(self) -> None:
        """End it."""
        self._child.stop()

    def _answers(self) -> bool:
        with suppress(requests.RequestException):
            return requests.get(f"{self.url}/api/v2/status", timeout=1).ok
        return False

    def post(self, *alerts: dict[str, str], seconds: float = 300.0) -> None:
        """These fire, and for so long unless they are posted again; 0 resolves them."""
        now = datetime.now(UTC)
        ends = (now + timedelta(seconds=seconds)).isoformat()
        starts = (now - timedelta(minutes=5)).isoformat()
        body = [{"labels": labels, "annotations": {}, "startsAt": starts, "endsAt": ends} for labels in alerts]
        requests.post(f"{self.url}/api/v2/alerts", json=body, timeout=5).raise_for_status()

    def silence(self, alert: str) -> None:
        """Silence all alerts of a name for an hour."""
        now = datetime.now(UTC)
        matcher = {"name": "alertname", "value": alert, "isRegex": False, "isEqual": True}
        body = {
            "matchers": [matcher],
            "startsAt": now.isoformat(),
            "endsAt": (now + timedelta(hours=1)).isoformat(),
            "createdBy": "ann",
            "comment": "known",
        }
        requests.post(f"{self.url}/api/v2/silences", json=body, timeout=5).raise_for_status()


@contextmanager
def real_alertmanager(folder: Path, webhook: str = "") -> Iterator[RealAlertmanager]:
    """A server until the block is left. Raises NotBuilt where there is none."""
    server = RealAlertmanager(folder, webhook)
    try:
        yield server
    finally:
        server.stop()
