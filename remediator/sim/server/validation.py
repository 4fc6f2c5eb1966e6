"""Whether an object keeps its schema, in the causes that an API server names. Unchanged parts are not judged anew."""

from collections.abc import Iterator
from typing import Any

from remediator.sim.server import limits
from remediator.sim.server.cel import to_cel
from remediator.sim.server.schema import ABSENT, Node
from remediator.sim.server.status import Cause, duplicate, required, shown, wrong


def check(value: Any, node: Node, old: Any = ABSENT) -> list[Cause]:
    """All causes to refuse `value`; `old` is what it replaces. Rules are asked only where the shape is right."""
    causes = list(_shape(value, node, "", old))
    if any(cause.reason in _BLOCKING for cause in causes):
        return [*causes, _UNCHECKED] if _has_rules(node) else causes
    return causes + list(_rules(value, node, "", old))


# Where one of these is wrong, rules could not even be asked.
_BLOCKING = frozenset(
    ("FieldValueRequired", "FieldValueTypeInvalid", "FieldValueNotSupported", "FieldValueTooLong", "FieldValueTooMany")
)
_UNCHECKED = Cause(
    "<nil>",
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


def _has_rules(node: Node) -> bool:
    below = [*node.properties.values(), *filter(None, (node.additional, node.items))]
    return bool(node.rules) or any(_has_rules(one) for one in below)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _name_of(value: Any) -> str:
    if value is None:
        return "null"
    kinds = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "object")


def _wrong_type(path: str, value: Any, wanted: str) -> Cause:
    name = _name_of(value)
    detail = f'{path or "<nil>"} in body must be of type {wanted}: "{name}"'
    return wrong(path, name, detail, "FieldValueTypeInvalid")


def _shape(value: Any, node: Node, path: str, old: Any) -> Iterator[Cause]:
    if old is not ABSENT and old == value:
        return
    if value is None and node.nullable:
        return
    if node.int_or_string:
        if not (limits.TYPES["integer"](value) or isinstance(value, str)):
            yield _wrong_type(path, value, "integer,string")
            return
    elif node.type and not limits.TYPES[node.type](value):
        yield _wrong_type(path, value, node.type)
        return
    if node.enum and value not in node.enum:
        listed = ", ".join(shown(one) for one in node.enum)
        yield Cause(path, "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {listed}")
    yield from limits.check(value, node, path)
    yield from _alternatives(value, node, path)
    if isinstance(value, dict):
        yield from _object(value, node, path, old)
    elif isinstance(value, list):
        yield from _list(value, node, path, old)


def _object(value: dict[str, Any], node: Node, path: str, old: Any) -> Iterator[Cause]:
    for key in node.required:
        if key not in value:
            yield required(_join(path, key))
    before = old if isinstance(old, dict) else {}
    for key, item in value.items():
        below = node.child(key)
        if below is not None:
            yield from _shape(item, below, _join(path, key), before.get(key, ABSENT))


def _list(value: list[Any], node: Node, path: str, old: Any) -> Iterator[Cause]:
    seen: list[Any] = []
    for at, item in enumerate(value):
        ident = _ident(item, node)
        if node.list_type in ("map", "set"):
            if ident in seen:
                yield duplicate(f"{path}[{at}]", ident)
            seen.append(ident)
        if node.items is not None:
            yield from _shape(item, node.items, f"{path}[{at}]", _before(item, node, old))


def _ident(item: Any, node: Node) -> Any:
    if node.list_type == "map" and isinstance(item, dict):
        return {key: item[key] for key in node.list_keys if key in item}
    return item


def _before(item: Any, node: Node, old: Any) -> Any:
    """The old item that a list item is the successor of: only lists of type map know."""
    if node.list_type != "map" or not isinstance(old, list):
        return ABSENT
    ident = _ident(item, node)
    return next((one for one in old if _ident(one, node) == ident), ABSENT)


def _alternatives(value: Any, node: Node, path: str) -> Iterator[Cause]:
    for word, choices in node.alternatives.items():
        fitting = sum(not any(_shape(value, choice, path, ABSENT)) for choice in choices)
        held = {"allOf": fitting == len(choices), "anyOf": fitting > 0, "oneOf": fitting == 1, "not": fitting == 0}
        if not held[word]:
            yield wrong(path, _name_of(value), f"{path or '<nil>'} in body must validate {_WORDS[word]}")


_WORDS = {
    "allOf": "all the schemas (allOf)",
    "anyOf": "at least one schema (anyOf)",
    "oneOf": "one and only one schema (oneOf)",
    "not": "no schema (not)",
}


def _rules(value: Any, node: Node, path: str, old: Any) -> Iterator[Cause]:
    if value is None or (old is not ABSENT and old == value and not node.transitions):
        return
    unchanged = old is not ABSENT and old == value
    rules = [rule for rule in node.rules if (old is not ABSENT if rule.transition else not unchanged)]
    if rules:
        values = {"self": to_cel(value, node)} | ({} if old is ABSENT else {"oldSelf": to_cel(old, node)})
        for rule in rules:
            why = rule.broken(values)
            if why is not None:
                yield _broken(value, path + rule.field_path, rule.reason, why)
    yield from _rules_below(value, node, path, old)


def _broken(value: Any, path: str, reason: str, why: str) -> Cause:
    plain = reason == "FieldValueInvalid" and not isinstance(value, (dict, list))
    said = f"{shown(value)}: {why}" if plain else why
    return Cause(path.lstrip("."), reason, f"{_PREFIXES.get(reason, 'Invalid value')}: {said}")


_PREFIXES = {
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
}


def _rules_below(value: Any, node: Node, path: str, old: Any) -> Iterator[Cause]:
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for key, item in value.items():
            below = node.child(key)
            if below is not None:
                yield from _rules(item, below, _join(path, key), before.get(key, ABSENT))
    elif isinstance(value, list) and node.items is not None:
        for at, item in enumerate(value):
            yield from _rules(item, node.items, f"{path}[{at}]", _before(item, node, old))
