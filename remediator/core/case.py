"""Cases as they are stored in the API server."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from remediator.core import names
from remediator.core.gpus import Gpu
from remediator.core.jobs_at_stake import BlastRadius
from remediator.core.node import Gpus, Node
from remediator.core.reasons import STOPS, Reason
from remediator.core.sharing import Layout


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


# Each look-up of a member takes Python a fifth of a microsecond; these are asked for in every decision.
_CANCELLED, _BY_DRAIN = AttemptOutcome.CANCELLED, (Reason.DRAIN_FAILED, Reason.DRAIN_TIMEOUT)
_BY_USERS = STOPS | {Reason.NOT_CURRENT_ATTEMPT}


@dataclass(frozen=True, slots=True)
class Trigger:
    """The condition that the case was opened for."""

    condition: str
    status: str
    reason: str
    message: str
    since: datetime
    cause: str = ""  # what the policy compared with other nodes then, where that is not the message
    devices: Gpus = ()  # GPUs that the node was known to have then
    layout: Layout = ()  # how they were divided and shared then


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
    probe: bool = False  # it only proves health: it is no try, and cures nothing
    reason: str = ""  # why the operation ended so, in one word
    counts: bool = True  # false where nothing ran: no Pod has touched the node or its Pods

    @property
    def nothing_to_do(self) -> bool:
        """Whether the program says that the operation does not apply to this node: the contract of its message."""
        return self.outcome is AttemptOutcome.REFUSED and self.message.startswith("nothing to do:")

    @property
    def kept_by_pods(self) -> bool:
        """Whether it ended in its drain, so that the operation itself was never run."""
        return self.reason in _BY_DRAIN

    @property
    def operated(self) -> bool:
        """Whether the operation itself ran, or may have: it did not end in its drain, nor before it began."""
        return self.counts and not self.kept_by_pods and self.outcome is not _CANCELLED

    def before_boot(self, boot_id: str) -> bool:
        """Whether the node has booted since; False where either boot is not known."""
        return bool(self.boot_id and boot_id) and self.boot_id != boot_id

    @property
    def stopped(self) -> bool:
        """Whether a user stopped it before it had touched the node: nothing ran, so it is no attempt that failed.

        So does one who takes the status of the case away.
        """
        return self.outcome is _CANCELLED and self.reason in _BY_USERS

    @property
    def is_try(self) -> bool:
        """Whether it is a try of its rung: it follows none up, no user stopped it in time, and something ran."""
        return self.counts and not (self.follows or self.probe or self.stopped)


@dataclass(frozen=True, slots=True)
class Block:
    """One reason why nothing starts now; `until` is when that may change by itself."""

    reason: Reason
    message: str
    until: datetime | None = None
    reported: bool = False  # it has lasted so long that users were told
    since: datetime | None = None  # since when this reason holds the case; None until it is shown, and of old versions


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


class KeepOut(NamedTuple):
    """Until when, and why, a user keeps a node out of service once their operation on it has succeeded."""

    until: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Manual:
    """What a user has asked for by a NodeOperation: a case without a policy carries it out."""

    operation: str  # the user's NodeOperation
    uid: str
    template: str
    parameters: Mapping[str, str]
    requested_by: str = ""
    source: str = ""  # the kind of another controller's object that has asked for it; "": a user has


@dataclass(frozen=True, slots=True)
class NewNode:
    """The gate at which a new node waits: its taint, and the machine that must pass it."""

    taint: str
    machine: str


@dataclass(frozen=True, slots=True)
class PastCase:
    """One line of a history: an earlier case of the node or the board, as a person is shown it."""

    case: str
    node: str
    policy: str
    ended: datetime
    operations: tuple[str, ...]
    outcome: Phase


class SetBy(NamedTuple):
    """Who has set what a user decides about a case, as admission sees to; "": nobody is known."""

    hold: str = ""
    release: str = ""
    approved: str = ""
    retry: str = ""


class HoldTerms(NamedTuple):
    """When a user lets a hold end by itself, and why they hold, where they say so; that of a comment ends elsewhere."""

    ends: datetime | None = None
    reason: str = ""

    def __str__(self) -> str:
        until = f" until {self.ends:%Y-%m-%d %H:%M:%S} UTC" if self.ends else ""
        return until + (f": {self.reason}" if self.reason else "")


NOBODY, NO_TERMS = SetBy(), HoldTerms()
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
    manual: Manual | None = None  # what it carries out for a user; then it has no policy
    keep_out: KeepOut | None = None  # its user keeps the node afterwards
    new_node: NewNode | None = None  # it repairs nothing: it asks for the proof of a node that has never worked
    version: str = ""
    hold: bool = False
    hold_terms: HoldTerms = NO_TERMS
    release: bool = False
    approved: bool = False
    retry: int = 0  # how often users have asked that it tries again
    set_by: SetBy = NOBODY
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
    healthy_since: datetime | None = None  # of one that a person has: since when its node has looked healthy
    gpus: tuple[Gpu, ...] = ()  # those that its condition names, as the diagnostics found them
    history: tuple[PastCase, ...] = ()  # for the person who was called because of it, oldest first
    blast: BlastRadius | None = None  # what its start would end, or has ended; None where nobody has looked
    workload: str = ""  # of an ended one, which keeps no names of jobs: the only job that it named
    retries: int = 0  # how many of these were answered
    retried: datetime | None = None  # when it began to try again
    retried_after: int = 0  # how many attempts it had then: those do not count for its rungs
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
    def takes_capacity(self) -> bool:
        """Whether budgets and breakers count it: a new node has never worked, so that nobody misses it."""
        return self.new_node is None

    @property
    def open(self) -> bool:
        """Whether the case still holds, or may come to hold, its node. An escalated one does until it is released."""
        return self.ended is None

    @property
    def wants_retry(self) -> bool:
        """Whether a user asks that it tries again, which nobody has answered."""
        return self.phase is Phase.ESCALATED and self.open and self.retry > self.retries

    def trying_again(self, now: datetime) -> "Case":
        """The case as it is when it begins to try again."""
        return replace(self, retried=now, retried_after=len(self.attempts))

    @property
    def retry_to_come(self) -> bool:
        """Whether a user let it try again, and nothing was begun since."""
        return self.retried is not None and len(self.attempts) <= self.retried_after

    @property
    def attempt(self) -> Attempt | None:
        """The newest attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def tried(self) -> bool:
        """Whether it has any of the attempts in `tries`."""
        for attempt in self.attempts:  # noqa: SIM110 asked of all cases of a node: a generator costs more
            if attempt.is_try:
                return True
        return False

    @property
    def tries(self) -> tuple[Attempt, ...]:
        """The attempts without those that only follow one up, that a user stopped in time, or in which nothing ran."""
        return tuple([attempt for attempt in self.attempts if attempt.is_try])

    @property
    def has_operated(self) -> bool:
        """Whether it has any of the attempts in `operated`."""
        for attempt in self.attempts:  # noqa: SIM110 asked of all cases of a node: a generator costs more
            if attempt.is_try and attempt.operated:
                return True
        return False

    @property
    def operated(self) -> tuple[Attempt, ...]:
        """The tries whose operation itself ran: none that ended in its drain, or was cancelled before it began."""
        return tuple([attempt for attempt in self.attempts if attempt.is_try and attempt.operated])

    @property
    def counted(self) -> tuple[Attempt, ...]:
        """The attempts without probes, and without those that a user stopped before anything was done."""
        return tuple(attempt for attempt in self.attempts if not attempt.stopped and not attempt.probe)

    @property
    def newest_counted(self) -> Attempt | None:
        """The newest attempt that is no probe and was not stopped by a user before anything was done."""
        return self.counted[-1] if self.counted else None

    @property
    def sole_workload(self) -> str:
        """The only job that had GPUs on the node when it was taken; "" where there was none, more, or nobody looked."""
        return str(self.blast.jobs[0]) if self.blast and self.blast.jobs and self.blast.count == 1 else self.workload

    def runs(self, operation: str) -> bool:
        """Whether this operation is the case's current attempt: no other one may do anything to the node."""
        attempt = self.attempt
        return attempt is not None and attempt.operation == operation and attempt.outcome is AttemptOutcome.OPEN


