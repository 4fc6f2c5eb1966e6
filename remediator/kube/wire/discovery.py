"""Which kinds an API server has, by one request for the core and one for all groups (Kubernetes 1.30 or newer)."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from remediator.kube.wire.client import Client, check, decode

FORM = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Served(NamedTuple):
    """One kind, in the version that its group prefers."""

    group: str
    version: str
    plural: str
    name: str
    namespaced: bool
    verbs: frozenset[str]


class _Named(msgspec.Struct):
    name: str = ""


class _Kind(msgspec.Struct):
    kind: str = ""


class _Resource(msgspec.Struct, rename="camel"):
    resource: str
    scope: str
    response_kind: _Kind = msgspec.field(default_factory=_Kind)
    verbs: tuple[str, ...] = ()


class _Version(msgspec.Struct):
    version: str
    resources: tuple[_Resource, ...] = ()


class _ApiGroup(msgspec.Struct):
    metadata: _Named = msgspec.field(default_factory=_Named)
    versions: tuple[_Version, ...] = ()


class _ApiGroups(msgspec.Struct):
    items: tuple[_ApiGroup, ...]


async def served(client: Client) -> list[Served]:
    """Every kind, each once. Raises ApiError."""
    kinds: list[Served] = []
    for path in ("/api", "/apis"):
        reply = check(await client.transport.request("GET", path, accept=FORM))
        kinds += _preferred(decode(reply.body, _ApiGroups).items)
    return kinds


def _preferred(groups: Iterable[_ApiGroup]) -> Iterator[Served]:
    for group in groups:
        seen: set[str] = set()
        for version in group.versions:  # the preferred one first
            for row in version.resources:
                if row.resource not in seen:
                    seen.add(row.resource)
                    yield Served(
                        group.metadata.name,
                        version.version,
                        row.resource,
                        row.response_kind.kind,
                        row.scope == "Namespaced",
                        frozenset(row.verbs),
                    )
