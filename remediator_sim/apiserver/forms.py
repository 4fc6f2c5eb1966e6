"""The forms in which a client may ask for objects: plain JSON, a Table, metadata alone."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

import msgspec

from remediator_sim.apiserver import columns, status
from remediator_sim.apiserver.resources import Resource
from remediator_sim.apiserver.status import Failure, Obj
from remediator_sim.apiserver.store import Entry

PLAIN = "json"  # the name of the form in which objects are stored
_encode = msgspec.json.encode


class Form(NamedTuple):
    """How objects of one kind are written: a name that tells forms apart, one object, and a list of them."""

    name: str
    one: Callable[[Entry], bytes]
    many: Callable[[Sequence[Entry], Obj], bytes]


def choose(accept: str, resource: Resource, include: str, now: Callable[[], datetime]) -> Form:
    """The first form of an Accept header that is offered here. Raises 406 where none is."""
    if accept == "application/json":
        return _as_stored(resource)
    for item in (accept or "*/*").split(","):
        media, *parameters = (part.strip() for part in item.split(";"))
        wanted = dict(part.partition("=")[::2] for part in parameters)
        if media not in ("application/json", "*/*", "application/*"):
            continue
        kind = wanted.get("as", "")
        if kind == "Table":
            return _table(resource, include, now)
        if kind.startswith("PartialObjectMetadata"):
            return METADATA_ALONE
        if not kind:
            return _as_stored(resource)
    message = "only the following media types are accepted: application/json"
    raise Failure(406, "NotAcceptable", message)


def _as_stored(resource: Resource) -> Form:
    return Form(PLAIN, partial(_plain, resource), partial(_list, resource))


def _list(resource: Resource, entries: Sequence[Entry], metadata: Obj) -> bytes:
    head = _encode({"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata})
    return _with_items(head, partial(_item, resource), entries)


def _item(resource: Resource, entry: Entry) -> bytes:
    """An object inside a list: those of built-in kinds do not repeat their type there."""
    if resource.custom:
        return _plain(resource, entry)
    if resource.stored_as:
        return _encode(
            {key: value for key, value in resource.view(entry.obj).items() if key not in ("apiVersion", "kind")}
        )
    return b"{" + entry.json[len(_encode({"apiVersion": resource.api_version, "kind": resource.kind})) :]


def _plain(resource: Resource, entry: Entry) -> bytes:
    return _encode(resource.view(entry.obj)) if resource.stored_as else entry.json


def partial_of(obj: Obj) -> Obj:
    """An object's metadata alone."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


Render = Callable[[Entry], bytes]


def _with_items(head: bytes, render: Render, entries: Sequence[Entry]) -> bytes:
    return head[:-1] + b',"items":[' + b",".join(map(render, entries)) + b"]}"


def _one_head(entry: Entry) -> bytes:
    return _encode(partial_of(entry.obj))


def _list_of_heads(entries: Sequence[Entry], metadata: Obj) -> bytes:
    head = _encode({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
    return _with_items(head, _one_head, entries)


METADATA_ALONE = Form("metadata", _one_head, _list_of_heads)


def _table(resource: Resource, include: str, now: Callable[[], datetime]) -> Form:
    shown = columns.of(resource)
    definitions = [column.definition() for column in shown]

    def row(entry: Entry, at: datetime) -> Obj:
        obj = resource.view(entry.obj)
        cells = {"cells": [column.cell(obj, at) for column in shown]}
        kept = {"None": {}, "Object": {"object": obj}}.get(include, {"object": partial_of(obj)})
        return {**cells, **kept}

    def many(entries: Sequence[Entry], metadata: Obj) -> bytes:
        at = now()
        rows = [row(entry, at) for entry in entries]
        table = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
        return _encode({**table, "columnDefinitions": definitions, "rows": rows})

    def one(entry: Entry) -> bytes:
        meta = entry.obj["metadata"]
        # A bookmark has no name, and so no row.
        return many([entry] if meta.get("name") else [], {"resourceVersion": meta.get("resourceVersion", "")})

    return Form(f"table/{include}", one, many)


def encode(obj: Obj | status.Failure) -> bytes:
    """A single object or refusal as JSON."""
    return _encode(obj.body() if isinstance(obj, Failure) else obj)
