"""Whether a value is already as its schema wants it, in one walk: nearly every value is."""

from typing import Any

from remediator.kube.manifests.schema.content import METADATA
from remediator.kube.manifests.schema.limits import exceeded
from remediator.kube.manifests.schema.node import SchemaNode


def fits(value: Any, node: SchemaNode) -> bool:
    """Whether `prune` and `fill` would change nothing of a value, and `faults` finds nothing.

    False says only that this is not certain.
    """
    kind = value.__class__
    if kind is node.leaf:
        return True
    if kind is node.holder:
        return _fields_fit(value, node) if kind is dict else _items_fit(value, node)
    if value is None or node.alternatives or not node.takes(value) or (node.enum and value not in node.enum):
        return False
    if node.limits and any(exceeded(value, node.limits)):
        return False
    if isinstance(value, dict):
        return _fields_fit(value, node)
    return not isinstance(value, list) or _items_fit(value, node)


def _fields_fit(value: dict[str, Any], node: SchemaNode) -> bool:
    for key in node.must:
        if key not in value:
            return False
    properties, additional, loose = node.properties, node.additional, node.preserve
    for key, item in value.items():
        part = properties.get(key) or additional
        if part is None:
            if not (loose or (node.embedded and key in ("apiVersion", "kind", "metadata"))):
                return False
        elif item.__class__ is not part.leaf and not fits(item, part):
            return False
    return not node.embedded or _is_metadata(value.get("metadata", {}))


def _is_metadata(value: Any) -> bool:
    return isinstance(value, dict) and METADATA.issuperset(value)


def _items_fit(value: list[Any], node: SchemaNode) -> bool:
    if node.repeated(value):
        return False
    items = node.items
    return items is None or all(item.__class__ is items.leaf or fits(item, items) for item in value)
