"""Policies: what is wrong with a node, where, and what to try."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from remediator.core.node import Node, NodeCondition, Status
from remediator.core.selector import Selector
from remediator.core.window import Window


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
        return _RANKS[self]


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


class Urgency(StrEnum):
    """Whether running work may be disturbed. NEVER: nothing is done to the node, its cases only escalate.

    WHEN_IDLE: only once no Pod works on the node, or when the policy's deadline is over.
    """

    NOW = "Now"
    WHEN_IDLE = "WhenIdle"
    NEVER = "Never"


class Release(StrEnum):
    """Who gives a node back whose ladder is spent and that has proven its health since."""

    MANUAL = "Manual"
    WHEN_HEALTHY = "WhenHealthy"


class Approval(StrEnum):
    """Whether a person must approve each case before anything starts."""

    NONE = "None"
    REQUIRED = "Required"


class TicketWhen(StrEnum):
    """Which cases of a policy get a ticket."""

    ALWAYS = "Always"
    ON_ESCALATION = "OnEscalation"
    NEVER = "Never"


@dataclass(frozen=True, slots=True)
class Clause:
    """One condition that must hold: `reasons` empty means any reason.

    `stale_after`: how long after its heartbeat it is believed; None for as long as any other. `reporter`: the type of
    the Condition that says whether those who write it are alive; "" where nobody is asked.
    """

    condition: str
    status: Status = Status.TRUE
    reasons: frozenset[str] = frozenset()
    stale_after: timedelta | None = None
    reporter: str = ""

    @property
    def on_change(self) -> bool:
        """Whether it is written only when it changes: then the heartbeats of its reporter count as its own."""
        return self.stale_after == timedelta(0)

    def met_by(self, condition: NodeCondition) -> bool:
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


class InventoryMode(StrEnum):
    """Whether a node that shows fewer devices than before its case counts as recovered. KEEP: it does not."""

    KEEP = "Keep"
    IGNORE = "Ignore"


@dataclass(frozen=True, slots=True)
class Verify:
    """What a node must show after an operation before it is given back."""

    settle: timedelta
    fresh: timedelta
    timeout: timedelta
    probe: str = ""  # the operation that must succeed on the healthy node
    inventory: InventoryMode = InventoryMode.KEEP


MESSAGE, REASON, KERNEL, DRIVER = "message", "reason", "kernelVersion", "driverVersion"


@dataclass(frozen=True, slots=True)
class Correlation:
    """So many nodes that have what `by` names in common, begun within this time, have one cause.

    `by`: "message" and "reason" of the condition, "kernelVersion" and "driverVersion" of the node, and keys of node
    labels; all of them must be the same.
    """

    nodes: int
    within: timedelta
    by: tuple[str, ...] = (MESSAGE,)


@dataclass(frozen=True, slots=True)
class Confirm:
    """The second source that must agree: a query of PromQL in which {{node}} stands for the node, and how old a sample
    may be.
    """

    query: str
    within: timedelta


@dataclass(frozen=True, slots=True)
class BlastLimit:
    """What a start may end at most, where nobody approves more; None: any number."""

    jobs: int | None = None
    gpu_hours: int | None = None


@dataclass(frozen=True, slots=True)
class Admit:
    """New nodes work only once the operation `probe` has succeeded on them: until then they carry the taint."""

    probe: str
    taint: str


@dataclass(frozen=True, slots=True)
class IdleTest:
    """The operation `probe` is tried on idle nodes while the window is open, on so many at once at most."""

    probe: str
    share: int
    window: Window
    percent: bool = False  # `share` is one of the nodes that the policy selects


@dataclass(frozen=True, slots=True)
class Lemon:
    """After so many cases of a node, or of a board, within this time the next one escalates instead of a repair."""

    cases: int
    window: timedelta


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

    def stays_open(self, closed: datetime | None, now: datetime) -> bool:
        """Whether it is open, and no user has closed it since; a time that is still to come closes it only then."""
        since = closed if closed is not None and closed <= now else None
        return self.opened is not None and (since is None or since < self.opened)


NEVER_FAILED = FailureBreaker()
# Each look-up of a member takes Python a fifth of a microsecond; these are asked for in every decision.
_ENFORCE, _NEVER = Mode.ENFORCE, Urgency.NEVER


class CriterionState(StrEnum):
    """What a policy does by a criterion that is new in a release. QUIET: it shows it; MUTED: too many nodes show it."""

    QUIET = "Quiet"
    MUTED = "Muted"
    ACTS = "Acts"


@dataclass(frozen=True, slots=True)
class NewCriterion:
    """A criterion that is new in a release, as the status of a policy says: since when it is known there, until when it
    is only shown, and when so many nodes showed it last that it was muted.
    """

    criterion: str
    state: CriterionState
    since: datetime
    until: datetime
    shared: datetime | None = None


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
    idle_deadline: timedelta | None = None  # how long WHEN_IDLE waits; None: for ever
    windows: tuple[Window, ...] = ()  # starts only inside of one of them; none: at any time
    approval: Approval = Approval.NONE
    ticket: TicketWhen = TicketWhen.NEVER
    route: str = ""
    correlation: Correlation | None = None
    confirm: Confirm | None = None
    require_spare_gpus: bool = False  # the Pods of a node must fit elsewhere before it is taken
    max_blast_radius: BlastLimit | None = None  # where more would end, a person approves the case first
    relapse: timedelta | None = None  # so soon after its last case a new one starts one rung higher
    lemon: Lemon | None = None
    admit: Admit | None = None  # what new nodes must pass
    idle_test: IdleTest | None = None
    generation: int = 0
    closed_at: datetime | None = None  # when a user closed the breaker on failures last
    breaker: FailureBreaker = NEVER_FAILED
    readiness: Readiness | None = None  # what its status says; None where nothing was written yet
    selected: int | None = None  # how many nodes, as its status says; None where nothing was written yet
    created: datetime | None = None
    trusts: frozenset[str] = frozenset()  # new criteria on which a user lets it act at once
    criteria: tuple[NewCriterion, ...] = ()  # what its status says of new criteria
    uid: str = field(default="", compare=False)
    version: str = ""
    release: Release = Release.MANUAL
    manual: bool = False  # made for a case that a user asks for: that is all its fault
    unreadable: bool = False  # nobody knows what it asks about: it proves nothing, and starts nothing

    def selects(self, node: Node) -> bool:
        """Whether the policy applies to this node."""
        return self.selector.matches(node.labels)

    @property
    def spec(self) -> "Policy":
        """What its author wrote, without what the status and the versions say."""
        return replace(self, readiness=None, breaker=NEVER_FAILED, selected=None, criteria=(), version="", generation=0)

    @property
    def watches(self) -> tuple[object, ...]:
        """All of it that a decision about a node rests on: while this is the same, no node needs another look."""
        return self.selector, self.when, self.mode, self.urgency, self.severity, self.admit

    @property
    def asks_unknown(self) -> bool:
        """Whether it is about nodes whose kubelet does not report: then its operations run elsewhere."""
        return any(clause.status is Status.UNKNOWN for when in self.when for clause in when.clauses)

    @property
    def acts(self) -> bool:
        """Whether its cases may disturb a node. Those of a policy that only watches never hold another one."""
        return self.mode is _ENFORCE and self.urgency is not _NEVER
