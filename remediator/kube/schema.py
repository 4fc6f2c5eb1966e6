"""What an API server would say of a new object, from the structural schema of its kind; for `lint`, without a server.

Each function walks schema and value side by side. Paths are written as an API server writes them: `spec.when[0].for`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import celpy

Schema = Mapping[str, Any]
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_RULES = "x-kubernetes-validations"


class Violation(NamedTuple):
    """One thing that is wrong: the path of the field, and what is wrong with it."""

    path: str
    message: str


def below(path: str, step: str | int) -> str:
    """The path of a field (`str`) or of an item (`int`) of what lies at `path`."""
    if isinstance(step, int):
        return f"{path}[{step}]"
    return f"{path}.{step}" if path else step


def children(schema: Schema, value: Any) -> Iterator[tuple[str | int, Schema, Any]]:
    """The parts of `value` that the schema describes: (key or index, its schema, its value)."""
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        for key, part in value.items():
            if key in known:
                yield key, known[key], part
            elif isinstance(others, Mapping):
                yield key, others, part
    elif isinstance(value, list) and "items" in schema:
        for index, part in enumerate(value):
            yield index, schema["items"], part


def defaulted(schema: Schema, value: Any) -> Any:
    """A copy of `value` in which absent fields have their defaults, and null where a default exists gives way to it."""
    if isinstance(value, list):
        return [defaulted(schema.get("items", {}), part) for part in value]
    if not isinstance(value, dict):
        return value
    absent = {
        key: part["default"]
        for key, part in schema.get("properties", {}).items()
        if "default" in part and value.get(key) is None
    }
    whole = value | absent
    return whole | {key: defaulted(part, inner) for key, part, inner in children(schema, whole)}


def unknown(schema: Schema, value: Any, path: str = "") -> list[str]:
    """The paths of all fields that the schema does not know. The fields of `metadata` are not looked at."""
    found = []
    if isinstance(value, dict) and not schema.get(_PRESERVE) and not schema.get("additionalProperties"):
        found = [below(path, str(key)) for key in value if key not in schema.get("properties", {})]
    for step, part, inner in children(schema, value):
        if below(path, step) != "metadata":
            found += unknown(part, inner, below(path, step))
    return found


def _is_date(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _is_number(value: Any, *kinds: type) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _is_number(value, int),
    "number": lambda value: _is_number(value, int, float),
}

# keyword → the type of value it speaks of, whether the value keeps to it, how that is said
_LIMITS: dict[str, tuple[type, Callable[[Any, Any], Any], str]] = {
    "enum": (object, lambda value, limit: value in limit, "must be one of {}"),
    "pattern": (str, lambda value, limit: re.search(limit, value), "must match {}"),
    "minLength": (str, lambda value, limit: len(value) >= limit, "must have at least {} characters"),
    "maxLength": (str, lambda value, limit: len(value) <= limit, "must have at most {} characters"),
    "minimum": (int, lambda value, limit: value >= limit, "must be at least {}"),
    "maximum": (int, lambda value, limit: value <= limit, "must be at most {}"),
    "minItems": (list, lambda value, limit: len(value) >= limit, "must have at least {} items"),
    "maxItems": (list, lambda value, limit: len(value) <= limit, "must have at most {} items"),
    "maxProperties": (dict, lambda value, limit: len(value) <= limit, "must have at most {} entries"),
    "format": (str, lambda value, limit: limit != "date-time" or _is_date(value), "must be a {}"),
}


def invalid(schema: Schema, value: Any, path: str = "") -> list[Violation]:
    """Every place where `value` does not keep to the types and limits of the schema. CEL rules are not run."""
    wrong_type = _wrong_type(schema, value)
    if wrong_type:
        return [Violation(path, wrong_type)]
    found = [
        Violation(path, said.format(", ".join(map(str, limit)) if isinstance(limit, list) else limit))
        for keyword, (kind, holds, said) in _LIMITS.items()
        if (limit := schema.get(keyword)) is not None and isinstance(value, kind) and not holds(value, limit)
    ]
    if isinstance(value, dict):
        found += [Violation(below(path, key), "is required") for key in schema.get("required", ()) if key not in value]
    for step, part, inner in children(schema, value):
        found += invalid(part, inner, below(path, step))
    return found


def _wrong_type(schema: Schema, value: Any) -> str:
    if value is None and schema.get("nullable"):
        return ""
    wanted = ["integer", "string"] if schema.get(_INT_OR_STRING) else [schema["type"]] if "type" in schema else []
    if not wanted or any(_TYPES[kind](value) for kind in wanted):
        return ""
    return f"must be {' or '.join(wanted)}, not {_name(value)}"


def _name(value: Any) -> str:
    return "null" if value is None else next((name for name, fits in _TYPES.items() if fits(value)), "that")


@cache
def _program(rule: str) -> celpy.Runner:
    environment = celpy.Environment()
    return environment.program(environment.compile(rule))


def broken(schema: Schema, value: Any, path: str = "") -> list[Violation]:
    """Every CEL rule of the schema that does not hold, as for a new object: rules that speak of oldSelf are not run."""
    if _wrong_type(schema, value):
        return []
    found = [
        Violation((path + rule.get("fieldPath", "")).lstrip("."), rule["message"])
        for rule in schema.get(_RULES, ())
        if "oldSelf" not in rule["rule"] and not _holds(rule["rule"], schema, value)
    ]
    for step, part, inner in children(schema, value):
        found += broken(part, inner, below(path, step))
    return found


def _holds(rule: str, schema: Schema, value: Any) -> bool:
    """Whether a rule is true. One that cannot be evaluated is not, unless the value's own shape is to blame."""
    try:
        return bool(_program(rule).evaluate({"self": celpy.json_to_cel(value)}))
    except (celpy.CELEvalError, ValueError):
        return bool(invalid(schema, value))
