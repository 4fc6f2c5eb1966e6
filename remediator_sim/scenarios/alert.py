"""Alertmanager, as far as the story needs it: one alert about one node, posted to the webhook as it posts them."""

import hashlib
import ssl
from datetime import datetime
from typing import Any

import aiohttp

ZERO = "0001-01-01T00:00:00Z"  # what Alertmanager writes for the end of an alert that fires


def payload(name: str, node: str, begun: datetime, ended: datetime | None) -> dict[str, Any]:
    """A webhook body of version 4 with one alert; resolved where `ended` says when."""
    labels = {"alertname": name, "cluster": "demo", "node": node, "severity": "critical"}
    status = "resolved" if ended else "firing"
    alert = {
        "status": status,
        "labels": labels,
        "annotations": {"summary": f"the kernel of {node} reports an Xid"},
        "startsAt": begun.isoformat(),
        "endsAt": ended.isoformat() if ended else ZERO,
        "generatorURL": "",
        "fingerprint": hashlib.sha256(f"{name}/{node}".encode()).hexdigest()[:16],
    }
    group = {"cluster": "demo", "node": node}
    return {
        "version": "4",
        "groupKey": f'{{}}:{{cluster="demo", node="{node}"}}',
        "truncatedAlerts": 0,
        "status": status,
        "receiver": "remediator",
        "groupLabels": group,
        "commonLabels": labels,
        "commonAnnotations": alert["annotations"],
        "externalURL": "",
        "alerts": [alert],
    }


async def post(url: str, token: str, tls: ssl.SSLContext, body: dict[str, Any]) -> int:
    """Send it once; the answer's status."""
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession() as session, session.post(url, json=body, headers=headers, ssl=tls) as answer:
        return answer.status
