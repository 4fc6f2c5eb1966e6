"""What /api/v1 gives, as a page for people: every address, and the fields of what it gives. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from remediator.web.page.openapi import PATHS, SCHEMAS


@dataclass(frozen=True, slots=True)
class AddressRow:
    """An address, and the name of the schema of what it gives."""

    path: str
    summary: str
    gives: str


@dataclass(frozen=True, slots=True)
class SchemaView:
    """One schema: its fields, each with its type in words."""

    name: str
    fields: tuple[tuple[str, str], ...]


def addresses() -> tuple[AddressRow, ...]:
    """All of them, as one would type them."""
    return tuple(
        AddressRow(f"{path}?q=PART" if path.endswith("search") else path.replace("{name}", "NAME"), summary, gives)
        for path, (summary, gives) in PATHS.items()
    )


def schemas() -> tuple[SchemaView, ...]:
    """All of them."""
    return tuple(SchemaView(name, tuple(_fields(schema))) for name, schema in SCHEMAS.items())


def worded(schema: dict[str, Any]) -> str:
    """The type of a field.

    >>> worded({"type": "array", "items": {"anyOf": [{"$ref": "#/components/schemas/Case"}, {"type": "null"}]}})
    'list of Case or null'
    >>> worded({"type": "string", "enum": ["P", "R"]})
    'P or R'
    """
    if "$ref" in schema:
        return _name(schema)
    if "anyOf" in schema:
        return " or ".join(worded(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(schema["enum"])
    if "properties" in schema:
        return f"{{{', '.join(f'{name}: {words}' for name, words in _fields(schema))}}}"
    if schema["type"] == "array":
        return f"list of {worded(schema['items'])}"
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    return " or ".join("time" if each == "string" and "format" in schema else each for each in types)


def _fields(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for part in schema.get("allOf", ()):
        yield from _fields(SCHEMAS[_name(part)] if "$ref" in part else part)
    yield from ((name, worded(of)) for name, of in schema.get("properties", {}).items())


def _name(reference: dict[str, Any]) -> str:
    return str(reference["$ref"].rpartition("/")[2])
