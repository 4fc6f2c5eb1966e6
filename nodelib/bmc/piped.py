"""A node and the entry of its BMC as kubectl prints them, for a look at the BMC from outside of its Pod."""

import base64
import json
from typing import Any, NamedTuple, TextIO

from nodelib.bmc.entry import Entry, entry_of, secret
from nodelib.contract.operation import Refused

HOW = (
    "pipe in what `kubectl -n remediator-operations get node/NODE secret/remediator-bmc-NODE "
    "configmap/remediator-bmc --ignore-not-found -o json` prints"
)


class Piped(NamedTuple):
    """The name of the node, the UUID that its firmware tells, "" for none, and the entry of its BMC."""

    node: str
    system_uuid: str
    entry: Entry


def read_piped(stream: TextIO) -> Piped:
    """Return what one List, or one object, says. Raises Refused where Node or Secret are not in it."""
    if stream.isatty():
        raise Refused(HOW)
    try:
        given = json.load(stream)
        objects = {each["kind"]: each for each in given.get("items") or [given]}
        node = objects["Node"]
        name = str(node["metadata"]["name"])
        keys = {key: base64.b64decode(value).decode().strip() for key, value in _data(objects.get("Secret"))}
        shared = {key: value.strip() for key, value in _data(objects.get("ConfigMap"))}
        uuid = str((node["status"].get("nodeInfo") or {}).get("systemUUID") or "")
    except (ValueError, KeyError, TypeError, AttributeError):  # of what it holds nothing is repeated
        raise Refused(f"standard input holds no Node that can be read: {HOW}") from None
    _require_own(objects.get("Secret"), name)
    return Piped(name, uuid, entry_of(shared, keys, name))


def _data(obj: dict[str, Any] | None) -> list[tuple[str, str]]:
    return list(((obj or {}).get("data") or {}).items())


def _require_own(given: dict[str, Any] | None, node: str) -> None:
    """Raise Refused for the Secret of another node."""
    name = (given or {"metadata": {"name": f"remediator-bmc-{node}"}})["metadata"]["name"]
    if name != f"remediator-bmc-{node}":
        raise Refused(f"Secret {name} is not {secret(node)}: {HOW}")
