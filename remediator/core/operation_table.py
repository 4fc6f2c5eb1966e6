"""What is observed of an operation, and what comes next: one table, with the reason of every row."""

from dataclasses import dataclass
from enum import Enum, auto

from remediator.core.health import Health
from remediator.core.table import Row, Table


class DrainState(Enum):
    """How the drain of an operation stands."""

    NOT_NEEDED = auto()
    RECORDED = auto()  # it succeeded, and the operation's status says so
    ABSENT = auto()
    RUNNING = auto()
    SUCCEEDED = auto()
    FAILED = auto()  # its program said so
    LOST = auto()  # its Pod ended without a result: killed, preempted, evicted


class OperationPodState(Enum):
    """How the Pod of an operation stands."""

    ABSENT = auto()
    RUNNING = auto()
    SUCCEEDED = auto()
    FAILED = auto()  # its program said so
    REFUSED = auto()
    LOST = auto()  # it ended without a result: killed, or its node went down
    GONE = auto()  # it was there, and somebody has taken its object away by force


@dataclass(frozen=True, slots=True)
class OperationObservation:
    """What is observed of one operation."""

    ended: bool
    pods: bool
    current: bool  # it is the attempt that its case makes now
    stopped: bool  # a user, or the policy's mode, lets nothing new begin
    ours: bool  # its case stands, is not leaving, and the node is the same and carries our claim
    intent: bool
    rebooted: bool  # the node has booted since the attempt was begun
    health: Health  # UNHEALTHY where the node calls for it: for a probe that is a node whose conditions are healthy
    drain: DrainState
    exit: OperationPodState
    criteria: bool  # success shows on the node and outranks the exit code
    success: bool
    overdue: bool


class Move(Enum):
    """What a pass over an operation does."""

    NOTHING = auto()
    DELETE_PODS = auto()
    REJECT = auto()  # no case asks for it
    CANCEL = auto()
    DRAIN = auto()  # create the drain Pod
    DRAINED = auto()  # record that the drain is done
    DRAIN_AGAIN = auto()  # a new round in place of a drain Pod that was lost
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
            {"intent": False, "current": False},
            Move.REJECT,
            "Somebody made it beside the attempts of the case, past every guard. It stands above all rows that act, "
            "and above the next one, so that the reason is the right one.",
        ),
        Row(
            {"intent": False, "ours": False},
            Move.CANCEL,
            "Before the intent the operation has not touched the node. It stands above the rows of the drain, "
            "or a node that was given back would be drained further.",
        ),
        Row(
            {"intent": False, "stopped": True},
            Move.CANCEL,
            "A user stops the case, and nothing has been done to the node yet. The case waits and tries again; it "
            "stands above the time-out, or the wait would count as a failure of the node.",
        ),
        Row(
            {"intent": False, "rebooted": True},
            Move.CANCEL,
            "The node has booted since the attempt was begun: a reboot that was given up came late, or the node fell. "
            "What it shows may be from before, so the case waits for proof first. It stands above drain and intent, or "
            "the node would be rebooted once more for a fault that may be cured.",
        ),
        Row(
            {"intent": False, "health": Health.HEALTHY},
            Move.CANCEL,
            "The fault has gone before the point of no return. It stands above the rows of the drain, or a "
            "healthy node would be drained.",
        ),
        Row(
            {"intent": False, "drain": DrainState.FAILED},
            Move.DRAIN_FAILED,
            "The drain itself says why it failed. It stands above the time-out, or the reason would only name "
            "the clock.",
        ),
        Row(
            {"intent": False, "drain": DrainState.SUCCEEDED},
            Move.DRAINED,
            "The success of the drain is recorded, which disturbs nobody, so it need not wait for clear "
            "evidence. It stands above the time-out: what has worked counts also when nobody looked in time.",
        ),
        Row(
            {"intent": False, "overdue": True},
            Move.TIME_OUT,
            "It stands above all rows that wait or go on: neither a drain nor a wait for clear evidence lasts "
            "longer than its time.",
        ),
        Row(
            {"intent": False, "drain": DrainState.LOST},
            Move.DRAIN_AGAIN,
            "Something ended the drain's Pod, not the drain: that is no fault of the node, and another Pod goes on "
            "where it was. It stands below the time-out, or Pods would be made for ever.",
        ),
        Row(
            {"intent": False, "drain": DrainState.RUNNING},
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
            {"intent": False, "drain": DrainState.ABSENT},
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
            {"exit": OperationPodState.REFUSED},
            Move.REFUSE,
            "The program says that it must not run here. It stands above the time-out: its result is exact, "
            "also when it comes late, and the ladder does not try the rung again.",
        ),
        Row(
            {"exit": OperationPodState.FAILED},
            Move.FAIL,
            "The program says that it failed, and the node does not show success. Waiting for the time-out "
            "would only lose time.",
        ),
        Row(
            {"exit": OperationPodState.SUCCEEDED, "criteria": False},
            Move.SUCCEED,
            "Exit code 0 is success only where the template asks for nothing on the node. Where it does, the "
            "rows below wait until the node shows it.",
        ),
        Row(
            {"exit": OperationPodState.LOST, "criteria": False},
            Move.FAIL,
            "The Pod ended without a result, and nothing on the node can prove success. Where something can, "
            "the Pod may have been killed by the reboot that it asked for, so the rows below wait.",
        ),
        Row(
            {"overdue": True},
            Move.TIME_OUT,
            "It stands below every result, since a result counts also when it comes late, and above the row "
            "that makes the Pod, since none is made after the deadline. The time is over, too, where a kubelet has "
            "ended a Pod that had not started: a kubelet does not know of time in which nobody could act.",
        ),
        Row(
            {"exit": OperationPodState.ABSENT, "ours": True, "health": Health.UNHEALTHY},
            Move.CREATE_POD,
            "The intent is written and there was no Pod yet: a crash or a pause came between. The Pod is made only "
            "while the node is ours and shows the fault; else the time-out above ends the operation.",
        ),
        Row(
            {},
            Move.WAIT,
            "The Pod runs, or its effect must still show on the node. Or it was there, and somebody has taken its "
            "object away by force, with our finalizer: its program may go on, so no other one is made, and neither "
            "the next try nor the release of the node comes before its time is over. The last row answers for all "
            "that is left; the time-out above ends the wait.",
        ),
    )
)


def operation_move(observation: OperationObservation) -> Move:
    """What a pass over the operation does next."""
    return OPERATION_TABLE.result(observation)
