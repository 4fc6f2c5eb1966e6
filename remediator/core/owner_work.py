"""The work of one owner of which the janitor has given notice, as the alerts of their Ticket. Pure.

The janitor writes them; tickets makes an issue of them; comments below it name the same objects.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from remediator.core.policy import Severity
from remediator.core.text import one_line
from remediator.core.ticket import About, Alert, Subject, Ticket

LONGEST_NAME, LONGEST_SUMMARY = 253, 1024
LABELS = ("kind", "namespace", "name")


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice that an object bears: of which policy and finding, since when, and until when it may stay (None: ever).

    `plural` is that of its kind, `owner` what its label says, "" where it says nothing.
    """

    policy: str
    finds: str
    plural: str
    namespace: str
    name: str
    uid: str
    owner: str
    at: datetime
    until: datetime | None
    message: str

    @property
    def subject(self) -> Subject:
        """Whose Ticket it stands in: of what has no owner, that of its namespace."""
        return Subject(About.OWNER, owner=self.owner or f"namespace/{self.namespace}")

    @property
    def fingerprint(self) -> str:
        """The same for as long as the notice is the same."""
        until = self.until.timestamp() if self.until else ""
        words = (self.policy, self.uid, self.at.timestamp(), until)
        return hashlib.sha256("\0".join(map(str, words)).encode()).hexdigest()[:16]


def as_alert(notice: Notice, team: str, github: str, now: datetime) -> Alert:
    """The notice as an alert. `team`, `github`: how the owner is reached."""
    labels = {"kind": notice.plural, "namespace": notice.namespace, "name": notice.name, "policy": notice.policy}
    labels |= {"owner": notice.owner, "team": team, "github": github}
    return Alert(
        notice.fingerprint,
        one_line(f"{notice.finds} of {notice.plural}/{notice.namespace}/{notice.name}", LONGEST_NAME),
        notice.at,
        severity=Severity.INFO,
        summary=one_line(notice.message, LONGEST_SUMMARY),
        labels=tuple(sorted((label, value) for label, value in labels.items() if value)),
        received=now,
    )


def object_of(alert: Alert) -> str:
    """The object that such an alert is about: jobs/team/sweep-17."""
    labels = dict(alert.labels)
    return "/".join(labels.get(label, "") for label in LABELS)


def firing(ticket: Ticket) -> tuple[Alert, ...]:
    """The notices that the owner of a Ticket has now; none of a Ticket about anything else."""
    return tuple(alert for alert in ticket.alerts if alert.firing and ticket.subject.about is About.OWNER)


def logins(alerts: Iterable[Alert]) -> tuple[str, ...]:
    """Who is reached on GitHub about these."""
    return tuple(dict.fromkeys(login for alert in alerts if (login := dict(alert.labels).get("github"))))
