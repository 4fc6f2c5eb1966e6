"""Merge patches: a field that is left out is not changed, null removes a field, and a list is replaced completely."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from remediator.kube.api.common import Base

Body = dict[str, Any]


class MetaPatch(Base, frozen=True, kw_only=True):
    """Changes of metadata. With `resource_version` the whole patch is refused if the object has moved since, with `uid`
    if it is another one of that name.
    """

    resource_version: str | UnsetType = UNSET
    uid: str | UnsetType = UNSET
    annotations: Mapping[str, str | None] | UnsetType = UNSET
    labels: Mapping[str, str | None] | UnsetType = UNSET
    finalizers: tuple[str, ...] | UnsetType | None = UNSET


class MergePatch(Base, frozen=True, kw_only=True):
    """A merge patch of an object of any kind."""

    metadata: MetaPatch | UnsetType = UNSET
    spec: Any = UNSET
    status: Any = UNSET


def whole(value: msgspec.Struct, theirs: Collection[str] = ()) -> Body:
    """A merge patch after which every field is as in `value`: null for what is at its default, in structs within, too.

    `theirs` are attributes that somebody else writes; they are left alone.
    """
    body: Body = msgspec.to_builtins(value)
    for attribute, name in _names(type(value)):
        inner = getattr(value, attribute)
        if attribute in theirs:
            body.pop(name, None)
        elif isinstance(inner, msgspec.Struct):
            body[name] = whole(inner)
        else:
            body.setdefault(name, None)
    return body


@cache
def _names(type_: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, field.encode_name) for field in msgspec.structs.fields(type_))
