"""What the product makes of a field: which attribute of which noun, and what that is with and without the field."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec

from remediator.kube import api
from remediator.kube.api import decode
from tests.contract.fields_used.documents import INSTEAD, SPECS, TEXT, Object, places, without

DECODED: Mapping[str, Callable[[Any], Any]] = {
    "RemediationPolicy": decode.remediation_policy,
    "NodeOperationTemplate": decode.template,
    "NodeDisruptionBudget": decode.disruption_budget,
    "NodeOperation": decode.operation,
    "NodeRemediation": decode.remediation_case,
}
TYPES = {kind.name: kind.type for kind in api.KINDS}


class Use(NamedTuple):
    """An attribute of a noun in core/ that says what the field says: its value where the field is left out, and where
    it is written as in the documents.
    """

    noun: type
    attribute: str
    left_out: Any
    written: Any

    def __str__(self) -> str:
        return f"{self.noun.__name__}.{self.attribute}"


@cache
def fields() -> tuple[tuple[str, str], ...]:
    """Each field of these kinds, as (kind, path), in the order of the documents."""
    found = ((kind, path) for kind, specs in SPECS.items() for spec in specs for path in places(spec))
    return tuple(dict.fromkeys(found))


@cache
def uses(kind: str, path: str) -> tuple[Use, ...]:
    """Where the product has what the field says; nothing where it does not read it."""
    found: list[Use] = []
    for spec in SPECS[kind]:
        changed = _ignored(kind, spec, path)
        if changed != spec:
            found += _differences(_noun(kind, spec), _noun(kind, changed))
    return tuple({(use.noun, use.attribute): use for use in found}.values())


def _ignored(kind: str, spec: Object, path: str) -> Object:
    """The spec without the field, or with another value where it needs one."""
    if path in INSTEAD:
        return without(spec, path, INSTEAD[path])
    left_out = without(spec, path)
    try:
        _noun(kind, left_out)
    except msgspec.ValidationError:
        return without(spec, path, TEXT)
    return left_out


def _noun(kind: str, spec: Object) -> Any:
    """The object as core/ knows it."""
    document = {"apiVersion": api.API_VERSION, "kind": kind, "metadata": {"name": "one", "uid": "u1"}, "spec": spec}
    return DECODED[kind](msgspec.convert(document, TYPES[kind]))


def _differences(whole: Any, changed: Any) -> Iterator[Use]:
    """The deepest attributes that differ."""
    for name in _attributes(whole):
        before, after = getattr(whole, name), getattr(changed, name)
        if before != after:
            below = list(_below(before, after))
            yield from below or [Use(type(whole), name, after, before)]


def _below(before: Any, after: Any) -> Iterator[Use]:
    entries = type(before) is type(after) is tuple and len(before) == len(after)
    for one, other in zip(before, after, strict=True) if entries else [(before, after)]:
        if type(one) is type(other):
            yield from _differences(one, other)


def _attributes(noun: Any) -> tuple[str, ...]:
    """Those of a dataclass or a named tuple; nothing else has any."""
    if dataclasses.is_dataclass(noun):
        return tuple(field.name for field in dataclasses.fields(noun))
    return tuple(getattr(noun, "_fields", ()))
