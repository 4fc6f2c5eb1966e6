"""The types of `kube.api` as CustomResourceDefinitions.

`msgspec.json.schema` speaks JSON Schema; `structural` translates it, `columns` says what `kubectl get` shows.
"""

from typing import Any

import msgspec
import yaml

from remediator.kube import api
from remediator.kube.api.common import Rule
from remediator.kube.api.node_inventory import SAME_NAME
from remediator.kube.api.remediation import RELEASED_ONCE_ESCALATED
from remediator.kube.manifests.columns import COLUMNS, SHORT, Column
from remediator.kube.manifests.structural import Schema, structural
from remediator.kube.wire.client import Kind

# An operation's name becomes the value of a Pod label.
_ROOT_RULES = {
    api.TEMPLATE: (
        Rule("self.metadata.name.size() <= 63", "the name must have at most 63 characters; shorten it"),
        Rule(
            "!has(self.spec.after) || !self.spec.after.exists(name, name == self.metadata.name)",
            "names this operation itself, which would run a second time; remove it",
            ".spec.after",
        ),
    ),
    api.INVENTORY: (SAME_NAME,),
    api.CASE: (RELEASED_ONCE_ESCALATED,),
}

# What a list may ask for by a field selector: of one node, or what goes on. Kubernetes before 1.31 does not know these.
SELECTABLE: dict[Kind[Any], tuple[str, ...]] = {
    api.CASE: (".spec.nodeName", ".status.phase"),
    api.OPERATION: (".spec.nodeName",),
}


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
        "additionalPrinterColumns": [_column(column) for column in COLUMNS[kind]],
        "schema": {"openAPIV3Schema": root},
        **({"selectableFields": [{"jsonPath": path} for path in SELECTABLE[kind]]} if kind in SELECTABLE else {}),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": full, "labels": {"app.kubernetes.io/name": "remediator"}},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": names | {"shortNames": [SHORT[kind]], "categories": ["remediator"]},
            "versions": [version],
        },
    }


def _root(kind: Kind[Any]) -> Schema:
    drawn = msgspec.json.schema(kind.type)
    root = structural({"$ref": drawn["$ref"]}, drawn["$defs"])
    root["properties"]["metadata"] = {"type": "object"}
    root["required"] = ["spec"]
    held = [rule.validation for rule in _ROOT_RULES.get(kind, ())]
    return root | ({"x-kubernetes-validations": held} if held else {})


def _column(column: Column) -> dict[str, Any]:
    shown = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return shown | ({"priority": 1} if column.wide else {})


def crds() -> list[dict[str, Any]]:
    """All CustomResourceDefinitions, as an API server takes them."""
    return [crd(kind) for kind in api.KINDS]


def render() -> dict[str, str]:
    """File name → YAML of every CustomResourceDefinition, as they lie in deploy/crds."""
    return {f"{manifest['spec']['names']['plural']}.yaml": _yaml(manifest) for manifest in crds()}


def _yaml(manifest: dict[str, Any]) -> str:
    text = yaml.safe_dump(manifest, sort_keys=False, width=120, allow_unicode=True)
    return f"# Made by `remediator crds` from remediator/kube/api; change the types, not this file.\n{text}"
