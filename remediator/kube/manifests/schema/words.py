"""What is wrong with a value, and what to write instead, as a sentence. (The messages of an API server differ.)"""

import json
from collections.abc import Callable, Collection
from difflib import get_close_matches
from typing import Any

from remediator.kube.manifests.schema.node import SchemaNode
from remediator.kube.manifests.schema.rules import broken
from remediator.kube.manifests.schema.shape import Fault, faults
from remediator.kube.manifests.schema.values import name_of

LONGEST = 60  # characters of a value that are shown
NO_VALUE = 'has no value; write one ("" for an empty one), or remove it'
_NAMES = {
    "object": "an object (a line with name: value for each field)",
    "array": "a list (a line with - for each item)",
    "string": "text",
    "boolean": "true or false",
    "integer": "a whole number of at most 64 bits",
    "number": "a number",
}


def about(value: Any, message: str) -> str:
    """The message with the value before it, where that is short enough to be one word of a sentence."""
    if not message.startswith("must") or isinstance(value, (dict, list)) or value is None:
        return message
    text = json.dumps(value, ensure_ascii=False, default=str)
    return f"{text if len(text) <= LONGEST else text[:LONGEST] + '…'} {message}"


def unknown_field(path: str, names: Collection[str]) -> str:
    """That a schema has no such field, and which one may be meant: `names` are those that stand beside it."""
    field = path.rpartition(".")[2]
    lower = {name.lower(): name for name in sorted(names)}
    near = get_close_matches(field.lower(), lower, n=1, cutoff=0.65)
    if near:
        return f"unknown field; did you mean {lower[near[0]]}?"
    return f"unknown field; write one of {', '.join(sorted(names))}" if names else "unknown field; remove it"


def message(fault: Fault) -> str:
    """What is wrong there, and what may stand there."""
    words = _WORDS[fault.word]
    return about(fault.value, words.format(fault.limit) if isinstance(words, str) else words(fault))


def _listed(limit: Any) -> str:
    return ", ".join(map(str, limit))


def _type(fault: Fault) -> str:
    node = fault.node or SchemaNode()
    if node.enum:
        return f"must be one of {_listed(node.enum)}, as text{_booleans(fault.value)}"
    if node.type == "string" and not isinstance(fault.value, (dict, list)) and _fits(json.dumps(fault.value), node):
        return "must be text; put it in quotes"
    says = next((rule.message for rule in node.rules if rule.message.startswith("must be")), "")
    return says or f"must be {' or '.join(_NAMES[name] for name in fault.limit)}{_instead(fault)}"


def _fits(text: str, node: SchemaNode) -> bool:
    return not any(faults(text, node)) and not any(broken(text, node))


def _instead(fault: Fault) -> str:
    return f", not {name_of(fault.value)}" if isinstance(fault.value, (dict, list, type(None))) else ""


def _booleans(value: Any) -> str:
    """YAML reads Yes, No, On and Off as booleans, too."""
    return ": put it in quotes, for YAML reads yes, no, on and off as true or false" if isinstance(value, bool) else ""


def _required(fault: Fault) -> str:
    node = fault.node
    if node is None:
        return "is required; add it"
    if node.enum:
        return f"is required; write one of {_listed(node.enum)}"
    about_it = node.raw.get("description", "")
    return f"is required: {about_it}" if about_it else "is required; add it"


_WORDS: dict[str, str | Callable[[Fault], str]] = {
    "type": _type,
    "enum": lambda fault: f"must be one of {_listed(fault.limit)}",
    "required": _required,
    "unique": "stands here twice; remove one",
    "format": "must be a {}, such as 2026-01-02T03:04:05Z",
    "pattern": lambda fault: f"must match {fault.limit.pattern}",
    "maxLength": "must have at most {} characters; shorten it",
    "minLength": "must have at least {} characters; write it, or remove the field",
    "maxItems": "must have at most {} items; remove some",
    "minItems": "must have at least {} items; add one",
    "maxProperties": "must have at most {} entries; remove some",
    "minProperties": "must have at least {} entries; add one",
    "maximum": "must be at most {}",
    "minimum": "must be at least {}",
    "exclusiveMaximum": "must be less than {}",
    "exclusiveMinimum": "must be more than {}",
    "multipleOf": "must be a multiple of {}",
    "allOf": "must fit all the schemas of allOf",
    "anyOf": "must fit a schema of anyOf",
    "oneOf": "must fit exactly one schema of oneOf",
    "not": "must not fit the schema of not",
}
