"""Whether a value has the types and fields of its schema. Parts that an update did not change are not checked again."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from remediator.kube.manifests.schema.limits import exceeded
from remediator.kube.manifests.schema.node import ABSENT, SchemaNode
from remediator.kube.manifests.schema.values import Steps, at


class Fault(NamedTuple):
    """One keyword that a value does not keep to, and what the keyword asks for.

    `word` is a keyword of OpenAPI, or `unique`: an item (`value` is its identity) that its list has already.
    `limit` is a tuple for `type` and `enum`, a compiled pattern for `pattern`, None where nothing is to be said.
    """

    path: str
    word: str
    value: Any
    limit: Any = None
    node: SchemaNode | None = None  # what stands there, by the schema


def faults(value: Any, node: SchemaNode, old: Any = ABSENT, path: str = "") -> Iterator[Fault]:
    """Everything wrong with the shape of `value`; `old` is what it replaces. Rules are not asked."""
    if old is not ABSENT and old == value:
        return
    for steps, word, odd, limit, place in _wrong(value, node, old):
        yield Fault(at(path, steps), word, odd, limit, place)


# The way to it, keyword, value, limit, node: as in a Fault. Hardly ever there is one, so no path is put together.
_Wrong = tuple[Steps, str, Any, Any, SchemaNode | None]


def _wrong(value: Any, node: SchemaNode, old: Any) -> list[_Wrong]:
    """What is wrong with a value that is not what was there before."""
    if value is None and node.nullable:
        return []
    if not node.takes(value):
        return [((), "type", value, node.types, node)]
    wrong: list[_Wrong] = []
    if node.enum and value not in node.enum:
        wrong.append(((), "enum", value, node.enum, node))
    if node.limits:
        wrong += [((), word, value, limit, node) for word, limit in exceeded(value, node.limits)]
    if node.alternatives:
        wrong += [((), word, value, None, node) for word in _unfit(value, node)]
    if isinstance(value, dict):
        wrong += _wrong_fields(value, node, old)
    elif isinstance(value, list):
        wrong += _wrong_items(value, node, old)
    return wrong


def _wrong_fields(value: dict[str, Any], node: SchemaNode, old: Any) -> list[_Wrong]:
    wrong: list[_Wrong] = [
        ((key,), "required", None, None, node.child(key)) for key in node.required if key not in value
    ]
    before = old if isinstance(old, dict) else {}
    for key, item in value.items():
        known, was = node.child(key), before.get(key, ABSENT)
        if known is not None and (was is ABSENT or was != item):
            wrong += _below(key, _wrong(item, known, was))
    return wrong


def _wrong_items(value: list[Any], node: SchemaNode, old: Any) -> list[_Wrong]:
    wrong: list[_Wrong] = []
    repeated = node.repeated(value)
    for number, item in enumerate(value):
        if number in repeated:
            wrong.append(((number,), "unique", repeated[number], None, node.items))
        if node.items is not None and (was := node.predecessor(item, old)) != item:
            wrong += _below(number, _wrong(item, node.items, was))
    return wrong


def _below(step: str | int, wrong: list[_Wrong]) -> list[_Wrong]:
    return [((step, *steps), *rest) for steps, *rest in wrong]


def _unfit(value: Any, node: SchemaNode) -> Iterator[str]:
    """The junctors whose schemas do not fit as they should."""
    for word, choices in node.alternatives.items():
        fitting = sum(not _wrong(value, choice, ABSENT) for choice in choices)
        held = {"allOf": fitting == len(choices), "anyOf": fitting > 0, "oneOf": fitting == 1, "not": fitting == 0}
        if not held[word]:
            yield word
