"""Lists of our objects in which one that cannot be read spoils no other."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from remediator.kube.api import encode
from remediator.kube.wire.client import Client, Kind

W = TypeVar("W")
F = TypeVar("F")


async def readable(
    client: Client, kind: Kind[W], project: Callable[[W], F], word: str, labels: str = ""
) -> tuple[list[F], list[str]]:
    """What `project` makes of all that can be read, and a sentence on each other: `word` names one. Raises ApiError."""
    raw_kind: Kind[dict[str, Any]] = Kind(kind.group, kind.version, kind.plural, "", dict)
    facts, problems = [], []
    for raw in await client.list_all(raw_kind, labels=labels):
        try:
            facts.append(project(msgspec.convert(raw, kind.type)))
        except (msgspec.ValidationError, ValueError) as wrong:
            problems.append(f"{word} {encode.name_of(raw)} cannot be read: {wrong}")
    return facts, problems
