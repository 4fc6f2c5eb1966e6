"""From what a server has answered to samples, or to why nobody can tell. Pure."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from remediator.core.text import printable
from remediator.prometheus.envelope import Envelope, Vector, decode, matters

AHEAD = timedelta(minutes=1)  # how far the server's clock may be before ours
SHOWN = 300  # letters of what a server says
Hidden = Callable[[str], str]


class Doubt(StrEnum):
    """Why an answer is no verdict."""

    NO_TOKEN = "NoToken"
    UNREACHABLE = "Unreachable"
    UNTRUSTED = "Untrusted"
    TIMED_OUT = "TimedOut"
    REDIRECTED = "Redirected"
    UNAUTHORIZED = "Unauthorized"
    HTTP_ERROR = "HttpError"
    TOO_LARGE = "TooLarge"
    UNREADABLE = "Unreadable"
    FAILED = "QueryFailed"
    WARNED = "Warned"
    PARTIAL = "Partial"
    WRONG_TYPE = "WrongType"
    UNDATED = "Undated"
    EMPTY = "Empty"
    NOT_A_NUMBER = "NotANumber"
    STALE = "Stale"
    AHEAD = "ClockAhead"


@dataclass(frozen=True, slots=True)
class CannotTell:
    """No verdict: one word for a machine, one sentence for a person, and for the log what the library says."""

    doubt: Doubt
    message: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """One value, with the labels of its series."""

    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


Reading = tuple[Sample, ...] | CannotTell  # never no sample


def of_answer(status: int, body: bytes, within: timedelta, now: datetime, hidden: Hidden = str) -> Reading:
    """What one answer says. `within`: how old its samples may be. `now`: when it was asked for.

    `hidden` takes out of the server's words what no message may have, before they are cut.
    """
    if 300 <= status < 400:
        return CannotTell(Doubt.REDIRECTED, f"it redirects (HTTP {status}); give --prometheus-url the last address")
    if status in (401, 403):
        return CannotTell(Doubt.UNAUTHORIZED, f"it refuses us (HTTP {status}); look at --prometheus-token-file")
    envelope = decode(body)
    if envelope is None:
        doubt = Doubt.UNREADABLE if status == 200 else Doubt.HTTP_ERROR
        return CannotTell(doubt, f"HTTP {status}, and no answer of Prometheus: is --prometheus-url right?")
    if envelope.status != "success" or status != 200:
        return _failed(status, envelope, hidden)
    return _incomplete(envelope, hidden) or _samples(envelope, within, now, hidden)


def _failed(status: int, envelope: Envelope, hidden: Hidden) -> CannotTell:
    doubt = Doubt.TIMED_OUT if envelope.error_type in ("timeout", "canceled") else Doubt.FAILED
    return CannotTell(doubt, shown(hidden(f"HTTP {status}: {envelope.error_type}: {envelope.error}")))


def _incomplete(envelope: Envelope, hidden: Hidden) -> CannotTell | None:
    """Why an answer is not the whole answer; None where nothing says so."""
    if envelope.warnings:
        return CannotTell(Doubt.WARNED, shown(hidden(f"its answer has a warning: {envelope.warnings[0]}")))
    if envelope.is_partial or envelope.partial_response:
        return CannotTell(Doubt.PARTIAL, "its answer is partial: some of its stores did not answer")
    if info := next(filter(matters, envelope.infos), ""):
        return CannotTell(Doubt.WARNED, shown(hidden(f"its answer leaves something out: {info}")))
    return None


def _samples(envelope: Envelope, within: timedelta, now: datetime, hidden: Hidden) -> Reading:
    if not isinstance(envelope.data, Vector):
        return CannotTell(Doubt.WRONG_TYPE, "its answer is no instant vector; let the query give one number a series")
    if not envelope.data.result:
        return CannotTell(Doubt.EMPTY, f"its answer is empty: it has no series, or one that is older than {within}")
    samples: list[Sample] = []
    for series in envelope.data.result:
        if series.value is None:
            return CannotTell(Doubt.WRONG_TYPE, "a sample is a histogram; let the query give a number")
        at, text = series.value
        if doubt := _untimely(at, within, now):
            return doubt
        number = _number(text)
        if number is None:
            return CannotTell(Doubt.NOT_A_NUMBER, shown(hidden(f"a sample is {text}, which says nothing")))
        samples.append(Sample(number, series.metric))
    return tuple(samples)


def _untimely(at: float, within: timedelta, now: datetime) -> CannotTell | None:
    age = now.timestamp() - at
    if age > within.total_seconds():
        return CannotTell(Doubt.STALE, f"a sample is older than {within}")
    if -age > AHEAD.total_seconds():
        return CannotTell(Doubt.AHEAD, "a sample is from the future: look at the clocks of both")
    return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def shown(text: str) -> str:
    """What somebody else says, on one line that a status has room for."""
    return printable(text)[:SHOWN]


def values(samples: Iterable[Sample]) -> tuple[float, ...]:
    """The numbers alone."""
    return tuple(sample.value for sample in samples)
