"""What an API server removes from an object and adds to it before it validates the object."""

from copy import deepcopy
from typing import Any

from remediator.kube.manifests.schema.node import ABSENT, Node
from remediator.kube.manifests.schema.values import below

_METADATA = frozenset(
    {"name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "labels"}
    | {"annotations", "finalizers", "ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds"}
    | {"managedFields", "selfLink"}
)


def prune(value: Any, node: Node, path: str = "") -> list[str]:
    """Remove in place what the schema does not name; the answer is the paths of what was removed."""
    if isinstance(value, list) and node.items is not None:
        return [gone for at, item in enumerate(value) for gone in prune(item, node.items, below(path, at))]
    if not isinstance(value, dict):
        return []
    removed = []
    for key in list(value):
        where = below(path, key)
        if node.embedded and key in ("apiVersion", "kind", "metadata"):
            removed += _prune_metadata(value[key], where) if key == "metadata" else []
        elif (known := node.child(key)) is not None:
            removed += prune(value[key], known, where) if isinstance(value[key], (dict, list)) else []
        elif not node.preserve:
            del value[key]
            removed.append(where)
    return removed


def _prune_metadata(metadata: Any, path: str) -> list[str]:
    unknown = [key for key in metadata if key not in _METADATA] if isinstance(metadata, dict) else []
    for key in unknown:
        del metadata[key]
    return [below(path, key) for key in unknown]


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
    for key, known in node.properties.items():
        if key not in value and known.default is not ABSENT:
            value[key] = deepcopy(known.default)
    for key, item in value.items():
        if isinstance(item, (dict, list)) and (part := node.child(key)) is not None:
            fill(item, part)
