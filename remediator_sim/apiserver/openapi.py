"""OpenAPI v3, as far as kubectl needs it: whether strict validation is offered, and what `explain` tells of a kind."""

from typing import Any

from remediator_sim.apiserver import builtin, status
from remediator_sim.apiserver.resources import Registry, Resource
from remediator_sim.apiserver.status import Obj
from remediator_sim.apiserver.version import KUBERNETES

# kubectl falls back on OpenAPI v2, which it reads as protobuf only: a document of that form that describes nothing.
V2_MEDIA = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_INFO = b"\x0a\x0aKubernetes" + b"\x12" + bytes([len(KUBERNETES)]) + KUBERNETES.encode()
V2_EMPTY = b"\x0a\x032.0" + b"\x12" + bytes([len(_INFO)]) + _INFO

_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_QUERY = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in ("dryRun", "fieldValidation")]


def index(registry: Registry) -> Obj:
    """The answer of /openapi/v3: where the document of each group and version lies."""
    places = [_place(name, version) for name, versions in registry.groups().items() for version in versions]
    return {"paths": {place: {"serverRelativeURL": f"/openapi/v3/{place}"} for place in places}}


def _place(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def document(registry: Registry, place: str) -> Obj:
    """The document of one group and version. Raises 404."""
    rows = [row for row in registry.rows() if _place(row.group, row.version) == place]
    if not rows:
        raise status.no_such_path()
    schemas: Obj = {_META: {"type": "object", "description": "Metadata that every object has."}}
    paths: dict[str, Any] = {}
    for row in rows:
        schemas[_name(row)] = _schema(row)
        paths |= _paths(row)
    info = {"title": "Kubernetes", "version": KUBERNETES}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _name(row: Resource) -> str:
    return ".".join([*reversed((row.group or "core").split(".")), row.version, row.kind])


def _gvk(row: Resource) -> Obj:
    return {"group": row.group, "version": row.version, "kind": row.kind}


def _schema(row: Resource) -> Obj:
    described = builtin.of(row)
    raw: Obj = described.raw if described is not None else {"type": "object"}
    properties = {
        "apiVersion": {"type": "string", "description": "The group and version of this form of the object."},
        "kind": {"type": "string", "description": "The kind of the object."},
        **(raw.get("properties") or {}),
        "metadata": {"allOf": [{"$ref": f"#/components/schemas/{_META}"}], "default": {}},
    }
    return {**raw, "properties": properties, "x-kubernetes-group-version-kind": [_gvk(row)]}


def _paths(row: Resource) -> Obj:
    root = f"/apis/{row.group}/{row.version}" if row.group else f"/api/{row.version}"
    scope = "/namespaces/{namespace}" if row.namespaced else ""
    collection = f"{root}{scope}/{row.plural}"
    reference = {"$ref": f"#/components/schemas/{_name(row)}"}
    answer = {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}}
    common = {"responses": answer, "x-kubernetes-group-version-kind": _gvk(row)}

    def verb(action: str, **more: Any) -> Obj:
        return {**common, **more, "x-kubernetes-action": action}

    return {
        collection: {"get": verb("list"), "post": verb("post", parameters=_QUERY)},
        collection + "/{name}": {
            "get": verb("get"),
            "put": verb("put", parameters=_QUERY),
            "patch": verb("patch", parameters=_QUERY),
            "delete": verb("delete"),
        },
    }
