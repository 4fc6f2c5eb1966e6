"""Every field of our kinds as Markdown tables for docs/api.md, read from the CustomResourceDefinitions."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from remediator.kube.api import common, durations
from remediator.kube.manifests.crd import crds

Schema = Mapping[str, Any]
HEAD = "| field | type | default | bounds | what it says |\n|---|---|---|---|---|"
# Their fields are those of Kubernetes, or of nobody: they get no rows below them.
OPEN = "x-kubernetes-preserve-unknown-fields"


class Field(NamedTuple):
    """One row. `path`: below the object, with [] for each entry of a list and {} for each value of a map."""

    path: str
    schema: Schema
    required: bool


# Rule or pattern of the schema → the same in fewer words. What is not here is shown as it is.
FORMS: Mapping[str, str] = {
    durations.SAYS: "a [duration](policies.md#durations)",
    common.NAME_PATTERN: "small letters, digits and `-`",
}


def walk(schema: Schema, path: str = "") -> Iterator[Field]:
    """The fields below a schema, each before those below it."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}".lstrip(".")
        yield Field(here, field, name in required)
        if OPEN not in field:
            yield from walk(*_below(field, here))


def _below(field: Schema, path: str) -> tuple[Schema, str]:
    """Where the fields below this one are: in it, or in the entries of a list or a map."""
    values = field.get("additionalProperties")
    if isinstance(values, Mapping):
        return values, f"{path}{{}}"
    return (field["items"], f"{path}[]") if "items" in field else (field, path)


def type_of(schema: Schema) -> str:
    """The type in one or a few words: `list of string`, `map of string`, `integer or string`."""
    if "x-kubernetes-int-or-string" in schema:
        return "integer or string"
    if "items" in schema:
        return f"list of {type_of(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), Mapping):
        return f"map of {type_of(schema['additionalProperties'])}"
    return "time" if schema.get("format") == "date-time" else str(schema.get("type", "any"))


def bounds(schema: Schema) -> str:
    """What the API server refuses beyond the type; of the entries of a list or a map, too."""
    inner = schema.get("items") or schema.get("additionalProperties")
    each = "; ".join(_bounds(inner)) if isinstance(inner, Mapping) and inner.get("type") != "object" else ""
    return "; ".join([*_bounds(schema), *([f"each: {each}"] if each else []), *_rules(schema)])


def _bounds(schema: Schema) -> Iterator[str]:
    if "enum" in schema:
        yield ", ".join(f"`{value}`" for value in schema["enum"])
    if "pattern" in schema:
        yield FORMS.get(schema["pattern"], f"`{schema['pattern']}`")
    for least, most, unit in BOUNDS:
        yield from _between(schema.get(least), schema.get(most), unit)


BOUNDS = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " entries"),
    ("minProperties", "maxProperties", " entries"),
)


def _between(least: int | None, most: int | None, unit: str) -> Iterator[str]:
    if least is not None and most is not None:
        yield f"{least} to {most}{unit}"
    elif most is not None:
        yield f"at most {most}{unit}"
    elif least is not None:
        yield f"at least {least}{unit}"


def _rules(schema: Schema) -> Iterator[str]:
    """What the CEL rules on the field and on the entries of its list ask for, without the remedy in their messages."""
    held = [*schema.get("x-kubernetes-validations", ()), *schema.get("items", {}).get("x-kubernetes-validations", ())]
    messages = [rule["message"] for rule in held]
    yield from dict.fromkeys(FORMS.get(message, message.partition("; ")[0]) for message in messages)


def default_of(field: Field) -> str:
    """What holds where the field is left out: `required`, what the schema fills in, or what its sentence says."""
    value = field.schema.get("default")
    if field.required or value not in (None, {}):
        return "required" if field.required else f"`{value}`"
    default = re.search(r"\bDefault:? ([^.;:]+)[.;:]", field.schema.get("description", ""))
    return default[1] if default else ""


def row(field: Field) -> str:
    """The row of a field."""
    cells = (type_of(field.schema), default_of(field), bounds(field.schema), field.schema.get("description", ""))
    return " | ".join([f"| `{field.path}`", *(cell.replace("|", "\\|").replace("\n", " ") for cell in cells)]) + " |"


@cache
def drawings() -> Mapping[str, str]:
    """The tables of each kind, by the name of the kind with `spec` or `status`."""
    kinds = {crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for crd in crds()}
    return {f"{kind} {part}": _table(root, part) for kind, root in kinds.items() for part in ("spec", "status")}


def _table(root: Schema, part: str) -> str:
    here = {**root, "properties": {part: root["properties"][part]} if part in root["properties"] else {}}
    return "\n".join([HEAD, *map(row, walk(here))])
