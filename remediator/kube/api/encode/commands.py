"""What users decide about a case in comments, in the fields that kubectl sets, and with their names."""

from collections.abc import Iterable

import msgspec
from msgspec import UNSET, UnsetType

from remediator.core import names
from remediator.core.command import CaseChange
from remediator.kube.api.common import Base
from remediator.kube.api.encode.objects import body
from remediator.kube.api.patch import Body, MetaPatch, Patch
from remediator.kube.wire.times import stamp


class _Decided(Base, frozen=True, kw_only=True):
    """The fields of a case that users decide, and who has."""

    hold: bool | UnsetType = UNSET
    hold_set_by: str | UnsetType | None = UNSET
    approved: bool | UnsetType = UNSET
    approved_by: str | UnsetType = UNSET
    release: bool | UnsetType = UNSET
    release_set_by: str | UnsetType = UNSET
    retry: int | UnsetType = UNSET
    retry_set_by: str | UnsetType = UNSET


def obeyed(version: str, change: CaseChange, user: str, comments: Iterable[str]) -> Body:
    """A merge patch that lets a case obey a user; `comments` says which commands it has obeyed then."""
    notes: dict[str, str | None] = {names.OBEYED: " ".join(comments)}
    decided: dict[str, object] = {}
    if change.hold is not None:
        notes[names.HOLD_UNTIL] = stamp(change.until) if change.until else None
        decided |= {"hold": change.hold, "hold_set_by": user}
    if change.approve:
        decided |= {"approved": True, "approved_by": user}
    if change.release:
        decided |= {"release": True, "release_set_by": user}
    if change.retry:
        decided |= {"retry": change.retry, "retry_set_by": user}
    meta = MetaPatch(resource_version=version, annotations=notes)
    return body(Patch(metadata=meta, spec=msgspec.to_builtins(_Decided(**decided))))  # type: ignore[arg-type]


def hold_ended(version: str) -> Body:
    """A merge patch that ends the hold of a comment, whose time is over."""
    meta = MetaPatch(resource_version=version, annotations={names.HOLD_UNTIL: None})
    return body(Patch(metadata=meta, spec=msgspec.to_builtins(_Decided(hold=False, hold_set_by=None))))
