"""Where a case and an operation stand, and what comes next: two tables, read from the top, first row that fits.

A row names only what it asks about; a last row that asks nothing makes each table total. Nothing here is remembered:
every pass observes afresh, and a crash between two writes only means that the same row fits again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from remediator.core.case import Phase
from remediator.core.evidence import Health, Proof


class Tried(Enum):
    """How the newest attempt of a case stands."""

    NONE = auto()
    OPEN = auto()
    REPORTED = auto()  # its operation has ended, the case has not recorded it
    WORKED = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class CaseSeen:
    """What is observed of one case."""

    ended: bool  # nothing more is tried and the node is given back
    escalated: bool  # a person was called and holds the case now
    leave: bool  # it must end: deleted, released, or a person took our marks away
    pods: bool  # Pods of ours are still there
    marks: bool  # taint, ledger entry, finalizer: anything of ours that must go
    claimed: bool
    diagnosed: bool  # collect-diagnostics was recorded
    health: Health
    tried: Tried
    proof: Proof
    rungs: bool  # something is left to try
    follow: bool  # the newest attempt worked, and something is to be done after it


class Step(Enum):
    """What a pass over a case does."""

    REST = auto()
    SWEEP = auto()  # take Pods away
    RELEASE = auto()  # take marks off
    STOP = auto()  # wait for the running operation to give way
    END = auto()
    CLEAR = auto()  # the fault went by itself before we did anything
    CLAIM = auto()
    DIAGNOSE = auto()
    START = auto()
    FOLLOW = auto()  # what the operation's template wants done after it
    WATCH = auto()
    RECORD = auto()
    VERIFY = auto()
    RECOVER = auto()
    ESCALATE = auto()


Row = tuple[Mapping[str, object], Step]

CASE_ROWS: tuple[Row, ...] = (
    ({"ended": True, "pods": True}, Step.SWEEP),
    ({"ended": True, "marks": True}, Step.RELEASE),
    ({"ended": True}, Step.REST),
    ({"tried": Tried.REPORTED}, Step.RECORD),
    ({"leave": True, "tried": Tried.OPEN}, Step.STOP),
    ({"leave": True}, Step.END),
    ({"escalated": True}, Step.REST),
    ({"claimed": False, "health": Health.HEALTHY}, Step.CLEAR),
    ({"claimed": False}, Step.CLAIM),
    ({"diagnosed": False}, Step.DIAGNOSE),
    ({"tried": Tried.OPEN}, Step.WATCH),
    ({"follow": True}, Step.FOLLOW),
    ({"proof": Proof.PASSED}, Step.RECOVER),
    ({"tried": Tried.WORKED, "proof": Proof.WAITING}, Step.VERIFY),
    ({"health": Health.UNHEALTHY, "rungs": True}, Step.START),
    ({"health": Health.UNHEALTHY}, Step.ESCALATE),
    ({"proof": Proof.WAITING}, Step.VERIFY),
    ({}, Step.ESCALATE),
)

SHOWN: Mapping[Step, Phase] = {
    Step.CLAIM: Phase.HELD,
    Step.DIAGNOSE: Phase.DRAINING,
    Step.START: Phase.DRAINING,
    Step.WATCH: Phase.DRAINING,
    Step.FOLLOW: Phase.DRAINING,
    Step.VERIFY: Phase.VERIFYING,
    Step.CLEAR: Phase.RECOVERED,
    Step.RECOVER: Phase.RECOVERED,
    Step.ESCALATE: Phase.ESCALATED,
    Step.END: Phase.CANCELLED,
}


class Drain(Enum):
    """How the drain of an operation stands."""

    DONE = auto()  # not asked for, or recorded
    ABSENT = auto()
    RUNNING = auto()
    WORKED = auto()
    FAILED = auto()


class Exit(Enum):
    """How the Pod of an operation stands."""

    ABSENT = auto()
    RUNNING = auto()
    DONE = auto()
    FAILED = auto()  # its program said so
    REFUSED = auto()
    LOST = auto()  # it ended without a word: killed, or its node went down


@dataclass(frozen=True, slots=True)
class OperationSeen:
    """What is observed of one operation."""

    ended: bool
    pods: bool
    ours: bool  # its case stands, is not leaving, and the node is the same and carries our claim
    intent: bool
    health: Health
    drain: Drain
    exit: Exit
    criteria: bool  # success shows on the node and outranks the exit code
    success: bool
    overdue: bool


class Move(Enum):
    """What a pass over an operation does."""

    REST = auto()
    SWEEP = auto()
    CANCEL = auto()
    DRAIN = auto()  # make the drain Pod
    DRAINED = auto()  # record that the drain is done
    DRAIN_FAILED = auto()
    OPERATE = auto()  # look again, write the intent
    LAUNCH = auto()  # make the Pod
    WAIT = auto()
    SUCCEED = auto()
    FAIL = auto()
    REFUSE = auto()
    TIME_OUT = auto()


OPERATION_ROWS: tuple[tuple[Mapping[str, object], Move], ...] = (
    ({"ended": True, "pods": True}, Move.SWEEP),
    ({"ended": True}, Move.REST),
    ({"intent": False, "ours": False}, Move.CANCEL),
    ({"intent": False, "health": Health.HEALTHY}, Move.CANCEL),
    ({"intent": False, "drain": Drain.FAILED}, Move.DRAIN_FAILED),
    ({"intent": False, "overdue": True}, Move.TIME_OUT),
    ({"intent": False, "drain": Drain.WORKED}, Move.DRAINED),
    ({"intent": False, "drain": Drain.RUNNING}, Move.WAIT),
    ({"intent": False, "health": Health.UNKNOWN}, Move.WAIT),
    ({"intent": False, "drain": Drain.ABSENT}, Move.DRAIN),
    ({"intent": False}, Move.OPERATE),
    ({"success": True}, Move.SUCCEED),
    ({"exit": Exit.REFUSED}, Move.REFUSE),
    ({"exit": Exit.FAILED}, Move.FAIL),
    ({"exit": Exit.DONE, "criteria": False}, Move.SUCCEED),
    ({"exit": Exit.LOST, "criteria": False}, Move.FAIL),
    ({"overdue": True}, Move.TIME_OUT),
    ({"exit": Exit.ABSENT, "ours": True, "health": Health.UNHEALTHY}, Move.LAUNCH),
    ({}, Move.WAIT),
)


def case_step(seen: CaseSeen) -> Step:
    """What a pass over the case does next."""
    return next(step for asks, step in CASE_ROWS if _fits(seen, asks))


def operation_move(seen: OperationSeen) -> Move:
    """What a pass over the operation does next."""
    return next(move for asks, move in OPERATION_ROWS if _fits(seen, asks))


def _fits(seen: CaseSeen | OperationSeen, asks: Mapping[str, object]) -> bool:
    return all(getattr(seen, name) == value for name, value in asks.items())
