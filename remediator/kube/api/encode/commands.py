"""What users decide about a case in comments, in the fields that kubectl sets, and with their names."""

from collections.abc import Iterable
from dataclasses import replace

import msgspec
from msgspec import UNSET, UnsetType

from remediator.core import names
from remediator.core.command import CaseChange
from remediator.kube.api.common import Base
from remediator.kube.api.encode.objects import body, second
from remediator.kube.api.patch import Body, MergePatch, MetaPatch
from remediator.kube.api.remediation import KeepOut
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
    keep_out: KeepOut | UnsetType = UNSET


def decided(change: CaseChange, user: str) -> Body:
    """A merge patch that sets what a user decides, under the version that they have seen; "": their name is unknown."""
    return _patch(change, user, {})


def obeyed(version: str, change: CaseChange, user: str, comments: Iterable[str]) -> Body:
    """A merge patch that lets a case obey a user; `comments` says which commands it has obeyed then."""
    return _patch(replace(change, version=version), user, {names.OBEYED: " ".join(comments)})


def _patch(change: CaseChange, user: str, notes: dict[str, str | None]) -> Body:
    by: str | UnsetType = user or UNSET
    fields: dict[str, object] = {}
    if change.hold is not None:
        notes |= {names.HOLD_UNTIL: stamp(change.until) if change.until else None}
        notes |= {names.HOLD_REASON: change.because or None}
        fields |= {"hold": change.hold, "hold_set_by": by}
    if change.approve:
        fields |= {"approved": True, "approved_by": by}
    if change.release:
        fields |= {"release": True, "release_set_by": by}
    if change.retry:
        fields |= {"retry": change.retry, "retry_set_by": by}
    if change.keep_out is not None:
        until, reason = change.keep_out
        fields |= {"keep_out": KeepOut(until=second(until), reason=reason)}
    meta = MetaPatch(resource_version=change.version, annotations=notes or UNSET)
    return body(MergePatch(metadata=meta, spec=msgspec.to_builtins(_Decided(**fields))))  # type: ignore[arg-type]


def hold_ended(version: str) -> Body:
    """A merge patch that ends a hold whose time is over."""
    meta = MetaPatch(resource_version=version, annotations={names.HOLD_UNTIL: None, names.HOLD_REASON: None})
    return body(MergePatch(metadata=meta, spec=msgspec.to_builtins(_Decided(hold=False, hold_set_by=None))))
