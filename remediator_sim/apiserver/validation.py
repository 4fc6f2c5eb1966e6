"""What a schema holds against an object, in the causes and the words of an API server."""

from collections.abc import Iterable, Iterator
from typing import Any

from remediator.kube.manifests import schema
from remediator.kube.manifests.schema import ABSENT, Broken, Fault, SchemaNode, broken, faults, name_of
from remediator_sim.apiserver.status import StatusCause, shown

_INVALID, _TYPE, _MANY = "FieldValueInvalid", "FieldValueTypeInvalid", "FieldValueTooMany"
# Where one of these is wrong, rules could not even be asked.
_BLOCKING = frozenset(("FieldValueRequired", _TYPE, "FieldValueNotSupported", "FieldValueTooLong", _MANY))
_UNCHECKED = StatusCause(
    "<nil>",
    _INVALID,
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


def check(value: Any, node: SchemaNode, old: Any = ABSENT, *, fits: bool = False) -> list[StatusCause]:
    """All causes to refuse `value`; `old` is what it replaces. Rules are asked only where the shape is right.

    `fits` says that the shape is known to be right.
    """
    causes = [] if fits or schema.fits(value, node) else [_of_fault(fault) for fault in _told(faults(value, node, old))]
    if any(cause.reason in _BLOCKING for cause in causes):
        return [*causes, _UNCHECKED] if node.ruled else causes
    return causes + [_of_rule(rule) for rule in broken(value, node, old)]


_OF_TEXTS = frozenset(("format", "maxLength", "minLength", "pattern"))


def _told(found: Iterable[Fault]) -> Iterator[Fault]:
    """An API server tells only the first limit that a text does not keep to."""
    texts: set[str] = set()
    for fault in found:
        if fault.word not in _OF_TEXTS:
            yield fault
        elif fault.path not in texts:
            texts.add(fault.path)
            yield fault


_TOO_MANY = "Too many: {count}: must have at most {limit} items"
# keyword → reason and words
_FAULTS: dict[str, tuple[str, str]] = {
    "type": (_TYPE, "Invalid value: {name}: {place} in body must be of type {joined}: {name}"),
    "format": (_TYPE, "Invalid value: {value}: {place} in body must be of type {limit}: {value}"),
    "enum": ("FieldValueNotSupported", "Unsupported value: {value}: supported values: {listed}"),
    "required": ("FieldValueRequired", "Required value"),
    "unique": ("FieldValueDuplicate", "Duplicate value: {value}"),
    "maxLength": ("FieldValueTooLong", "Too long: may not be more than {limit} bytes"),
    "maxItems": (_MANY, _TOO_MANY),
    "maxProperties": (_MANY, _TOO_MANY),
    "pattern": (_INVALID, "Invalid value: {value}: {place} in body should match '{limit.pattern}'"),
    "minLength": (_INVALID, "Invalid value: {value}: {place} in body should be at least {limit} chars long"),
    "minItems": (_INVALID, "Invalid value: {count}: {place} in body should have at least {limit} items"),
    "minProperties": (_INVALID, "Invalid value: {count}: {place} in body should have at least {limit} properties"),
    "maximum": (_INVALID, "Invalid value: {value}: {place} in body should be less than or equal to {limit}"),
    "exclusiveMaximum": (_INVALID, "Invalid value: {value}: {place} in body should be less than {limit}"),
    "minimum": (_INVALID, "Invalid value: {value}: {place} in body should be greater than or equal to {limit}"),
    "exclusiveMinimum": (_INVALID, "Invalid value: {value}: {place} in body should be greater than {limit}"),
    "multipleOf": (_INVALID, "Invalid value: {value}: {place} in body should be a multiple of {limit}"),
    "allOf": (_INVALID, "Invalid value: {name}: {place} in body must validate all the schemas (allOf)"),
    "anyOf": (_INVALID, "Invalid value: {name}: {place} in body must validate at least one schema (anyOf)"),
    "oneOf": (_INVALID, "Invalid value: {name}: {place} in body must validate one and only one schema (oneOf)"),
    "not": (_INVALID, "Invalid value: {name}: {place} in body must validate no schema (not)"),
}


def _of_fault(fault: Fault) -> StatusCause:
    reason, words = _FAULTS[fault.word]
    limits = fault.limit if isinstance(fault.limit, tuple) else ()
    message = words.format(
        place=fault.path or "<nil>",
        value=shown(fault.value),
        name=shown(name_of(fault.value)),
        count=len(fault.value) if isinstance(fault.value, (dict, list)) else 0,
        limit=fault.limit,
        joined=",".join(map(str, limits)),
        listed=", ".join(map(shown, limits)),
    )
    return StatusCause(fault.path, reason, message)


_PREFIXES = {
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
}


def _of_rule(rule: Broken) -> StatusCause:
    plain = rule.reason == _INVALID and not isinstance(rule.value, (dict, list))
    text = f"{shown(rule.value)}: {rule.message}" if plain else rule.message
    return StatusCause(rule.path, rule.reason, f"{_PREFIXES.get(rule.reason, 'Invalid value')}: {text}")
