"""The bytes that Alertmanager posts → its alerts as they were sent; a large body in parts, between which others run."""

import re
import secrets
from collections.abc import Generator, Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import TypeVar

import msgspec


class BadPayload(ValueError):
    """The body is no payload of Alertmanager; the message says what is wrong with it."""


class Wire(msgspec.Struct, rename="camel", kw_only=True):
    """Only what we read; versions differ in the rest."""


class WireAlert(Wire, kw_only=True):
    """One alert. Before 0.25 nothing else is different; all of these are always there.

    What takes long to read is read later. As it is no Raw itself, what is no alert ends a body of 16 MiB at once.
    """

    status: str
    labels: msgspec.Raw
    annotations: msgspec.Raw = msgspec.Raw(b"{}")
    starts_at: datetime
    ends_at: datetime | None = None
    fingerprint: str


class WirePayload(Wire, kw_only=True):
    """One delivery. A payload made by a template of somebody's own lacks one of the required fields."""

    status: str
    alerts: list[WireAlert]
    version: str
    truncated_alerts: int = 0


_PAYLOAD, _ALERTS = msgspec.json.Decoder(WirePayload), msgspec.json.Decoder(list[WireAlert])
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # ValidationError is a DecodeError, too
PART = 2**16  # bytes that are read in one step; of the smallest alerts, of which 16 MiB take a tenth of a second, 660
_BEGINS = re.compile(rb'"alerts": ?\[(?=(\{"status": ?))')  # as Go and Python write it
_SPACE, _GOES_ON = b" \t\r\n", b'}],"'  # a list of objects ends, and another field comes; space may be between
SEARCHED = 2**20  # bytes that are searched for that in one step
_MARK = secrets.token_hex(16)  # nobody who writes an alert knows it
_MARKED = b'{"status":"firing","labels":{},"startsAt":"2026-01-01T00:00:00Z","fingerprint":"%b"},' % _MARK.encode()
T = TypeVar("T")
Steps = Generator[None, None, T]  # between two of them others may have their turn


def posted(body: bytes) -> Steps[tuple[WirePayload, Iterable[WireAlert]]]:
    """One delivery, and all its alerts, in the order sent; of a large one they are read when they are asked for.

    Raises BadPayload, then, too.
    """
    return (yield from _cut(body)) or _whole(body)


def _whole(body: bytes) -> tuple[WirePayload, Iterable[WireAlert]]:
    payload = decoded(_PAYLOAD, body, "")
    return payload, payload.alerts


def _cut(body: bytes) -> Steps[tuple[WirePayload, Iterator[WireAlert]] | None]:
    """A large delivery, and its alerts, which are read in parts; None for a small one and for one of another form.

    No cut is believed: the body with a mark in the place of all alerts but the last must be a payload that begins its
    alerts with the mark, and each part must be alerts. What may be the end of the alerts is in none of them: what comes
    after it, such as alerts once more, would count.
    """
    begins = _BEGINS.search(body, 0, PART) if len(body) > PART else None
    if begins is None:
        return None
    between = b"}, " if begins[1].endswith(b" ") else b"},"
    last = yield from _last(body, between + begins[1], begins.end())
    if last < 0 or (yield from _goes_on(body, begins.end(), last)):
        return None
    try:
        payload = _PAYLOAD.decode(body[: begins.end()] + _MARKED + body[last + len(between) :])
    except _UNREADABLE:
        return None
    if [wire.fingerprint for wire in payload.alerts[:1]] != [_MARK]:
        return None
    parts = _parts(body, begins.end(), last, (between, begins[1]))
    return payload, _read(body, parts, payload.alerts[1:])


def _last(body: bytes, text: bytes, at: int) -> Steps[int]:
    """The last place of the text after `at`, -1 for none."""
    end = len(body)
    while end > at:
        begins = max(at, end - SEARCHED)
        place = body.rfind(text, begins, end + len(text) - 1)
        if place >= 0:
            return place
        end = begins
        yield
    return -1


def _goes_on(body: bytes, at: int, last: int) -> Steps[bool]:
    """Whether a list of objects may end between the two places, and another field follow it."""
    before = b""
    for begins in range(at, last, SEARCHED):
        text = before + body[begins : min(begins + SEARCHED, last)].translate(None, _SPACE)
        if _GOES_ON in text:
            return True
        before = text[1 - len(_GOES_ON) :]
        yield
    return False


def _parts(body: bytes, at: int, last: int, cut: tuple[bytes, bytes]) -> Iterator[bytes]:
    """The text from `at` to `last`, cut between two alerts."""
    whole = b"".join(cut)
    while at <= last:
        end = body.rfind(whole, at, min(at + PART, last + len(whole)))
        end = end if end >= 0 else body.find(whole, at)  # an alert that is larger than a part
        yield body[at : end + 1]
        at = end + len(cut[0])


def _read(body: bytes, parts: Iterable[bytes], last: Iterable[WireAlert]) -> Iterator[WireAlert]:
    """The alerts of the parts, and the last. Where a part is none, the body is read at once: it says what is wrong."""
    seen = 0
    for part in parts:
        try:
            wires = _ALERTS.decode(b"[%b]" % part)
        except _UNREADABLE:
            yield from islice(_whole(body)[1], seen, None)
            return
        yield from wires
        seen += len(wires)
    yield from last


def decoded(decoder: msgspec.json.Decoder[T], body: bytes | msgspec.Raw, where: str) -> T:
    """What it says. Raises BadPayload that says where it is none."""
    try:
        return decoder.decode(body)
    except _UNREADABLE as error:
        text = f"no payload of Alertmanager: {where}{error}; leave `payload` of the receiver unset"
        raise BadPayload(text) from None
