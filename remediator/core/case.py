"""Cases and operations as they are stored in the API server."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from remediator.core import names
from remediator.core.node import Node
from remediator.core.reasons import STOPS, Reason


class Phase(StrEnum):
    """The phase of a case: a column for people, derived from what is observed."""

    NEW = ""
    HELD = "Held"
    DRAINING = "Draining"
    OPERATING = "Operating"
    VERIFYING = "Verifying"
    RECOVERED = "Recovered"
    ESCALATED = "Escalated"
    CANCELLED = "Cancelled"


class AttemptOutcome(StrEnum):
    """How one attempt ended; OPEN while it has not."""

    OPEN = ""
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    REFUSED = "Refused"
    CANCELLED = "Cancelled"


@dataclass(frozen=True, slots=True)
class Trigger:
    """The condition that the case was opened for."""

    condition: str
    status: str
    reason: str
    message: str
    since: datetime
    cause: str = ""  # what the policy compared with other nodes then, where that is not the message


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of one rung, or what follows it up. `heartbeats` are the node's own, by condition, when it had ended."""

    operation: str
    template: str
    rung: int
    started: datetime
    finished: datetime | None = None
    outcome: AttemptOutcome = AttemptOutcome.OPEN
    message: str = ""
    boot_id: str = ""  # the boot in which it was begun; from the intent on, the one that its intent names
    heartbeats: Mapping[str, datetime] | None = None
    follows: str = ""  # the operation that this one completes; it is no try of its own
    reason: str = ""  # why the operation ended so, in one word
    counts: bool = True  # false where nothing ran: no Pod has touched the node or its Pods

    @property
    def nothing_to_do(self) -> bool:
        """Whether the program says that the operation does not apply to this node: the contract of its message."""
        return self.outcome is AttemptOutcome.REFUSED and self.message.startswith("nothing to do:")

    def before_boot(self, boot_id: str) -> bool:
        """Whether the node has booted since; False where either boot is not known."""
        return bool(self.boot_id and boot_id) and self.boot_id != boot_id

    @property
    def stopped(self) -> bool:
        """Whether a user stopped it before it had touched the node: nothing ran, so it is no attempt that failed."""
        return self.outcome is AttemptOutcome.CANCELLED and self.reason in STOPS


@dataclass(frozen=True, slots=True)
class Block:
    """One reason why nothing starts now; `until` is when that may change by itself."""

    reason: Reason
    message: str
    until: datetime | None = None
    reported: bool = False  # it has lasted so long that users were told


@dataclass(frozen=True, slots=True)
class CaseEvent:
    """One line of the timeline."""

    at: datetime
    reason: Reason
    message: str


class Diagnosis(StrEnum):
    """How collect-diagnostics went; PENDING until it was recorded."""

    PENDING = ""
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


CLAIMED = (Phase.DRAINING, Phase.OPERATING, Phase.VERIFYING, Phase.ESCALATED)


@dataclass(frozen=True, slots=True)
class Case:
    """One unhealthy node, from decision to recovery or hand-over."""

    name: str
    uid: str
    node: str
    node_uid: str
    policy: str
    trigger: Trigger | None
    created: datetime
    version: str = ""
    hold: bool = False
    release: bool = False
    deleting: bool = False
    finalizers: tuple[str, ...] = ()
    phase: Phase = Phase.NEW
    rung: int = 0
    attempts: tuple[Attempt, ...] = ()
    blocks: tuple[Block, ...] = ()
    diagnosis: Diagnosis = Diagnosis.PENDING
    evidence: Mapping[str, object] | None = None
    timeline: tuple[CaseEvent, ...] = ()
    started: datetime | None = None
    ended: datetime | None = None
    reason: Reason | None = None
    message: str = ""
    unreadable: bool = False  # only its head and its node are known: it may be in any phase, and nothing is done to it

    @property
    def finalizer(self) -> bool:
        """Whether our finalizer still keeps the object."""
        return names.CASE_FINALIZER in self.finalizers

    @property
    def claimed(self) -> bool:
        """Whether the case has taken the node: from then on only a user can have removed the taint."""
        return self.unreadable or self.phase in CLAIMED

    @property
    def open(self) -> bool:
        """Whether the case still holds, or may come to hold, its node. An escalated one does until it is released."""
        return self.ended is None

    @property
    def attempt(self) -> Attempt | None:
        """The newest attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def tries(self) -> tuple[Attempt, ...]:
        """The attempts without those that only follow one up, that a user stopped in time, or in which nothing ran."""
        return tuple(attempt for attempt in self.counted if attempt.counts and not attempt.follows)

    @property
    def counted(self) -> tuple[Attempt, ...]:
        """The attempts without those that a user stopped before anything was done."""
        return tuple(attempt for attempt in self.attempts if not attempt.stopped)

    @property
    def newest_counted(self) -> Attempt | None:
        """The newest attempt that was not stopped by a user before anything was done."""
        return self.counted[-1] if self.counted else None

    def runs(self, operation: str) -> bool:
        """Whether this operation is the case's current attempt: no other one may do anything to the node."""
        attempt = self.attempt
        return attempt is not None and attempt.operation == operation and attempt.outcome is AttemptOutcome.OPEN


