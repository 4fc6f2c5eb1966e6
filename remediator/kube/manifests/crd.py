"""The six types of `kube.api` as CustomResourceDefinitions.

`msgspec.json.schema` speaks JSON Schema; an API server wants its structural subset. `structural` is that
translation; everything else here is names and the columns of `kubectl get`.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, NamedTuple

import msgspec
import yaml

from remediator.kube import api
from remediator.kube.api.not_yet import NOT_YET, NotYet
from remediator.kube.wire.client import Kind

Schema = dict[str, Any]

_DROPPED = ("title", "examples", "propertyNames")


class Column(NamedTuple):
    """One column of `kubectl get`; `wide` ones show with `-o wide`."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False


_READY = Column("READY", '.status.conditions[?(@.type=="Ready")].status')
_WHY = Column("WHY", '.status.conditions[?(@.type=="Ready")].reason')
_AGE = Column("AGE", ".metadata.creationTimestamp", "date")
_MESSAGE = Column("MESSAGE", ".status.message", wide=True)

_SHORT = {
    api.POLICY: "rp",
    api.CASE: "nr",
    api.OPERATION: "nop",
    api.TEMPLATE: "nopt",
    api.BUDGET: "ndb",
    api.TICKET: "tkt",
}
_COLUMNS: dict[Kind[Any], tuple[Column, ...]] = {
    api.POLICY: (
        Column("MODE", ".spec.mode"),
        Column("SEVERITY", ".spec.severity"),
        _READY,
        _WHY,
        _AGE,
    ),
    api.CASE: (
        Column("NODE", ".spec.nodeName"),
        Column("POLICY", ".spec.policyName"),
        Column("PHASE", ".status.phase"),
        Column("RUNG", ".status.rung", "integer"),
        Column("OPERATION", ".status.attempts[-1:].template"),
        Column("BLOCKED", ".status.blockedBy[0].reason"),
        _AGE,
        Column("REASON", ".status.reason", wide=True),
        _MESSAGE,
    ),
    api.OPERATION: (
        Column("NODE", ".spec.nodeName"),
        Column("TEMPLATE", ".spec.templateName"),
        Column("PHASE", ".status.phase"),
        Column("LEFT", ".status.drain.left", "integer"),
        _AGE,
        Column("EVICTED", ".status.drain.evicted", "integer", wide=True),
        Column("BLOCKER", ".status.drain.blocked[0].pod", wide=True),
        _MESSAGE,
    ),
    api.TEMPLATE: (
        Column("RUN-ON", ".spec.runOn"),
        Column("STRATEGY", ".spec.drain.strategy"),
        Column("TIMEOUT", ".spec.timeout"),
        _AGE,
    ),
    api.BUDGET: (
        Column("MAX", ".spec.maxUnavailable"),
        Column("MIN", ".spec.minAvailable"),
        Column("TOTAL", ".status.total", "integer"),
        Column("UNAVAILABLE", ".status.unavailable", "integer"),
        Column("ALLOWED", ".status.allowed", "integer"),
        _AGE,
    ),
    api.TICKET: (
        Column("ABOUT", ".spec.subject.kind"),
        Column("NODE", ".spec.subject.nodeName"),
        Column("PHASE", ".status.phase"),
        Column("ISSUE", ".status.issue.number", "integer"),
        Column("SYNCED", '.status.conditions[?(@.type=="Synced")].status'),
        _AGE,
        Column("REPOSITORY", ".status.issue.repository", wide=True),
        Column("CLOSED-BY", ".status.closedBy", wide=True),
    ),
}
# An operation's name becomes the value of a Pod label.
_NAME_RULES = {
    api.TEMPLATE: [{"rule": "self.metadata.name.size() <= 63", "message": "the name must have at most 63 characters"}]
}


