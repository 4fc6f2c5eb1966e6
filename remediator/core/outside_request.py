"""Repairs that other controllers ask for, each by an object of its own kind, and what a pass over one does. Pure.

Each gets one NodeOperation, as if a user had asked for it: its case passes every guard. How that ends is written into
the status of the object; who has asked deletes it, and decides what is next.
"""

from dataclasses import dataclass
from enum import Enum, auto

from remediator.core import names
from remediator.core.node import Node
from remediator.core.operation import Operation, OperationPhase
from remediator.core.table import Row, Table

WHAT = "request"
NVSENTINEL = "NVSentinel"
NODE_HEALTH_CHECK = "NodeHealthCheck"
CORDON_BY = "k8saas.nvidia.com/cordon-by"  # the label by which NVSentinel marks the nodes that it has cordoned


class Answered(Enum):
    """What the status of the object says of its repair."""

    NOTHING = auto()
    UNDER_WAY = auto()
    ENDED = auto()


class OperationProgress(Enum):
    """How the NodeOperation of the object stands."""

    ABSENT = auto()
    OPEN = auto()  # or it is deleted, and its case still works on the node
    OVER = auto()


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of the object, as we write it."""

    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine of Cluster API that owns the object, and knows its node."""

    api_version: str
    name: str


@dataclass(frozen=True, slots=True)
class OutsideRequest:
    """One such object. `template`: the operation that it asks for; `released`: whether the node is ours to repair."""

    source: str  # the setting that lets its kind in
    namespace: str
    name: str
    uid: str
    version: str
    node: str  # "" where only its machine knows
    template: str
    requester: str
    machine: Machine | None = None
    deleting: bool = False
    timed_out: bool = False  # who has asked waits no longer
    released: bool = True
    only_known: bool = False  # one whose operation has no template is meant for somebody else
    finalizers: tuple[str, ...] = ()
    answered: Answered = Answered.NOTHING

    @property
    def operation(self) -> str:
        """The name of its NodeOperation: the same from every replica, and after every crash."""
        return names.name(self.source, WHAT, self.uid)

    @property
    def held(self) -> bool:
        """Whether it waits for us before it goes."""
        return names.POD_FINALIZER in self.finalizers

    @property
    def key(self) -> str:
        """As its informer has it."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class OutsideObservation:
    """What is observed of one."""

    deleting: bool
    withdrawn: bool  # deleted, or no longer waited for
    held: bool
    answered: Answered
    operation: OperationProgress
    released: bool
    meant: bool  # for us, and not for another system
    node: bool  # the node that it names is there


class OutsideStep(Enum):
    """What a pass over it does."""

    NOTHING = auto()
    TAKE_BACK = auto()  # delete its NodeOperation
    LET_GO = auto()  # take our finalizer off
    ANSWER = auto()  # say how its NodeOperation has ended
    SHOW = auto()  # say how far its NodeOperation is
    GONE = auto()  # say that its NodeOperation was taken back
    REFUSE = auto()  # say that there is no such node
    HOLD = auto()  # put our finalizer on
    ASK = auto()  # make its NodeOperation


OUTSIDE_TABLE: Table[OutsideStep] = Table(
    (
        Row(
            {"deleting": False, "answered": Answered.ENDED},
            OutsideStep.NOTHING,
            "Who has asked was told how it ended, and decides what is next: another try is another object.",
        ),
        Row(
            {"withdrawn": True, "operation": OperationProgress.OPEN},
            OutsideStep.TAKE_BACK,
            "Nobody waits for it any more. Its case ends as soon as nothing runs on the node, and then its operation "
            "is gone; the rows below wait for that.",
        ),
        Row(
            {"deleting": True, "held": True},
            OutsideStep.LET_GO,
            "Nothing of ours works on the node for it any more, so it may go.",
        ),
        Row({"deleting": True}, OutsideStep.NOTHING, "It goes, and waits for others, not for us."),
        Row(
            {"operation": OperationProgress.OVER},
            OutsideStep.ANSWER,
            "Its operation has ended. It stands above the rows that ask, or what was done would be done again.",
        ),
        Row(
            {"operation": OperationProgress.OPEN}, OutsideStep.SHOW, "Its case goes on under the guards of every case."
        ),
        Row(
            {"answered": Answered.UNDER_WAY},
            OutsideStep.GONE,
            "Its operation was made, and is not there any more: somebody has taken it back, so it is not done again.",
        ),
        Row({"withdrawn": True}, OutsideStep.NOTHING, "Nobody waits for it any more, and nothing of it was begun."),
        Row({"released": False}, OutsideStep.NOTHING, "Who has asked still works on the node: it is not ours yet."),
        Row(
            {"meant": False},
            OutsideStep.NOTHING,
            "It asks for what has no template here, so it is for another system.",
        ),
        Row(
            {"node": False},
            OutsideStep.REFUSE,
            "There is no such node, and a namesake that comes later is another one.",
        ),
        Row(
            {"held": False},
            OutsideStep.HOLD,
            "It stands above the row that asks: an object that is deleted must wait until nothing works on its node.",
        ),
        Row({}, OutsideStep.ASK, "The node is there, it is ours to repair, and nothing was asked for yet."),
    )
)


def asked(operation: Operation | None, *, working: bool) -> OperationProgress:
    """`working`: whether a case that was opened for it goes on."""
    if operation is None:
        return OperationProgress.OPEN if working else OperationProgress.ABSENT
    return OperationProgress.OPEN if operation.finished is None else OperationProgress.OVER


def observe(request: OutsideRequest, operation: OperationProgress, *, node: bool, known: bool) -> OutsideObservation:
    """`known`: whether there is a template for what it asks for."""
    return OutsideObservation(
        deleting=request.deleting,
        withdrawn=request.deleting or request.timed_out,
        held=request.held,
        answered=request.answered,
        operation=operation,
        released=request.released,
        meant=known or not request.only_known,
        node=node,
    )


def step(observation: OutsideObservation) -> OutsideStep:
    """What a pass over it does next."""
    return OUTSIDE_TABLE.result(observation)


def succeeded(operation: Operation) -> bool:
    """Whether what was asked for was done, and the node given back."""
    return operation.phase is OperationPhase.SUCCEEDED


def cordoned_by_who_asks(requested_by: str, node: Node) -> bool:
    """Whether the cordon of the node is that of NVSentinel, which has asked for the repair and waits for its end."""
    return requested_by.startswith(f"{NVSENTINEL} ") and node.labels.get(CORDON_BY) == NVSENTINEL


def no_node(request: OutsideRequest) -> str:
    """Why it is refused."""
    machine = f", nor has machine {request.machine.name} one" if request.machine else ""
    return f"no node {request.node or request.name}{machine}; make another object once it is there"


TAKEN_BACK = "its NodeOperation was deleted before its end; look at the node, then make another object"
