"""The simple limits of a schema: lengths, sizes, bounds, formats and patterns."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from typing import Any

from remediator.kube.manifests.schema.values import TYPES


def _is_date(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _at_most(value: Any, limit: Any) -> bool:
    return len(value) <= int(limit)


def _at_least(value: Any, limit: Any) -> bool:
    return len(value) >= int(limit)


_END = re.compile(r"(\\.|\[\^?\]?[^\]]*\])|\$")


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern as an API server (Go) reads it: `$` is the end and not before a last line feed. Raises re.error."""
    return re.compile(_END.sub(lambda match: match[1] or r"\Z", pattern), re.ASCII)


# keyword → the type of value that it speaks of, and whether such a value keeps to it
_LIMITS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "format": ("string", lambda value, limit: limit != "date-time" or _is_date(value)),
    "maxLength": ("string", _at_most),
    "minLength": ("string", _at_least),
    "pattern": ("string", lambda value, limit: compiled(limit.pattern).search(value)),
    "maxItems": ("array", _at_most),
    "minItems": ("array", _at_least),
    "maxProperties": ("object", _at_most),
    "minProperties": ("object", _at_least),
    "maximum": ("number", lambda value, limit: value <= limit),
    "exclusiveMaximum": ("number", lambda value, limit: value < limit),
    "minimum": ("number", lambda value, limit: value >= limit),
    "exclusiveMinimum": ("number", lambda value, limit: value > limit),
    "multipleOf": ("number", lambda value, limit: value % limit == 0),
}
_EXCLUSIVE = {"maximum": "exclusiveMaximum", "minimum": "exclusiveMinimum"}


def limits_of(raw: dict[str, Any]) -> dict[str, Any]:
    """The limits of one place, in the order of the table; patterns compiled. Raises re.error.

    A schema says `exclusiveMaximum: true` beside its maximum: here that word has the limit itself. So with the minimum.
    """
    limits = {
        _EXCLUSIVE[word] if raw.get(_EXCLUSIVE.get(word, "")) else word: raw[word]
        for word in _LIMITS
        if word not in _EXCLUSIVE.values() and raw.get(word) is not None
    }
    return limits | ({"pattern": re.compile(limits["pattern"])} if "pattern" in limits else {})


def exceeded(value: Any, limits: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The limits, (keyword, limit), that a value does not keep to."""
    for word, limit in limits.items():
        kind, holds = _LIMITS[word]
        if TYPES[kind](value) and not holds(value, limit):
            yield word, limit
