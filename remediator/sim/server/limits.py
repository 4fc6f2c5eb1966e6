"""The plain limits of a schema: lengths, sizes, bounds, formats and patterns."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from remediator.sim.server import times
from remediator.sim.server.schema import Node
from remediator.sim.server.status import Cause, shown, wrong

TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())
    ),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
}


def check(value: Any, node: Node, path: str) -> Iterator[Cause]:
    """Causes to refuse a value by its length, size, format or pattern."""
    if isinstance(value, str):
        yield from islice(_text(value, node, path), 1)  # of a text only the first fault is told
        return
    for word, limit in node.limits.items():
        cause = _LIMITS[word](value, limit, path, node) if word in _LIMITS else None
        if cause:
            yield cause


def _text(value: str, node: Node, path: str) -> Iterator[Cause]:
    if not _FORMATS.get(node.format, _any)(value):
        yield wrong(
            path, value, f"{path} in body must be of type {node.format}: {shown(value)}", "FieldValueTypeInvalid"
        )
    for word in ("maxLength", "minLength"):
        cause = _LIMITS[word](value, node.limits[word], path, node) if word in node.limits else None
        if cause:
            yield cause
    if node.pattern and not node.pattern.search(value):
        yield wrong(path, value, f"{path} in body should match '{node.pattern.pattern}'")


def _any(text: str) -> bool:
    return True


def _date_time(text: str) -> bool:
    try:
        return times.parse(text).tzinfo is not None
    except ValueError:
        return False


_FORMATS: dict[str, Callable[[str], bool]] = {"date-time": _date_time}


def _too_many(kind: type) -> Callable[[Any, Any, str, Node], Cause | None]:
    def judge(value: Any, limit: Any, path: str, node: Node) -> Cause | None:
        if not isinstance(value, kind) or len(value) <= limit:  # type: ignore[arg-type]
            return None
        detail = f"Too many: {len(value)}: must have at most {limit} items"  # type: ignore[arg-type]
        return Cause(path, "FieldValueTooMany", detail)

    return judge


def _too_few(kind: type, noun: str) -> Callable[[Any, Any, str, Node], Cause | None]:
    def judge(value: Any, limit: Any, path: str, node: Node) -> Cause | None:
        if not isinstance(value, kind) or len(value) >= limit:  # type: ignore[arg-type]
            return None
        given = value if kind is str else len(value)  # type: ignore[arg-type]
        return wrong(path, given, f"{path} in body should {noun.format(limit=limit)}")

    return judge


def _too_long(value: Any, limit: Any, path: str, node: Node) -> Cause | None:
    if not isinstance(value, str) or len(value) <= limit:
        return None
    return Cause(path, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")


def _bound(over: bool) -> Callable[[Any, Any, str, Node], Cause | None]:
    words = ("maximum", "exclusiveMaximum", "less") if over else ("minimum", "exclusiveMinimum", "greater")

    def judge(value: Any, limit: Any, path: str, node: Node) -> Cause | None:
        if not TYPES["number"](value):
            return None
        strict = bool(node.limits.get(words[1]))
        outside = value > limit if over else value < limit
        if not outside and not (strict and value == limit):
            return None
        return wrong(path, value, f"{path} in body should be {words[2]} than {'' if strict else 'or equal to '}{limit}")

    return judge


def _multiple(value: Any, limit: Any, path: str, node: Node) -> Cause | None:
    if not TYPES["number"](value) or value % limit == 0:
        return None
    return wrong(path, value, f"{path} in body should be a multiple of {limit}")


_LIMITS: dict[str, Callable[[Any, Any, str, Node], Cause | None]] = {
    "maxLength": _too_long,
    "minLength": _too_few(str, "be at least {limit} chars long"),
    "maxItems": _too_many(list),
    "minItems": _too_few(list, "have at least {limit} items"),
    "maxProperties": _too_many(dict),
    "minProperties": _too_few(dict, "have at least {limit} properties"),
    "maximum": _bound(over=True),
    "minimum": _bound(over=False),
    "multipleOf": _multiple,
}
