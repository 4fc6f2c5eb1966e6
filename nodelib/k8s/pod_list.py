"""Which Pods the API server knows on this node: one list over http.client, as the kubelet of the node."""

import argparse
import http.client
import json
import os
import re
import ssl
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from nodelib.host.cgroups import bare
from nodelib.k8s.kubelet_config import KubeletConfig, Unusable, find, read
from nodelib.net.answers import why as why_none

PAGE = 500
# The uid in a static Pod's cgroup is the hash of its manifest; its mirror on the API server has a uid of its own.
MIRROR = "kubernetes.io/config.mirror"
HASHES = ("kubernetes.io/config.hash", MIRROR)


class CannotTell(Exception):
    """The API server was not asked or gave no usable answer; the message says why."""


class Caller(NamedTuple):
    """Where the API server is, and as whom it is asked."""

    host: str
    port: int
    context: ssl.SSLContext
    headers: dict[str, str]


def living(options: argparse.Namespace, deadline: float) -> set[str]:
    """Return the uids (bare) of this node's Pods that should still run. Raises CannotTell.

    `options` are those of detector.add_credentials. The kubelet is who is asked as: it may list these Pods and no
    others. Where its credentials are no files, our own token is all there is; it needs a right that is not shipped.
    A Pod that is being deleted lives until its deletionTimestamp, which is when its grace ends, by the server's clock.
    """
    caller = why = None
    try:
        root = options.node_root or options.proc / "1/root"
        path = options.kubelet_kubeconfig or find(options.proc, root)
        caller = as_kubelet(read(root, path)) if path else None
    except (OSError, ValueError, Unusable) as error:
        why = f"as the kubelet: {type(error).__name__}: {error}; with our token: "
    try:
        return _living(caller or with_token(options.token_dir), os.environ["NODE_NAME"], deadline)
    except KeyError as error:
        raise CannotTell(f"{why or ''}no API server to ask ({error.args[0]} is not set)") from error
    except (OSError, http.client.HTTPException) as error:
        raise CannotTell(f"{why or ''}the API server cannot be asked: {why_none(error)}") from None
    except ValueError as error:
        raise CannotTell(f"{why or ''}the API server cannot be asked: ValueError: {error}") from None


def as_kubelet(config: KubeletConfig) -> Caller:
    """Return the kubelet as caller. Raises OSError for certificates that are none."""
    return Caller(config.host, config.port, config.context(), {})


def with_token(token_dir: Path) -> Caller:
    """Return our Pod's account as caller. Raises KeyError, OSError, ValueError."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ.get("KUBERNETES_SERVICE_PORT") or 443)
    context = ssl.create_default_context(cafile=str(token_dir / "ca.crt"))
    token = (token_dir / "token").read_text().strip()
    if not re.fullmatch("[!-~]+", token):  # http.client would quote it in its error
        raise ValueError(f"{token_dir}/token holds no token, or more than one word")
    return Caller(host, port, context, {"Authorization": f"Bearer {token}"})


def _living(caller: Caller, node: str, deadline: float) -> set[str]:
    headers = {**caller.headers, "Accept": "application/json"}
    connection = http.client.HTTPSConnection(caller.host, caller.port, timeout=deadline, context=caller.context)
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
    try:
        page, now = json.loads(body), parsedate_to_datetime(answer.headers["Date"] or "")
    except (ValueError, RecursionError):  # some of them quote what came
        raise ValueError("the answer is no JSON, or has no date") from None
    if not isinstance(page, dict) or not isinstance(page.get("items"), list):
        raise ValueError("the answer is no list of Pods")
    return page, now


def _is_mirror(about: dict[str, Any]) -> bool:
    """Only a kubelet makes a Pod that its Node owns; annotations are anybody's."""
    owners = about.get("ownerReferences") or []
    return MIRROR in (about.get("annotations") or {}) and any(owner.get("kind") == "Node" for owner in owners)


def uids(pods: list[Any], now: datetime) -> set[str]:
    """Return the uids of those Pods that should still run at `now`. Raises ValueError when one makes no sense."""
    names: set[str] = set()
    for pod in pods:
        try:
            about = pod["metadata"]
            ends = about.get("deletionTimestamp")
            if ends is None or datetime.strptime(ends, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC) > now:
                hashes = map((about.get("annotations") or {}).get, HASHES) if _is_mirror(about) else ()
                names |= {bare(uid) for uid in (about["uid"] or None, *filter(None, hashes))}
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # some of them quote what came
            raise ValueError(f"a Pod in the list makes no sense ({type(error).__name__})") from None
    return names
