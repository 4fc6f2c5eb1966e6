"""What one Alertmanager lists as firing, or why nobody can tell. Pure; the client is in alertmanager.py."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Protocol

import msgspec

from remediator.prometheus.reading import CannotTell, Doubt


@dataclass(frozen=True, slots=True)
class ListedAlert:
    """An alert that fires. Not `active` where a silence, another alert or a mute time keeps it from being sent."""

    fingerprint: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts: datetime
    active: bool
    receivers: tuple[str, ...]


Listing = tuple[ListedAlert, ...] | CannotTell


class AlertSource(Protocol):
    """One Alertmanager as parts of a replica ask it."""

    async def alerts(self) -> Listing:
        """All alerts that fire there now, the silenced ones as well; or why nobody can tell."""

    async def aclose(self) -> None:
        """Give its connections back."""


class _Wire(msgspec.Struct, rename="camel", kw_only=True):
    """Only what we read; versions differ in the rest."""


class _State(_Wire, kw_only=True):
    state: str


class _Receiver(_Wire, kw_only=True):
    name: str


class _Alert(_Wire, kw_only=True):
    fingerprint: Annotated[str, msgspec.Meta(min_length=1)]
    labels: dict[str, str]
    annotations: dict[str, str]
    starts_at: datetime
    status: _State
    receivers: tuple[_Receiver, ...]


_DECODER = msgspec.json.Decoder(tuple[_Alert, ...])


def of_answer(status: int, body: bytes) -> Listing:
    """What one answer to /api/v2/alerts says. A list with a single alert that cannot be read is no list."""
    if 300 <= status < 400:
        return CannotTell(Doubt.REDIRECTED, f"it redirects (HTTP {status}); give --alertmanager-url the last address")
    if status in (401, 403):
        return CannotTell(Doubt.UNAUTHORIZED, f"it refuses us (HTTP {status}); look at --alertmanager-token-file")
    if status != 200:
        return CannotTell(Doubt.HTTP_ERROR, f"HTTP {status}, and no list of alerts: is --alertmanager-url right?")
    try:
        return tuple(map(_listed, _DECODER.decode(body)))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return CannotTell(Doubt.UNREADABLE, "its answer is no list of alerts: is --alertmanager-url right?")


def _listed(wire: _Alert) -> ListedAlert:
    receivers = tuple(receiver.name for receiver in wire.receivers)
    active = wire.status.state == "active"
    return ListedAlert(wire.fingerprint, wire.labels, wire.annotations, wire.starts_at, active, receivers)
