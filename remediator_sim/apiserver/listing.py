"""Lists: at which version, page by page, chosen by selectors."""

import base64
import binascii
from typing import NamedTuple

import msgspec

from remediator_sim.apiserver import selectors, status
from remediator_sim.apiserver.cluster import Cluster
from remediator_sim.apiserver.options import Options, version_number
from remediator_sim.apiserver.resources import Resource
from remediator_sim.apiserver.status import Obj
from remediator_sim.apiserver.store import Entry, Key


class Page(NamedTuple):
    """One answer of a list: the objects, and the metadata of the list."""

    entries: list[Entry]
    metadata: Obj


def chosen(resource: Resource, options: Options, name: str = "") -> tuple[selectors.Test | None, list[selectors.Field]]:
    """The predicate of a request's selectors (None: everything), and its field terms."""
    allowed = selectors.FIELDS.get(resource.plural, frozenset()) if not resource.custom else resource.selectable
    terms = selectors.fields(options.fields, allowed)
    if name:
        terms = [*terms, selectors.Field("metadata.name", name, True)]
    return selectors.selector(options.labels, terms), terms


def page(cluster: Cluster, resource: Resource, namespace: str, options: Options) -> Page:
    """One page. Raises 400, 410 (version or token too old), 422 and 504 (version of the future)."""
    test, _ = chosen(resource, options)
    version, after = _start(cluster, options)
    collection = cluster.collection(resource)
    try:
        entries = collection.at(version, namespace)
    except status.Failure:
        if not options.continue_:
            raise
        message = (
            "The provided continue parameter is too old to display a consistent list result. You can start a new list "
            "without the continue parameter."
        )
        raise status.expired(message) from None
    entries = [entry for entry in entries if after is None or _key(entry) > after]
    if test is not None:
        entries = [entry for entry in entries if test(entry.obj)]
    # A list "at any version" is answered from memory, in one piece.
    limit = 0 if options.version == "0" and not options.continue_ else options.limit
    metadata: Obj = {"resourceVersion": str(version)}
    if limit and len(entries) > limit:
        metadata["continue"] = _token(version, _key(entries[limit - 1]))
        if test is None:
            metadata["remainingItemCount"] = len(entries) - limit
        entries = entries[:limit]
    return Page(entries, metadata)


def _key(entry: Entry) -> Key:
    meta = entry.obj["metadata"]
    return meta.get("namespace", ""), meta["name"]


def _start(cluster: Cluster, options: Options) -> tuple[int, Key | None]:
    """The version to list at, and the key after which the page begins."""
    current = cluster.store.rv
    if options.continue_:
        if options.version not in ("", "0"):
            raise status.bad_request("specifying resource version is not allowed when using continue")
        return _read_token(options.continue_)
    if options.version in ("", "0"):
        return current, None
    version = version_number(options.version)
    if version > current:
        raise status.too_large_version(version, current)
    return (version if options.version_match == "Exact" else current), None


def _token(version: int, last: Key) -> str:
    raw = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": version, "start": "/".join(last)})
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, Key]:
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        content = msgspec.json.decode(raw, type=dict[str, str | int])
        namespace, _, name = str(content["start"]).partition("/")
        return int(content["rv"]), (namespace, name)
    except (binascii.Error, msgspec.MsgspecError, KeyError, ValueError, UnicodeDecodeError) as error:
        raise status.bad_request(f"invalid continue token: continue key is not valid: {error}") from None
