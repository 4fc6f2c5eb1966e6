"""JSON Schema as msgspec draws it → the structural subset that an API server takes. Pure."""

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

_DROPPED = ("title", "examples", "propertyNames")


def structural(schema: Mapping[str, Any], defs: Mapping[str, Schema], above: tuple[str, ...] = ()) -> Schema:
    """One JSON Schema of msgspec as a structural one: references inlined, null and empty defaults left out.

    Raises ValueError for what a CRD cannot say: recursion, and unions other than integer or string.
    """
    flat = {key: value for key, value in schema.items() if key not in _DROPPED}
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


def _union(options: list[Schema]) -> Schema:
    if len(options) == 1:
        return options[0]
    if sorted(option.get("type", "") for option in options) != ["integer", "string"]:
        raise ValueError(f"a CRD has no union of {options}")
    limits = {key: value for option in options for key, value in option.items() if key != "type"}
    return limits | {"x-kubernetes-int-or-string": True}


def _settled(schema: Schema) -> Schema:
    """Drop an empty default, unless it is an object whose own fields have defaults."""
    filled = any("default" in part for part in schema.get("properties", {}).values())
    default = schema.get("default")
    if not default and not (filled and default == {}):
        schema.pop("default", None)
    return schema