TIMELINE = 50
MOST_RETRIES = 1000  # what spec.retry may be at most
MOST_ATTEMPTS = 160  # that a case has room for, those that a user stopped and what follows one up with them


def advance(case: Case, reason: Reason, message: str, now: datetime, phase: Phase | None = None) -> Case:
    """The case with one more line in its (bounded) timeline, and its newest reason, message and phase."""
    timeline = (*case.timeline, CaseEvent(now, reason, message))[-TIMELINE:]
    shown = case.phase if phase is None else phase
    return replace(case, phase=shown, reason=reason, message=message, timeline=timeline)


# Why a case went to a person; and of these, where nobody could tell whether its node is healthy.
NOT_TOLD = frozenset({Reason.HEALTH_UNKNOWN, Reason.POLICY_MISSING, Reason.POLICY_UNREADABLE})
_HANDED_OVER = NOT_TOLD | {
    Reason.LADDER_EXHAUSTED,
    Reason.ATTEMPTS_SPENT,
    Reason.VERIFY_TIMEOUT,
    Reason.RELAPSED,
    Reason.LEMON,
}


def handed_over(case: Case) -> Reason | None:
    """Why a case that is Escalated went to a person, by what its timeline says last; None where it does not tell."""
    if case.phase is not Phase.ESCALATED:
        return None
    return next((event.reason for event in reversed(case.timeline) if event.reason in _HANDED_OVER), None)


def slim(case: Case) -> Case:
    """A case as far as decisions and tickets need it: of an ended one no evidence, of its story only why it was held,
    and that it was escalated since nobody could tell.

    Of the jobs that it has ended their number and their GPU-hours stay, not their names.

    Thousands of them are kept, and nothing is ever written to one that has ended and given its finalizer up.
    """
    if case.open:
        return case
    kept = {Reason.SHARED_CAUSE, handed_over(case)} & {Reason.SHARED_CAUSE, *NOT_TOLD}
    story = tuple(event for event in case.timeline if event.reason in kept)
    attempts = tuple(replace(attempt, heartbeats=None, boot_id="") for attempt in case.attempts)
    workload = case.sole_workload
    ended = replace(case.blast, jobs=()) if case.blast and case.blast.count and case.tries else None
    return replace(case, evidence=None, timeline=story, attempts=attempts, blast=ended, workload=workload)


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
    return _gate_is_gone(case.new_node, node) if case.new_node else None


def _gate_is_gone(gate: NewNode, node: Node) -> Reason | None:
    """Why the case of a new node has nobody left to ask for a proof."""
    if node.machine and node.machine != gate.machine:
        return Reason.NODE_GONE
    return None if gate.taint in node.gates else Reason.ADMITTED_BY_USER


def release_command(case: Case) -> str:
    """The command that gives the node of an escalated case back."""
    return f"""kubectl patch noderemediation {case.name} --type=merge -p '{{"spec":{{"release":true}}}}'"""


def with_attempt(case: Case, attempt: Attempt) -> Case:
    """The case with its newest attempt replaced, or added where it is another operation."""
    kept = case.attempts[:-1] if case.attempt and case.attempt.operation == attempt.operation else case.attempts
    return replace(case, attempts=(*kept, attempt), rung=attempt.rung)
