"""Structural schemas of custom resources: compiled once, then used to prune, default and (validation.py) check."""

import re
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from remediator.sim.server.cel import Rule, compile_rules
from remediator.sim.server.status import Obj

_METADATA = frozenset(
    {"name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "labels"}
    | {"annotations", "finalizers", "ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds"}
    | {"managedFields", "selfLink"}
)
ABSENT: Any = object()


@dataclass(slots=True)
class Node:
    """One place of a schema. `limits` holds the plain keywords (maxLength, minimum, ...) as they were written."""

    type: str = ""
    properties: dict[str, "Node"] = field(default_factory=dict)
    additional: "Node | None" = None
    items: "Node | None" = None
    required: tuple[str, ...] = ()
    nullable: bool = False
    int_or_string: bool = False
    preserve: bool = False
    embedded: bool = False
    default: Any = ABSENT
    enum: tuple[Any, ...] = ()
    pattern: re.Pattern[str] | None = None
    format: str = ""
    limits: dict[str, Any] = field(default_factory=dict)
    list_type: str = "atomic"
    list_keys: tuple[str, ...] = ()
    alternatives: dict[str, list["Node"]] = field(default_factory=dict)  # allOf, anyOf, oneOf, not
    rules: tuple[Rule, ...] = ()
    transitions: bool = False  # a rule here or below speaks of the old value
    raw: Obj = field(default_factory=dict)

    def child(self, key: str) -> "Node | None":
        """The schema of a property, of a map's value, or None."""
        return self.properties.get(key) or self.additional


_LIMITS = (
    *("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"),
    *("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"),
)


def build(raw: Obj, *, root: bool = False) -> Node:
    """Compile one schema. Raises re.error or cel.RuleError where a pattern or rule cannot be compiled."""
    additional = raw.get("additionalProperties")
    node = Node(
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
        pattern=re.compile(raw["pattern"]) if raw.get("pattern") else None,
        format=raw.get("format", ""),
        limits={key: raw[key] for key in _LIMITS if key in raw},
        list_type=raw.get("x-kubernetes-list-type", "atomic"),
        list_keys=tuple(raw.get("x-kubernetes-list-map-keys") or ()),
        alternatives=_alternatives(raw),
        rules=compile_rules(raw.get("x-kubernetes-validations") or []),
        raw=raw,
    )
    below = [*node.properties.values(), *filter(None, (node.additional, node.items))]
    node.transitions = any(rule.transition for rule in node.rules) or any(one.transitions for one in below)
    return node


def _alternatives(raw: Obj) -> dict[str, list[Node]]:
    found = {word: [build(one) for one in raw[word]] for word in ("allOf", "anyOf", "oneOf") if word in raw}
    return found | ({"not": [build(raw["not"])]} if "not" in raw else {})


def prune(value: Any, node: Node, path: str = "") -> list[str]:
    """Remove in place what the schema does not name; the answer is the paths of what was removed."""
    if isinstance(value, list):
        below = node.items
        if below is None:
            return []
        return [gone for at, item in enumerate(value) for gone in prune(item, below, f"{path}[{at}]")]
    if not isinstance(value, dict):
        return []
    removed = []
    for key in list(value):
        where = f"{path}.{key}" if path else key
        if node.embedded and key in ("apiVersion", "kind", "metadata"):
            removed += _prune_metadata(value[key], where) if key == "metadata" else []
        elif (below := node.child(key)) is not None:
            removed += prune(value[key], below, where)
        elif not node.preserve:
            del value[key]
            removed.append(where)
    return removed


def _prune_metadata(metadata: Any, path: str) -> list[str]:
    unknown = [key for key in metadata if key not in _METADATA] if isinstance(metadata, dict) else []
    for key in unknown:
        del metadata[key]
    return [f"{path}.{key}" for key in unknown]


def fill(value: Any, node: Node) -> None:
    """Drop nulls that are not allowed, then put defaults in place of absent fields."""
    if isinstance(value, list) and node.items is not None:
        for item in value:
            fill(item, node.items)
    if not isinstance(value, dict):
        return
    for key in [key for key, item in value.items() if item is None]:
        known = node.child(key)
        if known is not None and not known.nullable:
            del value[key]
    for key, below in node.properties.items():
        if key not in value and below.default is not ABSENT:
            value[key] = deepcopy(below.default)
    for key, item in value.items():
        if (found := node.child(key)) is not None:
            fill(item, found)
