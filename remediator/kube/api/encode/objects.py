"""What every encoder uses, and what is the same for objects of any kind."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from remediator.kube.api.patch import Body, MergePatch, MetaPatch, whole


def body(value: msgspec.Struct) -> Body:
    """A value as JSON, for bodies that are merged or looked at before they are sent."""
    encoded: Body = msgspec.json.decode(msgspec.json.encode(value))
    return encoded


def name_of(written: Mapping[str, Any]) -> str:
    """The name that an object of ours is to be created under."""
    name: str = written["metadata"]["name"]
    return name


def status_patch(version: str, status: msgspec.Struct, *theirs: str) -> Body:
    """A merge patch of the whole status but for what others write, refused if the object has moved since we read it."""
    return body(MergePatch(metadata=MetaPatch(resource_version=version), status=whole(status, theirs)))


def second(at: datetime) -> datetime:
    """A time as Kubernetes writes it: in whole seconds."""
    return at.replace(microsecond=0)


def second_or_none(at: datetime | None) -> datetime | None:
    """The same of a time that there may not be."""
    return at.replace(microsecond=0) if at else None


def annotations(values: Mapping[str, str | None]) -> Body:
    """A merge patch of these annotations alone; None removes one."""
    return body(MergePatch(metadata=MetaPatch(annotations=values)))


def with_finalizer(version: str, finalizers: Iterable[str], ours: str) -> Body:
    """A merge patch that puts our finalizer beside those of others."""
    return body(MergePatch(metadata=MetaPatch(resource_version=version, finalizers=(*finalizers, ours))))


def without_finalizer(version: str, finalizers: Iterable[str], ours: str) -> Body:
    """A merge patch that takes our finalizer off and leaves those of others."""
    kept = tuple(finalizer for finalizer in finalizers if finalizer != ours)
    return body(MergePatch(metadata=MetaPatch(resource_version=version, finalizers=kept or None)))
