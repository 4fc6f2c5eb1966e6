"""Whether a value has the types and fields of its schema. Parts that an update did not change are not checked again."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from remediator.kube.manifests.schema.limits import exceeded
from remediator.kube.manifests.schema.node import ABSENT, Node
from remediator.kube.manifests.schema.values import below


class Fault(NamedTuple):
    """One keyword that a value does not keep to, and what the keyword asks for.

    `word` is a keyword of OpenAPI, or `unique`: an item (`value` is its identity) that its list has already.
    `limit` is a tuple for `type` and `enum`, a compiled pattern for `pattern`, None where nothing is to be said.
    """

    path: str
    word: str
    value: Any
    limit: Any = None


def faults(value: Any, node: Node, old: Any = ABSENT, path: str = "") -> Iterator[Fault]:
    """Everything wrong with the shape of `value`; `old` is what it replaces. Rules are not asked."""
    if (old is not ABSENT and old == value) or (value is None and node.nullable):
        return
    if not node.takes(value):
        yield Fault(path, "type", value, node.types)
        return
    if node.enum and value not in node.enum:
        yield Fault(path, "enum", value, node.enum)
    for word, limit in exceeded(value, node.limits):
        yield Fault(path, word, value, limit)
    yield from _alternatives(value, node, path)
    if isinstance(value, dict):
        yield from _object(value, node, path, old)
    elif isinstance(value, list):
        yield from _list(value, node, path, old)


def _object(value: dict[str, Any], node: Node, path: str, old: Any) -> Iterator[Fault]:
    for key in node.required:
        if key not in value:
            yield Fault(below(path, key), "required", None)
    before = old if isinstance(old, dict) else {}
    for key, item in value.items():
        known, was = node.child(key), before.get(key, ABSENT)
        if known is not None and (was is ABSENT or was != item):
            yield from faults(item, known, was, below(path, key))


def _list(value: list[Any], node: Node, path: str, old: Any) -> Iterator[Fault]:
    seen: list[Any] = []
    for at, item in enumerate(value):
        identity = node.identity(item)
        if node.list_type in ("map", "set"):
            if identity in seen:
                yield Fault(below(path, at), "unique", identity)
            seen.append(identity)
        if node.items is not None:
            yield from faults(item, node.items, node.predecessor(item, old), below(path, at))


def _alternatives(value: Any, node: Node, path: str) -> Iterator[Fault]:
    for word, choices in node.alternatives.items():
        fitting = sum(not any(faults(value, choice)) for choice in choices)
        held = {"allOf": fitting == len(choices), "anyOf": fitting > 0, "oneOf": fitting == 1, "not": fitting == 0}
        if not held[word]:
            yield Fault(path, word, value)