TIMELINE = 50
MOST_ATTEMPTS = 160  # that a case has room for, those that a user stopped and what follows one up with them


def advance(case: Case, reason: Reason, message: str, now: datetime, phase: Phase | None = None) -> Case:
    """The case with one more line in its (bounded) timeline, and its newest reason, message and phase."""
    timeline = (*case.timeline, CaseEvent(now, reason, message))[-TIMELINE:]
    shown = case.phase if phase is None else phase
    return replace(case, phase=shown, reason=reason, message=message, timeline=timeline)


def slim(case: Case) -> Case:
    """A case as far as decisions and tickets need it: of an ended one no evidence, of its story only why it was held.

    Thousands of them are kept, and nothing is ever written to one that has ended and given its finalizer up.
    """
    if case.open:
        return case
    held = tuple(event for event in case.timeline if event.reason is Reason.SHARED_CAUSE)
    attempts = tuple(replace(attempt, heartbeats=None, boot_id="") for attempt in case.attempts)
    return replace(case, evidence=None, timeline=held, attempts=attempts)


def reason_to_end(case: Case, node: Node | None) -> Reason | None:
    """Why the case must end without having cured the node; None where it need not."""
    if node is None or node.uid != case.node_uid:
        return Reason.NODE_GONE
    if case.deleting:
        return Reason.CASE_DELETED
    if case.phase is Phase.ESCALATED and case.release:
        return Reason.RELEASED_BY_USER
    if case.claimed and node.case_uid != case.uid:
        return Reason.TAINT_REMOVED_BY_USER
    return None


def with_attempt(case: Case, attempt: Attempt) -> Case:
    """The case with its newest attempt replaced, or added where it is another operation."""
    kept = case.attempts[:-1] if case.attempt and case.attempt.operation == attempt.operation else case.attempts
    return replace(case, attempts=(*kept, attempt), rung=attempt.rung)


class OperationPhase(StrEnum):
    """Where an operation stands."""

    PENDING = "Pending"
    DRAINING = "Draining"
    OPERATING = "Operating"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    REFUSED = "Refused"
    CANCELLED = "Cancelled"

    @property
    def outcome(self) -> AttemptOutcome:
        """What the case records; OPEN while the operation has not ended."""
        return AttemptOutcome(self.value) if self.value in _OUTCOMES else AttemptOutcome.OPEN


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on one node. `intent_boot_id` is written before its Pod is made, and never again."""

    name: str
    uid: str
    node: str
    node_uid: str
    case_uid: str
    template: str
    created: datetime
    requested_by: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    deleting: bool = False
    finalizers: tuple[str, ...] = ()
    phase: OperationPhase = OperationPhase.PENDING
    drain_round: int = 0
    drained_at: datetime | None = None
    drain_started: datetime | None = None
    drain_pod: str = ""
    pod: str = ""
    left: int | None = None
    blocked: str = ""
    intent_boot_id: str = ""
    intent_at: datetime | None = None
    finished: datetime | None = None
    reason: str = ""
    message: str = ""

    @property
    def nothing_ran(self) -> bool:
        """Whether it ended before its drain began, or its drain Pod never started."""
        timed_out = self.reason in (Reason.DRAIN_TIMEOUT, Reason.TIMED_OUT)
        return self.phase is OperationPhase.CANCELLED and (self.drain_started is None or timed_out)


_OUTCOMES = frozenset(outcome.value for outcome in AttemptOutcome)
