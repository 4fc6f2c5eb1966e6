"""What becomes of one object: nothing, a notice, its deletion, or a hold with its reason. Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from remediator.core import names
from remediator.janitor.rules import RuleMatch
from remediator.janitor.settings import Terms
from remediator.janitor.subject import JanitorSubject
from remediator.janitor.ttl import FOREVER, UnreadableTime, in_units, parse_expiry, parse_ttl
from remediator.kube.wire.times import stamp

T = TypeVar("T")


class JanitorReason(StrEnum):
    """Why something is done with an object, or is not."""

    TTL = "TimeToLiveExpired"
    EXPIRY = "ExpiryTimeReached"
    NOTICE = "DeleteNotification"
    UNREADABLE = "AnnotationUnreadable"
    RULE_UNKNOWN = "RuleUnknown"
    KEPT = "KeptByUser"
    NAMESPACE_KEPT = "NamespaceKept"
    HOLDS_KEPT = "NamespaceHoldsKept"
    OWNS_KEPT = "OwnsKept"
    OWNED = "OwnerRecreates"
    MOVED = "Changed"
    REFUSED = "Refused"
    IDLE = "GpuIdle"
    IDLE_NOTICE = "IdleNotification"
    CPU_IDLE = "CpuIdle"
    RESTARTS = "RestartsAgain"
    RESTARTS_NOTICE = "RestartsNotification"
    PENDING = "PendingTooLong"
    PENDING_NOTICE = "PendingNotification"
    ALERT = "AlertFires"
    ALERT_NOTICE = "AlertNotification"
    IN_USE = "InUse"
    NVML_IN_USE = "NvmlInUse"
    YOUNG = "TooYoung"
    CANNOT_TELL = "CannotTell"
    GRACE = "GraceRuns"
    TOLD_ONLY = "ToldOnly"
    OUTSIDE_HOURS = "OutsideHours"


@dataclass(frozen=True, slots=True)
class Deadline:
    """Until when an object may live, and what says so."""

    at: datetime
    reason: JanitorReason
    because: str


@dataclass(frozen=True, slots=True)
class Nothing:
    """Nothing says when its life ends."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Its time has not come."""

    deadline: Deadline


@dataclass(frozen=True, slots=True)
class Notify:
    """Its owner is to be told now that it will be deleted at this time."""

    deadline: Deadline
    at: datetime


@dataclass(frozen=True, slots=True)
class Overdue:
    """Its time is over, and its owner was told where that is asked for."""

    deadline: Deadline


@dataclass(frozen=True, slots=True)
class Held:
    """It stays, although its time may be over, and why."""

    reason: JanitorReason
    message: str


Decision = Nothing | Waits | Notify | Overdue | Held


def decide(
    subject: JanitorSubject, match: RuleMatch, terms: Terms, now: datetime, *, namespace_kept: str = ""
) -> Decision:
    """What becomes of an object now. `namespace_kept`: why its whole namespace is kept, "" where it is not."""
    if subject.deleting:
        return Nothing()
    try:
        ends = list(_deadlines(subject, match, terms))
        kept = keeps(subject, now)
    except UnreadableTime as wrong:
        return Held(JanitorReason.UNREADABLE, str(wrong))
    if not ends:
        return _doubted(match) if match.doubts else Nothing()
    deadline = min(ends, key=lambda end: end.at)
    if now < deadline.at - terms.notice:
        return Waits(deadline)
    if kept:
        return Held(JanitorReason.KEPT, kept)
    if namespace_kept:
        return Held(JanitorReason.NAMESPACE_KEPT, namespace_kept)
    if subject.owner:
        remedy = f"put the annotation on {subject.owner}, or on what owns that"
        return Held(JanitorReason.OWNED, f"{subject.owner} would make it anew; {remedy}")
    return _in_order(subject, deadline, terms, now)


