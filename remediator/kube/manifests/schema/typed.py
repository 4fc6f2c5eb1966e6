"""Values as CEL rules see them: typed by their schema, with field names escaped as CEL needs them."""

import re
from collections.abc import Callable
from typing import Any

import celpy
from celpy import celtypes

from remediator.kube.manifests.schema.node import SchemaNode
from remediator.kube.manifests.schema.values import name_of

# Words of the language; a field of that name is written `__word__` in a rule.
_WORDS = "true false null in as break const continue else for function if import let loop package namespace return"
_RESERVED = frozenset([*_WORDS.split(), "var", "void", "while"])


def _escape(name: str) -> str:
    """The name of a field as a rule writes it."""
    if name in _RESERVED:
        return f"__{name}__"
    return (
        name.replace("__", "__underscores__").replace(".", "__dot__").replace("-", "__dash__").replace("/", "__slash__")
    )


def _timestamp(value: Any) -> Any:
    """celpy parses more than times, and fails over a length such as P1D as over no text at all."""
    try:
        return celtypes.TimestampType(value)
    except AttributeError:
        raise ValueError(f"{value!r} is no time, such as 2026-01-31T08:00:00Z") from None


_SCALARS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("string", "date-time"): _timestamp,
    ("string", "duration"): celtypes.DurationType,
    ("number", ""): celtypes.DoubleType,
    ("number", "double"): celtypes.DoubleType,
}


def typed(value: Any, node: SchemaNode | None) -> Any:
    """A value as rules see it. Raises TypeError or ValueError where it is not what its schema says.

    celpy would walk a long text in the place of a list, and take memory without end.
    """
    if node is not None and value is not None and not node.takes(value):
        raise TypeError(f"expected {' or '.join(node.types)}, not {name_of(value)}")
    if isinstance(value, dict):
        named = node.properties if node else {}
        return celtypes.MapType(
            {
                celtypes.StringType(_escape(key) if key in named else key): typed(
                    item, node.child(key) if node else None
                )
                for key, item in value.items()
            }
        )
    if isinstance(value, list):
        return celtypes.ListType([typed(item, node.items if node else None) for item in value])
    convert = _SCALARS.get((node.type, node.format)) if node and value is not None else None
    return convert(value) if convert else celpy.json_to_cel(value)


_PATH = re.compile(r"\b(?:self|oldSelf)((?:\.\w+\b(?!\s*\())+)")
_TEXTS = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")


def undefined(text: str, node: SchemaNode) -> str | None:
    """The first field that a rule speaks of and its schema does not have; celpy itself only fails when it runs."""
    for match in _PATH.finditer(_TEXTS.sub("''", text)):
        at: SchemaNode | None = node
        for name in match[1].lstrip(".").split("."):
            if at is None or not at.properties or at.preserve or at.additional:
                break
            known = {_escape(key): part for key, part in at.properties.items()}
            if name not in known and not (at.embedded and name in ("apiVersion", "kind", "metadata")):
                return name
            at = known.get(name)
    return None
