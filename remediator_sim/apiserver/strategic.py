"""Strategic merge patch for the built-in kinds: lists with a merge key are merged item by item."""

from typing import Any

# The merge key of a list field, by the field's name; the innermost part of the path that matches wins.
MERGE_KEYS: dict[str, str] = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "ports": "containerPort",
    "resourceClaims": "name",
    "secrets": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
    "webhooks": "name",
}
# Lists of plain values that are merged as sets.
SETS = frozenset({"finalizers", "podCIDRs"})
_DIRECTIVES = ("$setElementOrder/", "$deleteFromPrimitiveList/", "$retainKeys")


def apply(target: Any, patch: dict[str, Any]) -> dict[str, Any]:
    """The patched object; `target` is left as it was."""
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    merged = dict(target) if isinstance(target, dict) else {}
    if "$retainKeys" in patch:
        merged = {key: value for key, value in merged.items() if key in patch["$retainKeys"]}
    for key, value in patch.items():
        if isinstance(value, str) and key[:1] != "$":
            merged[key] = value
        else:
            _apply_field(merged, key, value)
    for key, value in patch.items():
        if key.startswith("$setElementOrder/"):
            _reorder(merged, key.partition("/")[2], value)
    return merged


def _apply_field(merged: dict[str, Any], key: str, value: Any) -> None:
    if key.startswith("$deleteFromPrimitiveList/"):
        field = key.partition("/")[2]
        merged[field] = [item for item in merged.get(field) or [] if item not in value]
    elif key == "$patch" or key.startswith(_DIRECTIVES):
        return
    elif value is None or (isinstance(value, dict) and value.get("$patch") == "delete"):
        merged.pop(key, None)
    elif isinstance(value, dict):
        merged[key] = apply(merged.get(key), value)
    elif isinstance(value, list):
        merged[key] = _merge_list(key, merged.get(key) or [], value)
    else:
        merged[key] = value


def _merge_key(field: str, items: list[Any]) -> str | None:
    key = MERGE_KEYS.get(field)
    # A Service's ports have no containerPort; their key is `port`.
    if field == "ports" and not any(isinstance(item, dict) and "containerPort" in item for item in items):
        return "port"
    return key


def _merge_list(field: str, old: list[Any], patch: list[Any]) -> list[Any]:
    if field in SETS:
        return patch + [item for item in old if item not in patch]
    key = _merge_key(field, [*old, *patch])
    if key is None:
        return patch
    if any(item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if "$patch" not in item]
    merged = {item.get(key): item for item in old}
    for item in patch:
        if item.get("$patch") == "delete":
            merged.pop(item.get(key), None)
        else:
            merged[item.get(key)] = apply(merged.get(item.get(key)), item)
    return list(merged.values())


def _reorder(merged: dict[str, Any], field: str, order: list[Any]) -> None:
    items = merged.get(field)
    if not isinstance(items, list):
        return
    key = _merge_key(field, items)
    ranks = [item.get(key) if isinstance(item, dict) else item for item in order]
    known = [item for item in items if _ident(item, key) in ranks]
    rest = [item for item in items if _ident(item, key) not in ranks]
    merged[field] = sorted(known, key=lambda item: ranks.index(_ident(item, key))) + rest


def _ident(item: Any, key: str | None) -> Any:
    return item.get(key) if isinstance(item, dict) and key else item
