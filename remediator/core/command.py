"""What a user decides about a case by a comment. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from remediator.core import names
from remediator.core.case import KeepOut
from remediator.core.reasons import Reason

APPROVABLE = (Reason.APPROVAL_NEEDED, Reason.BLAST_RADIUS, Reason.BLAST_RADIUS_UNKNOWN)
LONGEST_REASON = 200  # characters of why a user holds a case
REMEMBERED = 16  # commands that a case remembers to have obeyed


@dataclass(frozen=True, slots=True)
class CaseChange:
    """What is set on one case, as it was when that was decided. `until` is when a hold ends by itself."""

    case: str
    version: str
    hold: bool | None = None
    until: datetime | None = None
    because: str = ""  # why it is held
    approve: bool = False
    release: bool = False
    retry: int = 0  # what spec.retry becomes; 0: what it is
    keep_out: KeepOut | None = None  # until when its user keeps the node


@dataclass(frozen=True, slots=True)
class Keep:
    """What the janitor is asked for: to keep an object until then, such as jobs/team/sweep-17. `user`: by whom."""

    target: str
    until: datetime
    user: str


MOST_KEEPS = 64  # that one Ticket holds


def kept(known: Iterable[Keep], asked: Iterable[Keep], at: datetime) -> tuple[Keep, ...]:
    """All that is asked for then: of one object the longest, whatever the order of comments."""
    longest: dict[str, Keep] = {}
    for keep in (*known, *asked):
        other = longest.get(keep.target)
        if keep.until > at and (other is None or keep.until > other.until):
            longest[keep.target] = keep
    return tuple(sorted(longest.values(), key=lambda keep: (keep.until, keep.target))[-MOST_KEEPS:])


def obeyed(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """The commands that a case has obeyed."""
    return tuple(annotations.get(names.OBEYED, "").split())[-REMEMBERED:]


def hold_until(annotations: Mapping[str, str]) -> datetime | None:
    """When the hold of a comment ends; None where it ends by no time, or the time cannot be read."""
    try:
        until = datetime.fromisoformat(annotations[names.HOLD_UNTIL])
    except (KeyError, ValueError):
        return None
    return until if until.tzinfo else None
