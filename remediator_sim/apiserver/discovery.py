"""Discovery: which groups, versions and kinds are served, in the legacy and in the aggregated form."""

from collections.abc import Iterable
from typing import Any

from remediator_sim.apiserver import status
from remediator_sim.apiserver.resources import ALL_VERBS, Registry, Resource
from remediator_sim.apiserver.status import Obj
from remediator_sim.apiserver.version import KUBERNETES

VERSION: Obj = {
    "major": KUBERNETES.removeprefix("v").split(".")[0],
    "minor": KUBERNETES.split(".")[1],
    "gitVersion": KUBERNETES,
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
AGGREGATED = "apidiscovery.k8s.io"


def _subresources(resource: Resource) -> Iterable[tuple[str, str, str, list[str]]]:
    """(name, kind, group/version, verbs) of each subresource."""
    if resource.status:
        yield "status", resource.kind, "", ["get", "patch", "update"]
    for name, kind, api_version in resource.subresources:
        yield name, kind, api_version, ["create"]


def legacy_groups(registry: Registry) -> Obj:
    """The answer of /apis."""
    groups = [_group(name, versions) for name, versions in registry.groups().items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def core_versions() -> Obj:
    """The answer of /api."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group(registry: Registry, name: str) -> Obj:
    """The answer of /apis/<group>. Raises 404."""
    versions = registry.groups().get(name)
    if not versions:
        raise status.no_such_path()
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def _group(name: str, versions: list[str]) -> Obj:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def resources(registry: Registry, group_name: str, version: str) -> Obj:
    """The answer of /api/v1 or /apis/<group>/<version>. Raises 404."""
    rows = [row for row in registry.rows() if (row.group, row.version) == (group_name, version)]
    if not rows:
        raise status.no_such_path()
    listed = [entry for row in rows for entry in _legacy(row)]
    name = f"{group_name}/{version}" if group_name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": listed}


def _legacy(row: Resource) -> Iterable[Obj]:
    common = {"namespaced": row.namespaced, "singularName": ""}
    entry: Obj = {**common, "name": row.plural, "singularName": row.singular or row.kind.lower(), "kind": row.kind}
    entry["verbs"] = list(ALL_VERBS)
    for key, values in (("shortNames", row.short), ("categories", row.categories)):
        if values:
            entry[key] = list(values)
    yield entry
    for name, kind, api_version, verbs in _subresources(row):
        group_name, _, version = api_version.rpartition("/")
        where = {"group": group_name, "version": version} if api_version and group_name != row.group else {}
        yield {**common, "name": f"{row.plural}/{name}", "kind": kind, **where, "verbs": verbs}


def aggregated(registry: Registry, *, core: bool, version: str) -> Obj:
    """The answer of /api (core) or /apis to a client that asks for everything at once."""
    groups = [
        {"metadata": {"name": name} if name else {}, "versions": [_version(registry, name, one) for one in versions]}
        for name, versions in registry.groups().items()
        if (name == "") is core
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": f"{AGGREGATED}/{version}", "metadata": {}, "items": groups}


def _version(registry: Registry, group_name: str, version: str) -> Obj:
    rows = [row for row in registry.rows() if (row.group, row.version) == (group_name, version)]
    return {"version": version, "resources": [_modern(row) for row in rows], "freshness": "Current"}


def _kind(row: Resource, kind: str, api_version: str) -> Obj:
    group_name, _, version = (api_version or row.api_version).rpartition("/")
    return {"group": group_name, "version": version, "kind": kind}


def _modern(row: Resource) -> Obj:
    entry: dict[str, Any] = {
        "resource": row.plural,
        "responseKind": _kind(row, row.kind, ""),
        "scope": "Namespaced" if row.namespaced else "Cluster",
        "singularResource": row.singular or row.kind.lower(),
        "verbs": list(ALL_VERBS),
    }
    for key, values in (("shortNames", row.short), ("categories", row.categories)):
        if values:
            entry[key] = list(values)
    below = [
        {"subresource": name, "responseKind": _kind(row, kind, api_version), "verbs": verbs}
        for name, kind, api_version, verbs in _subresources(row)
    ]
    return {**entry, "subresources": below} if below else entry
