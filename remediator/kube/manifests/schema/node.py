"""Compiled structural schemas: one Node for each place in an object."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from remediator.kube.manifests.schema.cel import CelValidation, compile_rules
from remediator.kube.manifests.schema.limits import limits_of
from remediator.kube.manifests.schema.values import TYPES

ABSENT: Any = object()
LEAVES = {"string": str, "boolean": bool}  # not integer: one may be too large
HOLDERS = {"object": dict, "array": list}


@dataclass(slots=True)
class SchemaNode:
    """One place of a schema. `limits` holds the plain keywords (maxLength, minimum, ...) in the order they are told."""

    type: str = ""
    properties: dict[str, "SchemaNode"] = field(default_factory=dict)
    additional: "SchemaNode | None" = None
    items: "SchemaNode | None" = None
    required: tuple[str, ...] = ()
    nullable: bool = False
    int_or_string: bool = False
    preserve: bool = False
    embedded: bool = False
    default: Any = ABSENT
    enum: tuple[Any, ...] = ()
    format: str = ""
    limits: dict[str, Any] = field(default_factory=dict)
    list_type: str = "atomic"
    list_keys: tuple[str, ...] = ()
    alternatives: dict[str, list["SchemaNode"]] = field(default_factory=dict)  # allOf, anyOf, oneOf, not
    rules: tuple[CelValidation, ...] = ()
    ruled: bool = False  # there is a rule here or below
    transitions: bool = False  # a rule here or below speaks of the old value
    raw: dict[str, Any] = field(default_factory=dict)
    types: tuple[str, ...] = field(init=False)  # that a value may have; none where any will do
    defaults: tuple[tuple[str, Any], ...] = field(init=False)  # of the properties that have one
    must: tuple[str, ...] = field(init=False)  # properties without which something is wrong, or would be filled in
    leaf: Any = field(init=False)  # a value of this very class needs no look; None where every value needs one
    holder: Any = field(init=False)  # of a value of this very class only the content needs a look
    answers: dict[str, Any] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )  # of rules that were asked before, see rules.py
    _tests: tuple[Callable[[Any], bool], ...] = field(init=False)

    def __post_init__(self) -> None:
        self.types = ("integer", "string") if self.int_or_string else (self.type,) if self.type else ()
        self.defaults = tuple(
            (key, part.default) for key, part in self.properties.items() if part.default is not ABSENT
        )
        self._tests = tuple(TYPES[name] for name in self.types)
        self.must = (*self.required, *(key for key, _ in self.defaults))
        limited = self.enum or self.limits or self.alternatives
        self.leaf = None if limited or len(self.types) != 1 else LEAVES.get(self.type)
        self.holder = None if limited or len(self.types) != 1 else HOLDERS.get(self.type)

    def takes(self, value: Any) -> bool:
        """Whether a value is of a type that may stand here."""
        for test in self._tests:
            if test(value):
                return True
        return not self._tests or (value is None and self.nullable)

    def child(self, key: str) -> "SchemaNode | None":
        """The schema of a property, of a map's value, or None."""
        return self.properties.get(key) or self.additional

    def identity(self, item: Any) -> Any:
        """What tells an item of this list from the others: its keys in a list of type map, else all of it."""
        if self.list_type == "map" and isinstance(item, dict):
            return {key: item[key] for key in self.list_keys if key in item}
        return item

    def repeated(self, items: list[Any]) -> dict[int, Any]:
        """By place, the identity of each item that an earlier one has, too: no list of type map or set may have any."""
        seen: list[Any] = []
        again: dict[int, Any] = {}
        for number, item in enumerate(items if self.list_type in ("map", "set") else ()):
            identity = self.identity(item)
            if identity in seen:
                again[number] = identity
            seen.append(identity)
        return again

    def predecessor(self, item: Any, old: Any) -> Any:
        """The item of the old list that `item` follows, or ABSENT: only lists of type map know."""
        if self.list_type != "map" or not isinstance(old, list):
            return ABSENT
        identity = self.identity(item)
        return next((item for item in old if self.identity(item) == identity), ABSENT)


def build(raw: dict[str, Any], *, root: bool = False) -> SchemaNode:
    """Compile one schema. Raises re.error or RuleError where a pattern or rule cannot be compiled."""
    additional = raw.get("additionalProperties")
    node = SchemaNode(
        type=raw.get("type", ""),
        properties={key: build(value) for key, value in (raw.get("properties") or {}).items()},
        additional=build(additional) if isinstance(additional, dict) else None,
        items=build(raw["items"]) if isinstance(raw.get("items"), dict) else None,
        required=tuple(raw.get("required") or ()),
        nullable=bool(raw.get("nullable")),
        int_or_string=bool(raw.get("x-kubernetes-int-or-string")),
        preserve=bool(raw.get("x-kubernetes-preserve-unknown-fields")) or additional is True,
        embedded=root or bool(raw.get("x-kubernetes-embedded-resource")),
        default=raw.get("default", ABSENT),
        enum=tuple(raw.get("enum") or ()),
        format=raw.get("format", ""),
        limits=limits_of(raw),
        list_type=raw.get("x-kubernetes-list-type", "atomic"),
        list_keys=tuple(raw.get("x-kubernetes-list-map-keys") or ()),
        alternatives=_alternatives(raw),
        rules=compile_rules(raw.get("x-kubernetes-validations") or []),
        raw=raw,
    )
    parts = [*node.properties.values(), *filter(None, (node.additional, node.items))]
    node.ruled = bool(node.rules) or any(part.ruled for part in parts)
    node.transitions = any(rule.transition for rule in node.rules) or any(part.transitions for part in parts)
    if node.embedded and "metadata" in node.properties:
        node.properties["metadata"].preserve = True  # which fields it has is the same for all kinds, see content.py
    return node


def _alternatives(raw: dict[str, Any]) -> dict[str, list[SchemaNode]]:
    junctors = {word: [build(part) for part in raw[word]] for word in ("allOf", "anyOf", "oneOf") if word in raw}
    return junctors | ({"not": [build(raw["not"])]} if "not" in raw else {})
