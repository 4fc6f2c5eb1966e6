"""Policies and the templates that their ladders name."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from remediator.core.node import Condition, Node, Status
from remediator.core.selector import Selector


class Mode(StrEnum):
    """Whether a policy acts."""

    ENFORCE = "Enforce"
    DRY_RUN = "DryRun"
    PAUSED = "Paused"


class Severity(StrEnum):
    """Order in the queue, most urgent first."""

    CRITICAL = "Critical"
    WARNING = "Warning"
    INFO = "Info"

    @property
    def rank(self) -> int:
        """0 for the most urgent."""
        return list(Severity).index(self)


class Urgency(StrEnum):
    """Whether running work may be disturbed. NEVER: nothing is done to the node, its cases only escalate."""

    NOW = "Now"
    NEVER = "Never"


class TicketWhen(StrEnum):
    """Which cases of a policy get a ticket."""

    ALWAYS = "Always"
    ON_ESCALATION = "OnEscalation"
    NEVER = "Never"


@dataclass(frozen=True, slots=True)
class Clause:
    """One condition that must hold: `reasons` empty means any reason."""

    condition: str
    status: Status = Status.TRUE
    reasons: frozenset[str] = frozenset()

    def met_by(self, condition: Condition) -> bool:
        """Whether the condition has the status and a reason that the clause asks for."""
        return condition.status is self.status and (not self.reasons or condition.reason in self.reasons)


@dataclass(frozen=True, slots=True)
class When:
    """Clauses that must hold together for `tolerance` before we act."""

    clauses: tuple[Clause, ...]
    tolerance: timedelta


@dataclass(frozen=True, slots=True)
class Rung:
    """One step of a ladder: an operation, how often it may be tried, and the parameters of its program."""

    operation: str
    attempts: int = 1
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verify:
    """What a node must show after an operation before it is given back."""

    settle: timedelta
    fresh: timedelta
    timeout: timedelta


MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class Correlation:
    """So many nodes that have what `by` names in common, begun within this time, have one cause.

    `by`: "message" and "reason" of the condition, and keys of node labels; all of them must be the same.
    """

    nodes: int
    within: timedelta
    by: tuple[str, ...] = (MESSAGE,)


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a policy can act, as its condition Ready says: with which reason, for which generation."""

    status: Status
    reason: str
    generation: int


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """What became of one attempt under a policy, kept when its case has gone."""

    operation: str
    template: str
    ended: datetime
    in_vain: bool
    node: str = ""


@dataclass(frozen=True, slots=True)
class FailureBreaker:
    """The breaker on failures of one policy, as its status says: since when it is open, why, and what it rests on."""

    opened: datetime | None = None
    message: str = ""
    records: tuple[AttemptRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """What is wrong, where, and what to try. Any entry of `when` suffices."""

    name: str
    selector: Selector
    when: tuple[When, ...]
    ladder: tuple[Rung, ...]
    severity: Severity
    verify: Verify
    attempts_max: int
    attempts_window: timedelta
    cooldown: timedelta
    mode: Mode
    urgency: Urgency = Urgency.NOW
    ticket: TicketWhen = TicketWhen.NEVER
    route: str = ""
    correlation: Correlation | None = None
    generation: int = 0
    closed_at: datetime | None = None  # when a user closed the breaker on failures last
    breaker: FailureBreaker = FailureBreaker()
    readiness: Readiness | None = None  # what its status says; None where nothing was written yet
    version: str = ""
    unreadable: bool = False  # nobody knows what it asks about: it proves nothing, and starts nothing

    def selects(self, node: Node) -> bool:
        """Whether the policy applies to this node."""
        return self.selector.matches(node.labels)

    @property
    def spec(self) -> "Policy":
        """What its author wrote, without what the status and the versions say."""
        return replace(self, readiness=None, breaker=FailureBreaker(), version="", generation=0)

    @property
    def watches(self) -> tuple[object, ...]:
        """All of it that a decision about a node rests on: while this is the same, no node needs another look."""
        return self.selector, self.when, self.mode, self.urgency, self.severity

    @property
    def acts(self) -> bool:
        """Whether its cases may disturb a node. Those of a policy that only watches never hold another one."""
        return self.mode is Mode.ENFORCE and self.urgency is Urgency.NOW


class Strategy(StrEnum):
    """How pods leave a node."""

    EVICT = "Evict"
    DELETE = "Delete"
    NONE = "None"


class RunOn(StrEnum):
    """Where the Pod of an operation runs."""

    TARGET = "Target"
    ELSEWHERE = "Elsewhere"


@dataclass(frozen=True, slots=True)
class Template:
    """How one operation is done. `pod` is an ordinary PodTemplateSpec, as written."""

    name: str
    strategy: Strategy
    drain_timeout: timedelta
    run_on: RunOn
    timeout: timedelta
    boot_id_changed: bool
    node_ready: bool
    pod: Mapping[str, Any]
    version: str = ""
    after: tuple[str, ...] = ()  # templates that complete it, in order
    skip_wait_for_delete: timedelta | None = None  # a Pod whose end is overdue by more is not waited for

    @property
    def has_criteria(self) -> bool:
        """Whether success shows on the node, and so outranks the exit code."""
        return self.boot_id_changed or self.node_ready
