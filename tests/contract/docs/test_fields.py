"""docs/api.md has every field of our kinds, as deploy/crds has it."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from remediator.kube.api.durations import SAYS
from tests.contract import fields
from tests.contract.docs.pages import ROOT
from tests.harness import yaml_files

PAGE = (ROOT / "docs" / "api.md").read_text()
CRDS = {
    crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for crd in (yaml_files.read(path) for path in sorted((ROOT / "deploy" / "crds").glob("*.yaml")))
    if crd["kind"] == "CustomResourceDefinition"
}


def names(schema: dict[str, Any]) -> Iterator[str]:
    """The name of every field anywhere below a schema, but those of Kubernetes and those that a map is free to have."""
    for name, field in schema.get("properties", {}).items():
        yield name
        if fields.OPEN not in field:
            yield from names(field)
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from names(schema[inner])


@pytest.mark.parametrize("kind", CRDS)
def test_every_field_of_a_kind_has_a_row_below_its_heading(kind: str) -> None:
    section = re.split(r"^## ", PAGE.partition(f"\n## {kind}\n")[2], flags=re.MULTILINE)[0]
    rows = re.findall(r"^\| `((?:spec|status)[^`]*)` \|", section, flags=re.MULTILINE)
    listed = [row.rpartition(".")[2].rstrip("[]{}") for row in rows]
    parts = {name: field for name, field in CRDS[kind]["properties"].items() if name in ("spec", "status")}
    assert listed == list(names({"properties": parts}))


def field(schema: dict[str, Any], *, required: bool = False) -> str:
    return fields.row(fields.Field("spec.size", {"description": "How big.", **schema}, required))


@pytest.mark.parametrize(
    ("schema", "cells"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 9, "default": 4}, "integer | `4` | 1 to 9"),
        ({"type": "string", "x-kubernetes-validations": [{"rule": "r", "message": SAYS}]},
         "string |  | a [duration](policies.md#durations)"),
        ({"type": "string", "pattern": "^a|b$"}, "string |  | `^a\\|b$`"),
        ({"type": "array", "minItems": 1, "items": {"type": "string", "maxLength": 5}},
         "list of string |  | at least 1 entries; each: at most 5 characters"),
        ({"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
         "map of integer |  | each: at least 0"),
        ({"enum": ["A", "B"], "type": "string"}, "string |  | `A`, `B`"),
        ({"type": "string", "x-kubernetes-validations": [{"rule": "r", "message": "must be small; make it smaller"}]},
         "string |  | must be small"),
    ],
)  # fmt: skip
def test_a_row_says_type_default_and_bounds(schema: dict[str, Any], cells: str) -> None:
    assert field(schema) == f"| `spec.size` | {cells} | How big. |"


def test_a_row_says_what_must_be_given_and_what_holds_where_only_the_sentence_says_it() -> None:
    assert field({"type": "string"}, required=True) == "| `spec.size` | string | required |  | How big. |"
    assert field({"type": "boolean", "description": "Be big. Default false."}).split(" | ")[2] == "false"
