"""CustomResourceDefinitions: from the definition to the rows of the registry, and the conditions that tell of it."""

import re
from collections.abc import Iterator

from remediator.kube.manifests import schema
from remediator_sim.apiserver import columns, status
from remediator_sim.apiserver.cluster import Cluster
from remediator_sim.apiserver.resources import Resource
from remediator_sim.apiserver.status import Obj, StatusCause
from remediator_sim.apiserver.store import Entry

STORAGE = "customresourcedefinitions.apiextensions.k8s.io"


def begin(obj: Obj) -> None:
    """Complete the names of a new definition."""
    spec = obj.get("spec") or {}
    names = spec.get("names") or {}
    if names.get("kind"):
        names.setdefault("listKind", f"{names['kind']}List")
        names.setdefault("singular", names["kind"].lower())
    spec.setdefault("conversion", {"strategy": "None"})
    stored = [version["name"] for version in spec.get("versions") or [] if version.get("storage")]
    obj["status"] = {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored}


def check(obj: Obj, old: Obj | None) -> Iterator[StatusCause]:
    """Causes to refuse a definition: missing names, no schema, a pattern, rule or column that cannot be read."""
    spec = obj.get("spec") or {}
    names, versions = spec.get("names") or {}, spec.get("versions") or []
    for field in ("group", "scope", "versions"):
        if not spec.get(field):
            yield status.required(f"spec.{field}")
    for field in ("plural", "kind"):
        if not names.get(field):
            yield status.required(f"spec.names.{field}")
    wanted = f"{names.get('plural')}.{spec.get('group')}"
    if obj["metadata"].get("name") != wanted:
        yield status.wrong("metadata.name", obj["metadata"].get("name"), 'must be spec.names.plural+"."+spec.group')
    if versions and sum(bool(version.get("storage")) for version in versions) != 1:
        yield status.wrong("spec.versions", "array", "must have exactly one version marked as storage version")
    for at, version in enumerate(versions):
        yield from _check_version(version, f"spec.versions[{at}]")


def _check_version(version: Obj, path: str) -> Iterator[StatusCause]:
    if not version.get("name"):
        yield status.required(f"{path}.name")
    raw = (version.get("schema") or {}).get("openAPIV3Schema")
    if raw is None:
        yield status.required(f"{path}.schema.openAPIV3Schema", "schemas are required")
        return
    yield from _check_structure(raw, f"{path}.schema.openAPIV3Schema")
    try:
        yield from _check_rules(schema.build(raw, root=True), f"{path}.schema.openAPIV3Schema")
    except (schema.RuleError, re.error) as error:
        yield status.wrong(f"{path}.schema.openAPIV3Schema", "schema", str(error))
    try:
        for raw_column in version.get("additionalPrinterColumns") or []:
            columns.custom(raw_column)
    except (ValueError, KeyError) as error:
        yield status.wrong(f"{path}.additionalPrinterColumns", "column", str(error))


def _check_rules(node: schema.SchemaNode, path: str) -> Iterator[StatusCause]:
    for at, rule in enumerate(node.rules):
        missing = schema.undefined(rule.text, node)
        if missing is not None:
            why = f"compilation failed: ERROR: <input>: undefined field '{missing}'"
            yield status.wrong(f"{path}.x-kubernetes-validations[{at}].rule", rule.text, why)
    for key, below in node.properties.items():
        yield from _check_rules(below, f"{path}.properties[{key}]")
    for word, one in (("items", node.items), ("additionalProperties", node.additional)):
        if one is not None:
            yield from _check_rules(one, f"{path}.{word}")


def _check_structure(raw: Obj, path: str) -> Iterator[StatusCause]:
    """A structural schema names the type of every place."""
    free = raw.get("x-kubernetes-int-or-string") or raw.get("x-kubernetes-preserve-unknown-fields")
    if not raw.get("type") and not free:
        yield status.required(f"{path}.type", "must not be empty for specified object fields")
    for key, below in (raw.get("properties") or {}).items():
        yield from _check_structure(below, f"{path}.properties[{key}]")
    for word in ("items", "additionalProperties"):
        if isinstance(raw.get(word), dict):
            yield from _check_structure(raw[word], f"{path}.{word}")


def rows(obj: Obj) -> list[Resource]:
    """One row for each served version."""
    spec, names = obj["spec"], obj["spec"]["names"]
    storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
    return [
        _row(spec, names, version, "" if version["name"] == storage else f"{spec['group']}/{storage}")
        for version in spec["versions"]
        if version.get("served")
    ]


def _row(spec: Obj, names: Obj, version: Obj, stored_as: str) -> Resource:
    return Resource(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        singular=names.get("singular", ""),
        namespaced=spec["scope"] == "Namespaced",
        short=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        status="status" in (version.get("subresources") or {}),
        generation=True,
        blind_put=False,
        custom=True,
        schema=schema.build(version["schema"]["openAPIV3Schema"], root=True),
        columns=tuple(version.get("additionalPrinterColumns") or ()),
        selectable=frozenset(field["jsonPath"].lstrip(".") for field in version.get("selectableFields") or ()),
        stored_as=stored_as,
    )


def follow(cluster: Cluster, old: Entry | None, new: Entry | None) -> None:
    """Serve what a definition says as soon as it is stored; take the kind and its objects away with it."""
    entry = new or old
    if entry is None or (old and new and old.obj["spec"] == new.obj["spec"]):
        return
    spec = entry.obj["spec"]
    group, plural = spec["group"], spec["names"]["plural"]
    if new is None:
        storage = f"{plural}.{group}"
        for gone in list(cluster.store.collection(storage).scan("")):
            cluster.remove(storage, gone.obj)
        cluster.registry.serve(group, plural, [])
        cluster.store.drop(storage)
        return
    cluster.registry.serve(group, plural, rows(new.obj))
    cluster.put(STORAGE, {**new.copy(), "status": _established(cluster, new.obj)})


_CONDITIONS = (
    ("NamesAccepted", "NoConflicts", "no conflicts found"),
    ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
)


def _established(cluster: Cluster, obj: Obj) -> Obj:
    before = obj.get("status") or {}
    conditions = [
        {"type": type_, "status": "True", "reason": reason, "message": message, "lastTransitionTime": cluster.stamp()}
        for type_, reason, message in _CONDITIONS
    ]
    stored = [version["name"] for version in obj["spec"]["versions"] if version.get("storage")]
    return {
        "conditions": before.get("conditions") or conditions,
        "acceptedNames": obj["spec"]["names"],
        "storedVersions": list(dict.fromkeys([*(before.get("storedVersions") or []), *stored])),
    }
