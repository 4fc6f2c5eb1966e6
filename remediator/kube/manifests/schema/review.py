"""All violations of a new object, as plain sentences. (The messages of an API server have other words.)"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from remediator.kube.manifests.schema.content import fill, prune
from remediator.kube.manifests.schema.node import Node
from remediator.kube.manifests.schema.rules import broken
from remediator.kube.manifests.schema.shape import Fault, faults
from remediator.kube.manifests.schema.values import name_of, within


class Violation(NamedTuple):
    """One thing that is wrong: the path of the field, and what is wrong with it."""

    path: str
    message: str


def review(value: Any, node: Node) -> Iterator[Violation]:
    """Unknown fields, faults and broken rules of `value`, which is not changed.

    Unlike an API server, rules are asked even where something else is wrong. One that cannot be evaluated is told only
    where no fault lies below it that explains why.
    """
    whole = _copy(value)
    yield from (Violation(path, "unknown field") for path in prune(whole, node))
    fill(whole, node)
    wrong = list(faults(whole, node))
    yield from (Violation(fault.path, _message(fault)) for fault in wrong)
    for rule in broken(whole, node):
        if rule.answered or not any(within(fault.path, rule.place) for fault in wrong):
            yield Violation(rule.path, rule.message)


def _copy(value: Any) -> Any:
    """A value as JSON would carry it: every key a text, and nothing shared between two places."""
    if isinstance(value, dict):
        return {str(key): _copy(part) for key, part in value.items()}
    return [_copy(part) for part in value] if isinstance(value, list) else value


def _listed(limit: Any) -> str:
    return ", ".join(map(str, limit))


_WORDS: dict[str, str | Callable[[Fault], str]] = {
    "type": lambda fault: f"must be {' or '.join(fault.limit)}, not {name_of(fault.value)}",
    "enum": lambda fault: f"must be one of {_listed(fault.limit)}",
    "required": "is required",
    "unique": "stands here twice",
    "format": "must be a {}",
    "pattern": lambda fault: f"must match {fault.limit.pattern}",
    "maxLength": "must have at most {} characters",
    "minLength": "must have at least {} characters",
    "maxItems": "must have at most {} items",
    "minItems": "must have at least {} items",
    "maxProperties": "must have at most {} entries",
    "minProperties": "must have at least {} entries",
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


def _message(fault: Fault) -> str:
    words = _WORDS[fault.word]
    return words.format(fault.limit) if isinstance(words, str) else words(fault)
