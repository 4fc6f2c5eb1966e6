"""Short ways to speak to an embedded server in these tests."""

import json
from typing import Any

from remediator.kube.wire.transport import MERGE_PATCH, Reply, Transport

NODES = "/api/v1/nodes"


async def make_node(transport: Transport, name: str) -> Reply:
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    return await transport.request("POST", NODES, body=json.dumps(body).encode())


async def label(transport: Transport, name: str, value: str) -> Reply:
    body = json.dumps({"metadata": {"labels": {"value": value}}}).encode()
    return await transport.request("PATCH", f"{NODES}/{name}", body=body, content_type=MERGE_PATCH)


def events(chunk: bytes) -> list[dict[str, Any]]:
    """The events in a chunk of a watch."""
    return [json.loads(line) for line in chunk.splitlines()]


WATCH = [("watch", "1"), ("allowWatchBookmarks", "true")]
