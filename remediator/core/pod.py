"""Pods of our operations."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, StrEnum, auto

from remediator.core import names


class PodPhase(StrEnum):
    """What a Pod's status says."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class ContainerEnd(Enum):
    """What a kubelet says of the end of a container."""

    NONE = auto()  # nothing: it may not have begun
    FORGOTTEN = auto()  # an end that it has not seen, and no begin: what the container has waited for is gone with it
    RAN = auto()  # an end after it has begun


EXPIRED = "DeadlineExceeded"  # a kubelet's word for the end of activeDeadlineSeconds


@dataclass(frozen=True, slots=True)
class Pod:
    """One Pod. `exit_code` is that of its first container once ended; -1 where the kubelet does not know it."""

    name: str
    namespace: str
    uid: str
    node: str
    phase: PodPhase
    operation_uid: str = ""
    case_uid: str = ""
    template: str = ""
    exit_code: int | None = None
    message: str = ""
    reason: str = ""
    waiting: str = ""  # why a container of it has not started, in the kubelet's word
    container_end: ContainerEnd = ContainerEnd.NONE  # of its first one
    disrupted: str = ""  # why Kubernetes ends it: evicted, preempted, its node is gone
    deletion: datetime | None = None  # when it should have ended, its grace included; None: nobody deleted it
    finalizers: tuple[str, ...] = ()
    mirror: bool = False
    ready: bool = False
    created: datetime | None = None
    idle_test: str = ""  # of a test of an idle node: the policy that asks for it
    tested: str = ""  # and the node, which it may not have been given yet
    tested_boot: str = ""  # and in which boot that was when the test was made
    neighbour_of: str = ""  # of one that is only the other end of a measurement: the operation that measures, by uid
    version: str = field(default="", compare=False)

    @property
    def deleting(self) -> bool:
        """Whether somebody has deleted it."""
        return self.deletion is not None

    @property
    def pending(self) -> bool:
        """Whether none of its containers has started yet."""
        return self.phase is PodPhase.PENDING

    @property
    def expired(self) -> bool:
        """Whether its kubelet has ended it because its time was over, whether it had started or not."""
        return self.ended and self.reason == EXPIRED

    @property
    def ran_too_long(self) -> bool:
        """Whether that happened after it had started."""
        return self.expired and (self.exit_code is not None or self.container_end is ContainerEnd.RAN)

    @property
    def never_began(self) -> bool:
        """Whether it happened before it had started: then nothing of it will ever show on the node."""
        return self.expired and not self.ran_too_long

    @property
    def unplaced(self) -> bool:
        """Whether no node has been found for it yet."""
        return self.phase is PodPhase.PENDING and not self.node

    @property
    def finalizer(self) -> bool:
        """Whether our finalizer still keeps the object."""
        return names.POD_FINALIZER in self.finalizers

    @property
    def ended(self) -> bool:
        """Whether its containers have stopped for good."""
        return self.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED)
