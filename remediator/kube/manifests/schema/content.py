"""What an API server removes from an object and adds to it before it validates the object."""

from collections.abc import Collection
from copy import deepcopy
from typing import Any

from remediator.kube.manifests.schema.node import SchemaNode
from remediator.kube.manifests.schema.values import Steps, at

METADATA = frozenset(
    {"name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "labels"}
    | {"annotations", "finalizers", "ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds"}
    | {"managedFields", "selfLink"}
)


def prune(value: Any, node: SchemaNode, path: str = "") -> list[str]:
    """Remove in place what the schema does not name; the answer is the paths of what was removed."""
    return [at(path, steps) for steps, _ in _pruned(value, node)]


def strays(value: Any, node: SchemaNode) -> list[tuple[str, frozenset[str]]]:
    """As `prune`; beside each path the names that the schema has there."""
    return [(at("", steps), frozenset(names)) for steps, names in _pruned(value, node)]


# The way to what was removed, and what the schema names there.
_Removed = tuple[Steps, Collection[str]]


def _pruned(value: Any, node: SchemaNode) -> list[_Removed]:
    """The way to each thing that was removed: hardly ever anything is, so no path is put together before."""
    removed: list[_Removed] = []
    if isinstance(value, list) and node.items is not None:
        for number, item in enumerate(value):
            removed += [((number, *steps), names) for steps, names in _pruned(item, node.items)]
    elif isinstance(value, dict):
        for key in list(value):
            removed += [((key, *steps), names) for steps, names in _pruned_field(value, key, node)]
    return removed


def _pruned_field(value: dict[str, Any], key: str, node: SchemaNode) -> list[_Removed]:
    if node.embedded and key in ("apiVersion", "kind", "metadata"):
        return _pruned_metadata(value[key]) if key == "metadata" else []
    if (known := node.child(key)) is not None:
        return _pruned(value[key], known) if isinstance(value[key], (dict, list)) else []
    if node.preserve:
        return []
    del value[key]
    return [((), node.properties)]


def _pruned_metadata(metadata: Any) -> list[_Removed]:
    unknown = [key for key in metadata if key not in METADATA] if isinstance(metadata, dict) else []
    for key in unknown:
        del metadata[key]
    return [((key,), METADATA) for key in unknown]


def fill(value: Any, node: SchemaNode) -> None:
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
    for key, default in node.defaults:
        if key not in value:
            value[key] = deepcopy(default)
    for key, item in value.items():
        if isinstance(item, (dict, list)) and (part := node.child(key)) is not None:
            fill(item, part)