def structural(schema: Mapping[str, Any], defs: Mapping[str, Schema], above: tuple[str, ...] = ()) -> Schema:
    """One JSON Schema of msgspec as a structural one: references inlined, null and empty defaults left out.

    Raises ValueError for what a CRD cannot say: recursion, and unions other than integer or string.
    """
    found = {key: value for key, value in schema.items() if key not in _DROPPED}
    if reference := found.pop("$ref", None):
        name = reference.rsplit("/", 1)[-1]
        if name in above:
            raise ValueError(f"{name} contains itself")
        return _settled(structural(defs[name], defs, (*above, name)) | found)
    if options := found.pop("anyOf", None):
        return structural(_union([option for option in options if option.get("type") != "null"]) | found, defs, above)
    if "enum" in found:
        found |= {"type": "string", "enum": [value for value in found["enum"] if value]}
    if "properties" in found:
        found["properties"] = {key: structural(part, defs, above) for key, part in found["properties"].items()}
    for inner in ("items", "additionalProperties"):
        if isinstance(found.get(inner), dict) and not found.get("x-kubernetes-int-or-string"):
            found[inner] = structural(found[inner], defs, above)
    if not found.get("required", True):
        del found["required"]
    return _settled(found)


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


def crd(kind: Kind[Any]) -> dict[str, Any]:
    """The CustomResourceDefinition of one of our kinds."""
    full = f"{kind.plural}.{kind.group}"
    names = {"kind": kind.name, "listKind": f"{kind.name}List", "plural": kind.plural, "singular": kind.name.lower()}
    root = _root(kind)
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        **({"subresources": {"status": {}}} if "status" in root["properties"] else {}),
        "additionalPrinterColumns": [_column(column) for column in _COLUMNS[kind]],
        "schema": {"openAPIV3Schema": root},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": full, "labels": {"app.kubernetes.io/name": "remediator"}},
        "spec": {
            "group": kind.group,
            "scope": "Cluster",
            "names": names | {"shortNames": [_SHORT[kind]], "categories": ["remediator"]},
            "versions": [version],
        },
    }


def _root(kind: Kind[Any]) -> Schema:
    drawn = msgspec.json.schema(kind.type)
    root = structural({"$ref": drawn["$ref"]}, drawn["$defs"])
    root["properties"]["metadata"] = {"type": "object"}
    root["required"] = ["spec"]
    for row in NOT_YET:
        if row.kind == kind.name:
            _refuse(root, row)
    return root | ({"x-kubernetes-validations": _NAME_RULES[kind]} if kind in _NAME_RULES else {})


def _refuse(root: Schema, row: NotYet) -> None:
    """Let the schema know what is not supported yet, and the rule that refuses it."""
    place = root
    for name in row.parents:
        place = place["properties"][name.removesuffix("[]")]
        place = place["items"] if name.endswith("[]") else place
    known = deepcopy(row.schema) or place["properties"][row.field]  # YAML writes one object twice as an anchor
    values = {"enum": sorted({*known["enum"], *row.values})} if row.values else {}
    place["properties"][row.field] = {**known, "description": row.explained(known.get("description", "")), **values}
    place["x-kubernetes-validations"] = [*place.get("x-kubernetes-validations", ()), row.rule.validation]


def _column(column: Column) -> dict[str, Any]:
    shown = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return shown | ({"priority": 1} if column.wide else {})


def crds() -> list[dict[str, Any]]:
    """All CustomResourceDefinitions, as an API server takes them."""
    return [crd(kind) for kind in api.KINDS]


def render() -> dict[str, str]:
    """File name → YAML of every CustomResourceDefinition, as they lie in deploy/crds."""
    return {f"{found['spec']['names']['plural']}.yaml": _yaml(found) for found in crds()}


def _yaml(found: dict[str, Any]) -> str:
    text = yaml.safe_dump(found, sort_keys=False, width=120, allow_unicode=True)
    return f"# Made by `remediator crds` from remediator/kube/api; change the types, not this file.\n{text}"
