"""Which other Node has the same UUID: boards of one delivery may have one UUID, and a Node may be left over."""

from typing import Any

from nodelib.bmc.identity import is_among, is_told
from nodelib.contract.operation import Failed
from nodelib.k8s.api import Api

NODES = "/api/v1/nodes"
PAGE = 50  # the Pod has 64 MiB, and a Node may have 30 KiB


def twin_of(api: Api, name: str, uuid: str) -> str:
    """Return the name of the first other Node that has this UUID, "" for none. Raises Unreachable, Failed."""
    more = ""
    while is_told(uuid):
        reply = api.get(NODES, limit=str(PAGE), **({"continue": more} if more else {}))
        if reply.status != 200:
            raise Failed(f"nodes cannot be listed, so nobody can tell whether one has the same UUID: {reply.message}")
        twins = (_name(node) for node in reply.body.get("items") or [] if is_among(_uuid(node), [uuid]))
        twin = next((each for each in twins if each != name), "")
        more = (reply.body.get("metadata") or {}).get("continue") or ""
        if twin or not more:
            return twin
    return ""


def _name(node: dict[str, Any]) -> str:
    return str(node["metadata"]["name"])


def _uuid(node: dict[str, Any]) -> str:
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get("systemUUID") or "")
