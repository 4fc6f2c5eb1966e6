"""Which Pods the API server knows on this node: one list over http.client, with the token that the kubelet mounts."""

import http.client
import json
import os
import ssl
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from nodelib.host.cgroups import bare

PAGE = 500
# The uid in a static Pod's cgroup is the hash of its manifest; its mirror on the API server has a uid of its own.
HASHES = ("kubernetes.io/config.hash", "kubernetes.io/config.mirror")


class CannotTell(Exception):
    """The API server was not asked or gave no usable answer; the message says why."""


def living(token_dir: Path, deadline: float) -> set[str]:
    """Return the uids (bare) of this node's Pods that should still run. Raises CannotTell.

    A Pod that is being deleted lives until its deletionTimestamp, which is when its grace ends, by the server's clock.
    """
    try:
        return _living(token_dir, os.environ["KUBERNETES_SERVICE_HOST"], os.environ["NODE_NAME"], deadline)
    except KeyError as error:
        raise CannotTell(f"no API server to ask ({error.args[0]} is not set)") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise CannotTell(f"the API server cannot be asked: {type(error).__name__}: {error}") from error


def _living(token_dir: Path, host: str, node: str, deadline: float) -> set[str]:
    port = int(os.environ.get("KUBERNETES_SERVICE_PORT") or 443)
    context = ssl.create_default_context(cafile=str(token_dir / "ca.crt"))
    headers = {"Authorization": f"Bearer {(token_dir / 'token').read_text().strip()}", "Accept": "application/json"}
    connection = http.client.HTTPSConnection(host, port, timeout=deadline, context=context)
    found: set[str] = set()
    query = {"fieldSelector": f"spec.nodeName={node}", "limit": str(PAGE)}
    try:
        while True:
            connection.request("GET", f"/api/v1/pods?{urlencode(query)}", headers=headers)
            page, now = _page(connection.getresponse())
            found |= uids(page["items"], now)
            more = (page.get("metadata") or {}).get("continue")
            if not more:
                return found
            query["continue"] = more
    finally:
        connection.close()


def _page(answer: http.client.HTTPResponse) -> tuple[dict[str, Any], datetime]:
    body = answer.read()
    if answer.status != 200:
        raise ValueError(f"HTTP {answer.status}")
    page = json.loads(body)
    if not isinstance(page, dict) or not isinstance(page.get("items"), list):
        raise ValueError("the answer is no list of Pods")
    return page, parsedate_to_datetime(answer.headers["Date"] or "")


def uids(pods: list[Any], now: datetime) -> set[str]:
    """Return the uids of those Pods that should still run at `now`. Raises ValueError when one makes no sense."""
    names: set[str] = set()
    for pod in pods:
        try:
            about = pod["metadata"]
            ends = about.get("deletionTimestamp")
            if ends is None or datetime.strptime(ends, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC) > now:
                notes = about.get("annotations") or {}
                names |= {bare(uid) for uid in (about["uid"] or None, *filter(None, map(notes.get, HASHES)))}
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"a Pod in the list makes no sense ({type(error).__name__})") from error
    return names
