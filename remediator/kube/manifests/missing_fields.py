"""Which fields of this version the definitions in a cluster do not have: what is written there, the server drops.

The server's OpenAPI document says it, which everybody with an account may read.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from remediator.core.missing_fields import WHOLE, Missing
from remediator.kube import api
from remediator.kube.manifests import crd
from remediator.kube.manifests.definitions import below, parts
from remediator.kube.runtime.turns import sliced
from remediator.kube.wire.client import Client, Kind, check, decode

PATH = f"/openapi/v3/apis/{api.API_VERSION}"


class _GroupKind(msgspec.Struct):
    kind: str


class _Schema(msgspec.Struct, rename={"kinds": "x-kubernetes-group-version-kind"}):
    properties: dict[str, Any] = {}
    kinds: tuple[_GroupKind, ...] = ()


class _Components(msgspec.Struct):
    schemas: dict[str, _Schema] = {}


class _Document(msgspec.Struct):
    components: _Components = msgspec.field(default_factory=_Components)


async def missing_fields(client: Client) -> Missing:
    """Of each kind that is served without some, the fields; of one under another only the upper. Raises ApiError.

    Of a kind that is not served, WHOLE.
    """
    reply = check(await client.transport.request("GET", PATH))
    schemas = decode(reply.body, _Document).components.schemas.values()
    served = {kind.kind: schema.properties for schema in schemas for kind in schema.kinds}
    missing: dict[str, tuple[str, ...]] = {}
    async for kind in sliced(api.KINDS, 1):  # a kind takes some milliseconds, the first time
        if fields := tuple(_missing(kind, served[kind.name])) if kind.name in served else (WHOLE,):
            missing[kind.name] = fields
    return missing


def _missing(kind: Kind[Any], properties: Mapping[str, Any]) -> Iterator[str]:
    schema = {"properties": properties}
    # A definition that somebody has edited may keep whatever is written.
    kept = tuple(f"{path}." for path, part in parts("", schema) if part.get("x-kubernetes-preserve-unknown-fields"))
    lacking = {path for path in _wanted(kind) - set(below("", schema)) if not path.startswith(kept)}
    return (path.lstrip(".") for path in sorted(lacking) if path.rpartition(".")[0] not in lacking)


@cache
def _wanted(kind: Kind[Any]) -> frozenset[str]:
    (version,) = crd.crd(kind)["spec"]["versions"]
    return frozenset(below("", version["schema"]["openAPIV3Schema"]))