def _doubted(match: RuleMatch) -> Held:
    return Held(JanitorReason.RULE_UNKNOWN, "; ".join(match.doubts))


def _in_order(subject: JanitorSubject, deadline: Deadline, terms: Terms, now: datetime) -> Decision:
    """First the notice, where one is asked for, and for this very deadline; then, as much later, the deletion."""
    if not terms.notice:
        return Overdue(deadline)
    notice = _notice(subject, deadline, now)
    if notice is None:
        return Notify(deadline, now + terms.notice)
    return Overdue(deadline) if now >= max(deadline.at, notice + terms.notice) else Waits(deadline)


def _notice(subject: JanitorSubject, deadline: Deadline, now: datetime) -> datetime | None:
    """When the owner was told of this deadline; None where it was another one, or where nobody can tell."""
    if subject.annotations.get(names.JANITOR_NOTIFIED) != stamp(deadline.at):
        return None
    try:
        notice = parse_expiry(subject.annotations.get(names.JANITOR_NOTIFIED_AT, ""))
    except UnreadableTime:
        return None
    return notice if notice <= now else None


def keeps(subject: JanitorSubject, now: datetime) -> str:
    """Why the annotation keep-until keeps an object now; "" where it does not. Raises UnreadableTime."""
    return kept(subject.annotations, now)


def kept(annotations: Mapping[str, str], now: datetime) -> str:
    """The same of annotations alone."""
    text = annotations.get(names.KEEP_UNTIL)
    if text is None:
        return ""
    if text.strip() == FOREVER:
        return f"{names.KEEP_UNTIL} says {FOREVER}"
    try:
        until = parse_expiry(text)
    except UnreadableTime as wrong:
        raise UnreadableTime(f"{names.KEEP_UNTIL}: {wrong}") from None
    return f"{names.KEEP_UNTIL} says {stamp(until)}{_asked(annotations, until)}" if now < until else ""


def _asked(annotations: Mapping[str, str], until: datetime) -> str:
    """Who has asked for this very time by a comment; "" where somebody else has set it since."""
    user, _, asked_for = annotations.get(names.KEEP_SET_BY, "").partition(" ")
    return f", as {user} has asked" if asked_for == stamp(until) else ""


def _deadlines(subject: JanitorSubject, match: RuleMatch, terms: Terms) -> Iterator[Deadline]:
    """Both: the one of the annotation TTL, or else of a rule, and the one of the annotation of the expiry."""
    ttl = subject.annotations.get(names.JANITOR_TTL)
    if ttl is not None:
        yield from _after(subject, _read(parse_ttl, names.JANITOR_TTL, ttl), f"{names.JANITOR_TTL}: {ttl}", terms)
    elif match.rule is not None:
        written = in_units(match.ttl) if match.ttl is not None else FOREVER
        yield from _after(subject, match.ttl, f"rule {match.rule.id} matches: {written}", terms)
    expires = subject.annotations.get(names.JANITOR_EXPIRES)
    if expires is not None:
        at = _read(parse_expiry, names.JANITOR_EXPIRES, expires)
        yield Deadline(at, JanitorReason.EXPIRY, f"{names.JANITOR_EXPIRES}: {expires}")


def _read(parse: Callable[[str], T], annotation: str, text: str) -> T:
    try:
        return parse(text)
    except UnreadableTime as wrong:
        raise UnreadableTime(f"{annotation}: {wrong}") from None


def _after(subject: JanitorSubject, ttl: timedelta | None, because: str, terms: Terms) -> Iterator[Deadline]:
    if ttl is None:
        return
    if subject.created is None:
        raise UnreadableTime("nobody can tell when it was created")
    begin = subject.created
    deployed = subject.annotations.get(terms.deployment_time) if terms.deployment_time else None
    if deployed is not None:
        begin = max(begin, _read(parse_expiry, terms.deployment_time, deployed))
    yield Deadline(begin + ttl, JanitorReason.TTL, because)
