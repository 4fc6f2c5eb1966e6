"""CEL rules of custom resources: compiled once, then evaluated on values."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import celpy
from celpy import celtypes

from remediator.kube.manifests.schema.limits import compiled
from remediator.kube.manifests.schema.seen import Parts, parts, seen


class RuleError(ValueError):
    """A rule that does not compile."""


class Unanswered(ValueError):
    """A rule that cannot be evaluated over the values it is given."""


def _strings(items: Any) -> list[str]:
    return [str(item) for item in items]


# Kubernetes' own functions for strings and lists, as far as celpy lacks them or reads patterns in another way.
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
    "findAll": lambda text, by: celtypes.ListType(
        [celtypes.StringType(match[0]) for match in re.finditer(str(by), str(text))]
    ),
    "matches": lambda text, by: celtypes.BoolType(compiled(str(by)).search(str(text)) is not None),
    "find": lambda text, by: celtypes.StringType(match[0] if (match := re.search(str(by), str(text))) else ""),
}


@dataclass(frozen=True, slots=True)
class CelValidation:
    """One entry of x-kubernetes-validations. `transition` says that it compares with the old value."""

    text: str
    message: str
    reason: str
    field_path: str
    transition: bool
    parts: Parts | None  # of `self` and `oldSelf` that it speaks of; None where of all that they have
    _program: Any
    _message_program: Any = None

    def seen(self, value: Any) -> Any:
        """What of a value the rule can speak of: all else may change, and its answer stays."""
        return seen(value, self.parts)

    def broken(self, values: dict[str, Any]) -> str | None:
        """Why the rule does not hold for `self` (and `oldSelf`), or None where it does. Raises Unanswered."""
        try:
            held = bool(self._program.evaluate(values))
        except (celpy.CELEvalError, TypeError) as error:  # celpy lets a value of the wrong type through as the latter
            raise Unanswered(f"rule evaluation error: {error.args[0]} (rule: {self.text})") from error
        return None if held else self._say(values)

    def _say(self, values: dict[str, Any]) -> str:
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


def compile_rules(raw: Sequence[dict[str, Any]]) -> tuple[CelValidation, ...]:
    """The rules of one schema node. Raises RuleError for one that does not compile."""
    return tuple(
        CelValidation(
            text=rule["rule"],
            message=rule.get("message", ""),
            reason=rule.get("reason", "FieldValueInvalid"),
            field_path=rule.get("fieldPath", ""),
            transition=bool(re.search(r"\boldSelf\b", rule["rule"])),
            parts=parts(rule["rule"] + " " + rule.get("messageExpression", "")),
            _program=_program(rule["rule"]),
            _message_program=_program(rule["messageExpression"]) if rule.get("messageExpression") else None,
        )
        for rule in raw
    )
