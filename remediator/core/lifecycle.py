"""The phases of a case and of an operation, and the next step: one table each, with a reason for every row."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from remediator.core.case import Phase
from remediator.core.evidence import Health, Proof
from remediator.core.table import Row, Table


class Tried(Enum):
    """How the newest attempt of a case stands."""

    NONE = auto()
    OPEN = auto()
    REPORTED = auto()  # its operation has ended, the case has not recorded it
    SUCCEEDED = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class CaseObservation:
    """What is observed of one case."""

    ended: bool  # nothing more is tried and the node is given back
    escalated: bool  # it was handed to a user
    leave: bool  # it must end: deleted, released, or a user took our marks off
    pods: bool  # Pods of ours are still there
    marks: bool  # taint, ledger entry, finalizer: anything of ours that must go
    claimed: bool
    diagnosed: bool  # collect-diagnostics was recorded
    health: Health
    tried: Tried
    proof: Proof
    rungs: bool  # something is left to try
    follow: bool  # the newest attempt succeeded, and its template wants another operation after it


class Step(Enum):
    """What a pass over a case does."""

    NOTHING = auto()
    DELETE_PODS = auto()
    RELEASE = auto()  # take the marks off node, ledgers and case
    STOP = auto()  # wait for the running operation to be cancelled or to end
    END = auto()
    CLEAR = auto()  # end the case: the fault went by itself before we did anything
    CLAIM = auto()
    DIAGNOSE = auto()
    START = auto()
    FOLLOW = auto()  # what the operation's template wants done after it
    WATCH = auto()
    RECORD = auto()
    VERIFY = auto()
    RECOVER = auto()
    ESCALATE = auto()


CASE_TABLE: Table[Step] = Table(
    (
        Row(
            {"ended": True, "pods": True},
            Step.DELETE_PODS,
            "First of all: a Pod of an ended case may still act on the node. If the marks went before it, "
            "another case could claim the node beside a Pod that runs.",
        ),
        Row(
            {"ended": True, "marks": True},
            Step.RELEASE,
            "Nothing of ours runs on the node any more, so it can be given back. If the row that does nothing "
            "came first, taint and ledger entries would stay for ever.",
        ),
        Row(
            {"ended": True},
            Step.NOTHING,
            "Nothing of ours is left. All rows below are about open cases; an ended one must not be claimed "
            "or tried again.",
        ),
        Row(
            {"tried": Tried.REPORTED},
            Step.RECORD,
            "The outcome of an operation is recorded before anything else is decided. If the case ended "
            "first, its attempt would stay open, and the heartbeats from which recovery is proven would be "
            "lost.",
        ),
        Row(
            {"leave": True, "tried": Tried.OPEN},
            Step.STOP,
            "A case that must end waits until its operation has been cancelled or has ended. If the case "
            "ended first, the Pods of the operation would be deleted in the middle of their work.",
        ),
        Row(
            {"leave": True},
            Step.END,
            "Nothing runs, so the case can end. It stands above claim, start and escalation: a user who "
            "deletes or releases the case, or takes its taint off, is obeyed at the next step.",
        ),
        Row(
            {"escalated": True},
            Step.NOTHING,
            "A user has the case now. It stands below the rows that end a case, since a release must still "
            "work, and above the rows that act, since nothing is tried after the hand-over.",
        ),
        Row(
            {"claimed": False, "health": Health.HEALTHY},
            Step.CLEAR,
            "The fault has gone before we touched the node. It stands above the claim, or a healthy node "
            "would be taken out of service.",
        ),
        Row(
            {"claimed": False},
            Step.CLAIM,
            "All rows below disturb the node or judge what was done to it, so the node must be ours first. "
            "Health that is Unknown comes here, too: admission holds the case until it is known.",
        ),
        Row(
            {"diagnosed": False},
            Step.DIAGNOSE,
            "Evidence is collected after the claim and before the first operation, which may destroy it: a "
            "reboot empties the kernel log.",
        ),
        Row(
            {"tried": Tried.OPEN},
            Step.WATCH,
            "An operation runs. If a row below came first, the node would be judged in the middle of it, or a "
            "second operation would start beside it.",
        ),
        Row(
            {"follow": True},
            Step.FOLLOW,
            "The operation succeeded, but what completes it has not run yet: after a GPU reset the device "
            "plugin must be restarted. If recovery were judged first, the node would come back without its "
            "GPUs.",
        ),
        Row(
            {"proof": Proof.PASSED},
            Step.RECOVER,
            "The node has proven its health. It stands above every start: nothing more is tried on a healthy "
            "node, and an empty ladder cannot keep it out of service.",
        ),
        Row(
            {"tried": Tried.SUCCEEDED, "proof": Proof.WAITING},
            Step.VERIFY,
            "After a success the condition shows the old fault until its detector has run again. If the next "
            "start came first, a cured node would be operated on again. A failed attempt does not wait here.",
        ),
        Row(
            {"health": Health.UNHEALTHY, "rungs": True},
            Step.START,
            "The fault shows and something is left to try. It stands below all that proves recovery. Health "
            "that is Unknown starts nothing.",
        ),
        Row(
            {"health": Health.UNHEALTHY},
            Step.ESCALATE,
            "The fault shows and nothing is left to try. It stands above the wait for proof, which would only "
            "delay the person who must look.",
        ),
        Row(
            {"proof": Proof.WAITING},
            Step.VERIFY,
            "Neither fault nor health is proven, and the time for proof is not over. The wait ends by itself, "
            "since proof times out.",
        ),
        Row(
            {},
            Step.ESCALATE,
            "Health was not proven in time. The last row answers for all that is left, so that no case waits for ever.",
        ),
    )
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

    NOT_NEEDED = auto()
    RECORDED = auto()  # it succeeded, and the operation's status says so
    ABSENT = auto()
    RUNNING = auto()
    SUCCEEDED = auto()
    FAILED = auto()


class Exit(Enum):
    """How the Pod of an operation stands."""

    ABSENT = auto()
    RUNNING = auto()
    SUCCEEDED = auto()
    FAILED = auto()  # its program said so
    REFUSED = auto()
    LOST = auto()  # it ended without a result: killed, or its node went down


@dataclass(frozen=True, slots=True)
class OperationObservation:
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

    NOTHING = auto()
    DELETE_PODS = auto()
    CANCEL = auto()
    DRAIN = auto()  # create the drain Pod
    DRAINED = auto()  # record that the drain is done
    DRAIN_FAILED = auto()
    WRITE_INTENT = auto()  # after a live read of node and case
    CREATE_POD = auto()
    WAIT = auto()
    SUCCEED = auto()
    FAIL = auto()
    REFUSE = auto()
    TIME_OUT = auto()


OPERATION_TABLE: Table[Move] = Table(
    (
        Row(
            {"ended": True, "pods": True},
            Move.DELETE_PODS,
            "First of all: the outcome is recorded, so the Pods are not needed any more and must not act any longer.",
        ),
        Row(
            {"ended": True},
            Move.NOTHING,
            "Nothing is left to do. All rows below act for an operation that goes on; one that has ended "
            "never acts again.",
        ),
        Row(
            {"intent": False, "ours": False},
            Move.CANCEL,
            "Before the intent the operation has not touched the node. It stands above the rows of the drain, "
            "or a node that was given back would be drained further.",
        ),
        Row(
            {"intent": False, "health": Health.HEALTHY},
            Move.CANCEL,
            "The fault has gone before the point of no return. It stands above the rows of the drain, or a "
            "healthy node would be drained.",
        ),
        Row(
            {"intent": False, "drain": Drain.FAILED},
            Move.DRAIN_FAILED,
            "The drain itself says why it failed. It stands above the time-out, or the reason would only name "
            "the clock.",
        ),
        Row(
            {"intent": False, "overdue": True},
            Move.TIME_OUT,
            "It stands above all rows that wait or go on: neither a drain nor a wait for clear evidence lasts "
            "longer than its time.",
        ),
        Row(
            {"intent": False, "drain": Drain.SUCCEEDED},
            Move.DRAINED,
            "The success of the drain is recorded, which disturbs nobody, so it need not wait for clear "
            "evidence. If the intent came first, the drain's Pod would never be recorded and deleted.",
        ),
        Row(
            {"intent": False, "drain": Drain.RUNNING},
            Move.WAIT,
            "A drain runs. It stands above the intent: the operation starts only on a drained node.",
        ),
        Row(
            {"intent": False, "health": Health.UNKNOWN},
            Move.WAIT,
            "What the node's conditions say proves nothing. It stands above the rows that make a Pod or write "
            "the intent, since nothing is disturbed without proof; the time-out above ends the wait.",
        ),
        Row(
            {"intent": False, "drain": Drain.ABSENT},
            Move.DRAIN,
            "Pods leave the node before it is operated on. It stands above the intent, which must find the "
            "node drained.",
        ),
        Row(
            {"intent": False},
            Move.WRITE_INTENT,
            "The node is ours, faulty and drained, and there is time left. All rows below are about an "
            "operation whose intent is written.",
        ),
        Row(
            {"success": True},
            Move.SUCCEED,
            "From here on the operation's Pod may have run. What the node shows outranks the exit code and "
            "the clock: a reboot kills its own Pod, and a node that came back late has come back.",
        ),
        Row(
            {"exit": Exit.REFUSED},
            Move.REFUSE,
            "The program says that it must not run here. It stands above the time-out: its result is exact, "
            "also when it comes late, and the ladder does not try the rung again.",
        ),
        Row(
            {"exit": Exit.FAILED},
            Move.FAIL,
            "The program says that it failed, and the node does not show success. Waiting for the time-out "
            "would only lose time.",
        ),
        Row(
            {"exit": Exit.SUCCEEDED, "criteria": False},
            Move.SUCCEED,
            "Exit code 0 is success only where the template asks for nothing on the node. Where it does, the "
            "rows below wait until the node shows it.",
        ),
        Row(
            {"exit": Exit.LOST, "criteria": False},
            Move.FAIL,
            "The Pod ended without a result, and nothing on the node can prove success. Where something can, "
            "the Pod may have been killed by the reboot that it asked for, so the rows below wait.",
        ),
        Row(
            {"overdue": True},
            Move.TIME_OUT,
            "It stands below every result, since a result counts also when it comes late, and above the row "
            "that makes the Pod, since none is made after the deadline.",
        ),
        Row(
            {"exit": Exit.ABSENT, "ours": True, "health": Health.UNHEALTHY},
            Move.CREATE_POD,
            "The intent is written and there is no Pod: a crash or a pause came between. The Pod is made only "
            "while the node is ours and shows the fault; else the time-out above ends the operation.",
        ),
        Row(
            {},
            Move.WAIT,
            "The Pod runs, or its effect must still show on the node. The last row answers for all that is "
            "left; the time-out above ends the wait.",
        ),
    )
)


def case_step(observation: CaseObservation) -> Step:
    """What a pass over the case does next."""
    return CASE_TABLE.result(observation)


def operation_move(observation: OperationObservation) -> Move:
    """What a pass over the operation does next."""
    return OPERATION_TABLE.result(observation)
