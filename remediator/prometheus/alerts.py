"""What Alertmanagers list as firing, or why nobody can tell. Their client is in alertmanager.py."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Protocol

import msgspec

from remediator.prometheus.reading import CannotTell, Doubt

# How long an alert has to be missing from every list. An Alertmanager that has just started lists nothing until
# Prometheus sends everything again, which it does every minute unless set otherwise.
QUIET = timedelta(minutes=3)


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


@dataclass(frozen=True, slots=True)
class Alertmanagers:
    """Who is asked. Alerts of `receiver` make tickets; `watchdog`, where given, is an alert that always fires."""

    sources: Sequence[AlertSource]
    receiver: str
    watchdog: str = ""

    async def listings(self) -> Sequence[Listing]:
        """What each of them lists now."""
        return await asyncio.gather(*(source.alerts() for source in self.sources))

    async def aclose(self) -> None:
        """Give all connections back."""
        for source in self.sources:
            await source.aclose()


@dataclass(frozen=True, slots=True)
class Firing:
    """What all Alertmanagers together list, by fingerprint. `whole`: what is not in it does not fire."""

    alerts: Mapping[str, ListedAlert]
    whole: bool


def together(listings: Sequence[Listing], watchdog: str) -> Firing:
    """What several Alertmanagers say: what fires in one fires.

    Not whole where one cannot tell; nor while an alert of the name `watchdog`, which always fires, is in no list: then
    Prometheus does not reach them.
    """
    alerts: dict[str, ListedAlert] = {}
    for listing in listings:
        for alert in () if isinstance(listing, CannotTell) else listing:
            alerts[alert.fingerprint] = _both(alerts.get(alert.fingerprint, alert), alert)
    answered = not any(isinstance(listing, CannotTell) for listing in listings)
    alive = not watchdog or any(alert.labels.get("alertname") == watchdog for alert in alerts.values())
    return Firing(alerts, answered and alive)


def _both(alert: ListedAlert, other: ListedAlert) -> ListedAlert:
    """One alert in two lists: active where it is in one of them."""
    newer = max(alert, other, key=lambda listed: (listed.active, listed.starts))
    return replace(newer, receivers=(*alert.receivers, *other.receivers))


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
    if status == 400:
        return CannotTell(Doubt.HTTP_ERROR, 'HTTP 400: is --alertmanager-matcher such as cluster="prod-a"?')
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
