"""The definitions of our kinds in a cluster are made, and brought up to this version."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from remediator.kube import api
from remediator.kube.api.common import Base
from remediator.kube.manifests import crd
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind


class _Definition(Base, frozen=True, kw_only=True):
    metadata: dict[str, Any]
    spec: dict[str, Any] = msgspec.field(default_factory=dict)


DEFINITION = Kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", _Definition)


async def apply(client: Client) -> list[str]:
    """What was done about each, in words. One that knows more than this version stays: nothing it holds is lost."""
    return [await _apply(client, crd.crd(kind)) for kind in api.KINDS]


async def _apply(client: Client, wanted: dict[str, Any]) -> str:
    name = wanted["metadata"]["name"]
    try:
        live = await client.get(DEFINITION, name)
    except errors.NotFound:
        await client.create(DEFINITION, wanted)
        return f"{name}: created"
    newer = sorted(_fields(live.spec) - _fields(wanted["spec"]))
    if newer:
        return f"{name}: left alone, since it is of a newer version: it has {', '.join(newer[:3])}"
    labels = {**live.metadata.get("labels", {}), **wanted["metadata"].get("labels", {})}
    await client.replace(DEFINITION, name, {**wanted, "metadata": {**live.metadata, "labels": labels}})
    return f"{name}: up to date"


def _fields(spec: Mapping[str, Any]) -> set[str]:
    return {path for version in spec["versions"] for path in below("", version["schema"]["openAPIV3Schema"])}


def below(path: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """The paths of all fields that a schema knows, below a path."""
    return (f"{at}.{name}" for at, part in parts(path, schema) for name in part.get("properties", {}))


def parts(path: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A schema and all within it, each with the path of what it describes: items have that of their list."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from parts(f"{path}.{name}", inner)
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), Mapping):
            yield from parts(path, schema[word])
