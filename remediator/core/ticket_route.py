"""The noun TicketRoute: where a team wants the issues that are its own, and whether it may have them there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from remediator.core.policy import Severity

# The form of an owner, and of a repository: letters, digits, dots and such, but neither "." nor "..", which are another
# path. Wherever a repository is named it is this form; RE2 knows it, too.
OWNER, NAME = "[A-Za-z0-9-]{1,39}", "[.]{0,2}[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}"
REPOSITORY = f"{OWNER}/{NAME}"


class RouteReason(StrEnum):
    """Whether a TicketRoute is used, or why not."""

    ACCEPTED = "Accepted"
    NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed"
    REPOSITORY_NOT_ALLOWED = "RepositoryNotAllowed"
    INVALID = "Invalid"


@dataclass(frozen=True, slots=True)
class RouteVerdict:
    """What is told of one: the reason, a sentence with the remedy, and how many open issues go by it."""

    reason: RouteReason
    message: str
    issues: int = 0

    @property
    def ready(self) -> bool:
        """Whether it is used."""
        return self.reason is RouteReason.ACCEPTED


@dataclass(frozen=True, slots=True)
class ShownVerdict:
    """What the status of one says, of which generation of it, and since when it is used or not."""

    verdict: RouteVerdict
    generation: int
    since: datetime


@dataclass(frozen=True, slots=True)
class TicketRoute:
    """One object. Of `labels_match` each label must have one of its values on the node or in an alert."""

    namespace: str
    name: str
    repository: str
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    milestone: str = ""
    severities: frozenset[Severity] = frozenset()
    labels_match: Mapping[str, frozenset[str]] = field(default_factory=dict)
    version: str = ""
    generation: int = 0
    shown: ShownVerdict | None = None

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"
