"""JSON Schema as msgspec draws it → the structural subset that an API server takes. Pure."""

from collections.abc import Mapping
from typing import Any

from remediator.kube.api.common import SHAPE, Rule

Schema = dict[str, Any]

_DROPPED = ("title", "examples", "propertyNames")
_RULES = "x-kubernetes-validations"


def structural(schema: Mapping[str, Any], defs: Mapping[str, Schema], above: tuple[str, ...] = ()) -> Schema:
    """One JSON Schema of msgspec as a structural one: references inlined, null and empty defaults left out.

    Raises ValueError for what a CRD cannot say: recursion, and unions other than integer or string.
    """
    flat = _worded({key: value for key, value in schema.items() if key not in _DROPPED} | _keys(schema))
    if reference := flat.pop("$ref", None):
        name = reference.rsplit("/", 1)[-1]
        if name in above:
            raise ValueError(f"{name} contains itself")
        return _settled(structural(defs[name], defs, (*above, name)) | flat)
    if options := flat.pop("anyOf", None):
        return structural(_union([option for option in options if option.get("type") != "null"]) | flat, defs, above)
    if "enum" in flat:
        flat |= {"type": "string", "enum": [value for value in flat["enum"] if value]}
    if "properties" in flat:
        flat["properties"] = {key: structural(part, defs, above) for key, part in flat["properties"].items()}
    for inner in ("items", "additionalProperties"):
        if isinstance(flat.get(inner), dict) and not flat.get("x-kubernetes-int-or-string"):
            flat[inner] = structural(flat[inner], defs, above)
    if not flat.get("required", True):
        del flat["required"]
    return _settled(flat)


def _worded(schema: Schema) -> Schema:
    """A pattern with words of its own as a rule that says them; numbers where texts may be, too, keep to it."""
    says = schema.pop(SHAPE, None)
    if says is None:
        return schema
    pattern = schema.pop("pattern")
    rule = f"self.matches('{pattern}')"
    return schema | {_RULES: [Rule(rule, says).validation, *schema.get(_RULES, ())]}


def _keys(schema: Mapping[str, Any]) -> Schema:
    """A pattern of the keys of a map as a rule: structural schemas have no other way to say it."""
    names = schema.get("propertyNames", {})
    if SHAPE not in names:
        return {}
    held = Rule(f"self.all(key, key.matches('{names['pattern']}'))", f"every key {names[SHAPE]}")
    return {_RULES: [*schema.get(_RULES, ()), held.validation]}


def _union(options: list[Schema]) -> Schema:
    if len(options) == 1:
        return options[0]
    if sorted(option.get("type", "") for option in options) != ["integer", "string"]:
        raise ValueError(f"a CRD has no union of {options}")
    limits = {key: value for option in map(_worded, options) for key, value in option.items() if key != "type"}
    for rule in limits.get(_RULES, ()):
        rule["rule"] = f"type(self) == int || {rule['rule']}"
    return limits | {"x-kubernetes-int-or-string": True}


def _settled(schema: Schema) -> Schema:
    """Drop an empty default, unless it is an object whose own fields have defaults."""
    filled = any("default" in part for part in schema.get("properties", {}).values())
    default = schema.get("default")
    if not default and not (filled and default == {}):
        schema.pop("default", None)
    return schema
