"""All violations of a new object, as plain sentences. (The messages of an API server have other words.)"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from remediator.kube.manifests.schema.content import fill, strays
from remediator.kube.manifests.schema.node import SchemaNode
from remediator.kube.manifests.schema.rules import broken
from remediator.kube.manifests.schema.shape import faults
from remediator.kube.manifests.schema.values import below, within
from remediator.kube.manifests.schema.words import NO_VALUE, about, message, unknown_field


class Violation(NamedTuple):
    """One thing that is wrong: the path of the field, and what is wrong with it."""

    path: str
    message: str


def review(value: Any, node: SchemaNode) -> Iterator[Violation]:
    """Unknown fields, faults and broken rules of `value`, which is not changed.

    Unlike an API server, rules are asked even where something else is wrong. One that cannot be evaluated is told only
    where no fault lies below it that explains why.
    """
    whole = _copy(value)
    yield from (Violation(path, unknown_field(path, names)) for path, names in strays(whole, node))
    yield from (Violation(path, NO_VALUE) for path in _without_value(whole, node))
    fill(whole, node)
    wrong = list(faults(whole, node))
    yield from (Violation(fault.path, message(fault)) for fault in wrong)
    for rule in broken(whole, node):
        if rule.answered or not any(within(fault.path, rule.place) for fault in wrong):
            yield Violation(rule.path, about(rule.value, rule.message))


def _without_value(value: Any, node: SchemaNode, path: str = "") -> Iterator[str]:
    """Entries of maps that are null: an API server drops them, and a selector without them selects more."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, part in parts:
        known = node.child(step) if isinstance(step, str) else node.items
        if part is None and known is not None and known is node.additional and not known.nullable:
            yield below(path, step)
        elif known is not None:
            yield from _without_value(part, known, below(path, step))


def _copy(value: Any) -> Any:
    """A value as JSON would carry it: every key a text, and nothing shared between two places."""
    if isinstance(value, dict):
        return {str(key): _copy(part) for key, part in value.items()}
    return [_copy(part) for part in value] if isinstance(value, list) else value
