"""Durations of our kinds: one form, and for each use the least and the most that makes sense.

The limits are those that nobody can mean. `remediator lint` warns of times that are legal, and hardly meant: see
manifests/times.py.
"""

from typing import Annotated

from remediator.core.duration import FORM, part_seconds
from remediator.kube.api.common import Rule, rules, shaped

ZERO = "(0+(ms|s|m|h|d))+"
SAYS = "must be numbers with units (ms, s, m, h, d), such as 30s, 5m, 1h30m or 7d"
# CEL knows no days: they are read as hours, 24 times. Parts of a second count nowhere.
_PARTS = (
    "self.findAll('[0-9]+(ms|s|m|h|d)').map(part, part.endsWith('d') "
    "? duration(part.replace('d', 'h')).getSeconds() * 24 : duration(part).getSeconds())"
)


def seconds(duration: str) -> float:
    """A `Duration` in seconds: "1h30m" is 5400.0. Raises ValueError for anything else."""
    return sum(part_seconds(duration))


def too_long(duration: str) -> bool:
    """Whether AT_MOST refuses it. Raises ValueError for what is no duration."""
    return sum(map(int, part_seconds(duration))) > LONGEST


LONGEST = 366 * 86400  # seconds of a duration: no case is kept for longer


def at_least(duration: str, remedy: str = "write a longer time") -> Rule:
    """The rule for a text that may have other forms, too: those are passed over."""
    count = f"{_PARTS}.sum() >= {seconds(duration):.0f}"
    return Rule(f"!self.matches('^{FORM}$') || {count}", f"must be at least {duration}; {remedy}")


def at_most(duration: str, remedy: str = "write a shorter time") -> Rule:
    """As `at_least`."""
    return Rule(f"{_PARTS}.sum() <= {seconds(duration):.0f}", f"must be at most {duration}; {remedy}")


AT_MOST = Rule(f"{_PARTS}.sum() <= {LONGEST}", "must be at most 366d (8784h); write a shorter time")
TEXT = shaped(f"^{FORM}$", SAYS, 16)
DEADLINE = shaped(f"^(None|{FORM})$", f"must be None, or {SAYS.removeprefix('must be ')}", 16)

Duration = Annotated[str, TEXT, rules(AT_MOST)]  # 0s is a choice: at once, or no rest
# Tests and the demo count in seconds; below one second nothing can happen.
Timeout = Annotated[str, TEXT, rules(at_least("1s"), AT_MOST)]
# Nobody writes a heartbeat more often. After a day without one nothing is known, unless somebody else says so.
_CHANGE = "write 0s with reportedBy where it is written only when it changes"
StaleAfter = Annotated[
    str,
    TEXT,
    rules(
        Rule(
            f"self.matches('^{ZERO}$') || {_PARTS}.sum() >= 60",
            "must be 0s, or at least 1m: heartbeats come once in 1 to 5 minutes",
        ),
        at_most("24h", _CHANGE),
    ),
]
# What a node has to prove is proven within a day, or its case never ends.
Proof = Annotated[str, TEXT, rules(at_most("24h"))]
# Nothing happens twice within less.
ShortWindow = Annotated[str, TEXT, rules(at_least("1m"), AT_MOST)]
# What began longer ago is no longer known.
BreakerWindow = Annotated[str, TEXT, rules(at_least("1m"), at_most("41d"))]
# An attempt may take an hour: a shorter window forgets it before the next one, and attempts have no end.
HistoryWindow = Annotated[
    str, TEXT, rules(at_least("1h", "what is older is forgotten, so a short window sets no limit"), AT_MOST)
]
# As long as answers of Prometheus may take, and as samples say something of now.
SampleAge = Annotated[
    str,
    TEXT,
    rules(
        at_least("30s", "Prometheus may take 10 s to answer, and an answer is used for half of this time at most"),
        at_most("1h", "a sample that is older than an hour says nothing of now"),
    ),
]
# As core/node_events.py: between two Events of a fault that goes on client-go lets 5 minutes pass.
EventWindow = Annotated[
    str,
    TEXT,
    rules(
        at_least("10m", "writers of Events may send one in 5 minutes alone, so a shorter silence proves nothing"),
        at_most("1h", "API servers keep Events for an hour, so older ones are not known"),
    ),
]
Open = Annotated[str, TEXT, rules(at_least("1m"), at_most("168h", "write several windows for more"))]
