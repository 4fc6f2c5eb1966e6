"""The types of JSON values and their paths, in the words of a schema."""

from collections.abc import Callable
from typing import Any


def _integer(value: Any) -> bool:
    """An API server keeps integers in 64 bits, and refuses what does not fit."""
    whole = isinstance(value, float) and value.is_integer()
    return (whole or (isinstance(value, int) and not isinstance(value, bool))) and -(2**63) <= value < 2**63


TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _integer,
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
}


def name_of(value: Any) -> str:
    """The type that a value has: one of TYPES, or null."""
    if value is None:
        return "null"
    kinds = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "object")


def below(path: str, step: str | int) -> str:
    """The path of a field (`str`) or of an item (`int`) of what lies at `path`: `spec.when[0].for`."""
    if isinstance(step, int):
        return f"{path}[{step}]"
    return f"{path}.{step}" if path else step


Steps = tuple[str | int, ...]


def at(path: str, steps: Steps) -> str:
    """The path of what lies these steps below `path`."""
    for step in steps:
        path = below(path, step)
    return path


def within(path: str, place: str) -> bool:
    """Whether what lies at `path` is `place` or a part of it."""
    return path == place or not place or path.startswith((f"{place}.", f"{place}["))
