"""The schemas of built-in kinds, read off the official client's models: fields and their types."""

import types
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin

from kubernetes.client import models

from remediator.kube.manifests.schema import SchemaNode
from remediator_sim.apiserver import status, validation
from remediator_sim.apiserver.resources import Resource
from remediator_sim.apiserver.status import Obj

# Where the client names a model in another way than V1<Kind>.
_MODELS = {("", "Event"): "CoreV1Event", ("events.k8s.io", "Event"): "EventsV1Event"}
_TYPES: dict[Any, str] = {str: "string", bytes: "string", datetime: "string"}
_TYPES |= {bool: "boolean", int: "integer", float: "number"}
# A quantity may also be written as a number; the client knows it as text.
_QUANTITIES = frozenset(("limits", "requests", "capacity", "allocatable", "hard", "overhead"))
# Described by itself, without end; checked elsewhere.
_OPEN = frozenset(("V1JSONSchemaProps",))


@cache
def schema_of(group: str, kind: str) -> SchemaNode | None:
    """The schema of a built-in kind, or None where the client knows no such kind."""
    model = getattr(models, _MODELS.get((group, kind), f"V1{kind}"), None)
    if model is None:
        return None
    node = _model(model)
    node.embedded = True
    return node


def of(resource: Resource) -> SchemaNode | None:
    """The schema of any kind."""
    return resource.schema if resource.custom else schema_of(resource.group, resource.kind)


@cache
def _model(model: Any) -> SchemaNode:
    if model.__name__ in _OPEN:
        return SchemaNode(type="object", preserve=True)
    fields = {name: (field, _node(field.annotation)) for name, field in _fields(model)}
    for name in _QUANTITIES & fields.keys():
        fields[name][1].additional = SchemaNode(preserve=True)
    described = {name: {**node.raw, "description": field.description or ""} for name, (field, node) in fields.items()}
    raw = {"type": "object", "description": (model.__doc__ or "").strip(), "properties": described}
    return SchemaNode(type="object", properties={name: node for name, (_, node) in fields.items()}, raw=raw)


def _fields(model: Any) -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        yield field.serialization_alias or name, field


def _node(annotation: Any) -> SchemaNode:
    """A fresh node for one annotation; what is not understood is left open."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _node(arguments[0])
    if origin in (Union, types.UnionType):
        return _union([argument for argument in arguments if argument is not type(None)])
    if origin is list:
        return SchemaNode(type="array", items=_node(arguments[0]), raw={"type": "array"})
    if origin is dict:
        return SchemaNode(type="object", additional=_node(arguments[1]), raw={"type": "object"})
    if hasattr(annotation, "model_fields"):
        return _model(annotation)
    type_ = _TYPES.get(annotation)
    return SchemaNode(type=type_, raw={"type": type_}) if type_ else SchemaNode(preserve=True)


def _union(choices: list[Any]) -> SchemaNode:
    nodes = [_node(choice) for choice in choices]
    same = {node.type for node in nodes}
    if len(nodes) == 1 or (len(same) == 1 and "" not in same):
        return nodes[0]
    return SchemaNode(
        int_or_string=same == {"integer", "string"}, preserve=True, raw={"x-kubernetes-int-or-string": True}
    )


def check_types(resource: Resource, obj: Obj, old: Any) -> None:
    """Refuse (400) a field of a built-in kind that has another type than it should."""
    node = schema_of(resource.group, resource.kind)
    if node is None:
        return
    wrong = [cause for cause in validation.check(obj, node, old) if cause.reason == "FieldValueTypeInvalid"]
    if wrong:
        kind = resource.kind
        start = f'{kind} in version "{resource.version}" cannot be handled as a {kind}: json: cannot unmarshal'
        raise status.bad_request(f"{start} {wrong[0].field}: {wrong[0].message}")
