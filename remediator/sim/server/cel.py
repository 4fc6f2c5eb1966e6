"""CEL rules of custom resources: compiled once, evaluated over values that know their schema."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import celpy
from celpy import celtypes

from remediator.sim.server.status import Obj

if TYPE_CHECKING:
    from remediator.sim.server.schema import Node

# Words of the language; a field of that name is written `__word__` in a rule.
_WORDS = "true false null in as break const continue else for function if import let loop package namespace return"
_RESERVED = frozenset([*_WORDS.split(), "var", "void", "while"])


class RuleError(ValueError):
    """A rule that does not compile."""


def _strings(items: Any) -> list[str]:
    return [str(item) for item in items]


# Kubernetes' own functions for strings and lists, as far as celpy lacks them.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "split": lambda text, by: celtypes.ListType([celtypes.StringType(part) for part in str(text).split(str(by))]),
    "join": lambda items, by="": celtypes.StringType(str(by).join(_strings(items))),
    "trim": lambda text: celtypes.StringType(str(text).strip()),
    "lowerAscii": lambda text: celtypes.StringType(str(text).lower()),
    "upperAscii": lambda text: celtypes.StringType(str(text).upper()),
    "replace": lambda text, old, new: celtypes.StringType(str(text).replace(str(old), str(new))),
    "indexOf": lambda text, part: celtypes.IntType(str(text).find(str(part))),
    "substring": lambda text, start, end=None: celtypes.StringType(str(text)[int(start) : end and int(end)]),
    "isSorted": lambda items: celtypes.BoolType(list(items) == sorted(items)),
    "sum": lambda items: sum(items, celtypes.IntType(0)),
    "find": lambda text, by: celtypes.StringType(found[0] if (found := re.search(str(by), str(text))) else ""),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of x-kubernetes-validations. `transition` says that it compares with the old value."""

    text: str
    message: str
    reason: str
    field_path: str
    transition: bool
    _program: Any
    _message_program: Any = None

    def broken(self, values: Obj) -> str | None:
        """Why the rule does not hold for `self` (and `oldSelf`), or None where it does."""
        try:
            held = bool(self._program.evaluate(values))
        except celpy.CELEvalError as error:
            return f"rule evaluation error: {error.args[0]} (rule: {self.text})"
        return None if held else self._say(values)

    def _say(self, values: Obj) -> str:
        if self._message_program is not None:
            try:
                return str(self._message_program.evaluate(values))
            except celpy.CELEvalError:
                pass  # an expression that fails gives way to the plain message
        return self.message or f"failed rule: {self.text}"


_environment: celpy.Environment | None = None
_programs: dict[str, Any] = {}


def _program(text: str) -> Any:
    """Compile an expression; the same text is compiled once per process."""
    global _environment
    if text not in _programs:
        _environment = _environment or celpy.Environment()
        try:
            _programs[text] = _environment.program(_environment.compile(text), functions=_FUNCTIONS)
        except celpy.CELParseError as error:
            raise RuleError(f"compilation failed: {text}: {error}") from error
    return _programs[text]


def compile_rules(raw: Sequence[Obj]) -> tuple[Rule, ...]:
    """The rules of one schema node. Raises RuleError for one that does not compile."""
    return tuple(
        Rule(
            text=one["rule"],
            message=one.get("message", ""),
            reason=one.get("reason", "FieldValueInvalid"),
            field_path=one.get("fieldPath", ""),
            transition=bool(re.search(r"\boldSelf\b", one["rule"])),
            _program=_program(one["rule"]),
            _message_program=_program(one["messageExpression"]) if one.get("messageExpression") else None,
        )
        for one in raw
    )


def escape(name: str) -> str:
    """The name of a field as a rule writes it."""
    if name in _RESERVED:
        return f"__{name}__"
    return (
        name.replace("__", "__underscores__").replace(".", "__dot__").replace("-", "__dash__").replace("/", "__slash__")
    )


_PATH = re.compile(r"\b(?:self|oldSelf)((?:\.\w+\b(?!\s*\())+)")
_TEXTS = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")


def undefined(text: str, node: "Node") -> str | None:
    """The first field that a rule speaks of and its schema does not have; celpy itself only fails when it runs."""
    for found in _PATH.finditer(_TEXTS.sub("''", text)):
        at: Node | None = node
        for name in found[1].lstrip(".").split("."):
            if at is None or not at.properties or at.preserve or at.additional:
                break
            known = {escape(key): below for key, below in at.properties.items()}
            if name not in known and not (at.embedded and name in ("apiVersion", "kind", "metadata")):
                return name
            at = known.get(name)
    return None


_SCALARS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("string", "date-time"): celtypes.TimestampType,
    ("string", "duration"): celtypes.DurationType,
    ("number", ""): celtypes.DoubleType,
    ("number", "double"): celtypes.DoubleType,
}


def to_cel(value: Any, node: "Node | None") -> Any:
    """A value as rules see it: typed by its schema, fields under their escaped names."""
    if isinstance(value, dict):
        named = node.properties if node else {}
        return celtypes.MapType(
            {
                celtypes.StringType(escape(key) if key in named else key): to_cel(
                    item, node.child(key) if node else None
                )
                for key, item in value.items()
            }
        )
    if isinstance(value, list):
        return celtypes.ListType([to_cel(item, node.items if node else None) for item in value])
    convert = _SCALARS.get((node.type, node.format)) if node and value is not None else None
    return convert(value) if convert else celpy.json_to_cel(value)
