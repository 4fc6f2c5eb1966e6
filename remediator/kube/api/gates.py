"""What a policy makes the starts of its cases wait for: windows, and a node without work."""

from typing import Annotated

from msgspec import Meta

from remediator.core.policy import Urgency as UrgencyMode
from remediator.core.window import CRON, FIELDS, ONE_DAY, ZONES
from remediator.kube.api.common import Base, Rule, doc, rules
from remediator.kube.api.durations import AT_MOST, DEADLINE, Open, at_least

_Cron = Annotated[
    str,
    Meta(max_length=128),
    rules(
        Rule(f"self.matches('{CRON}')", f"must be {FIELDS}"),
        Rule("self.matches('^[^ ]+ [^ ]+ [*] ') || self.endsWith(' *')", ONE_DAY),
    ),
]
_Zone = Annotated[
    str,
    Meta(max_length=64),
    rules(Rule("self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9][A-Za-z0-9_+-]*)*$')", ZONES)),
]
_Deadline = Annotated[
    str,
    DEADLINE,
    rules(AT_MOST, at_least("1s", "mode Now does not wait, and None waits for ever")),
]


class Window(Base, frozen=True, kw_only=True):
    """A time that opens by the clock, again and again."""

    cron: Annotated[
        _Cron,
        doc(
            "When it opens: minute, hour, day of the month, month, day of the week, as a CronJob has them "
            '("0 2 * * 1-5": at 02:00 from Monday to Friday). The day of the month or the day of the week must be *.'
        ),
    ]
    duration: Annotated[Open, doc("How long it stays open: 4h, 1h30m. From 1m to 168h.")]
    time_zone: Annotated[
        _Zone,
        doc("Name of the time zone in the IANA database, such as Asia/Tokyo. Default UTC."),
    ] = "UTC"


class Urgency(Base, frozen=True, kw_only=True):
    """Whether running work may be disturbed."""

    mode: Annotated[
        UrgencyMode,
        doc(
            "Now: at once. WhenIdle: keep new work off the node, and wait until no Pod works on it any more. "
            "Never: change nothing, escalate to a person. Default Now."
        ),
    ] = UrgencyMode.NOW
    deadline: Annotated[
        _Deadline | None,
        doc(
            "With WhenIdle: how long after its claim a case waits for the Pods on the node to end; then they are moved "
            "away. None: for ever. Default 24h."
        ),
    ] = None


URGENCY = rules(
    Rule(
        "!has(self.deadline) || (has(self.mode) && self.mode == 'WhenIdle')",
        "deadline goes with mode WhenIdle only; set the mode, or remove the deadline",
        ".deadline",
    )
)
