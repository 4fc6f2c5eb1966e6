"""Pods: those of our operations, and those that a drain must move."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from remediator.core import names


class PodPhase(StrEnum):
    """What a Pod's status says."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


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
    deletion: datetime | None = None  # when it should have ended, its grace included; None: nobody deleted it
    finalizers: tuple[str, ...] = ()
    daemon: bool = False
    mirror: bool = False
    ready: bool = False
    created: datetime | None = None
    version: str = field(default="", compare=False)

    @property
    def deleting(self) -> bool:
        """Whether somebody has deleted it."""
        return self.deletion is not None

    @property
    def finalizer(self) -> bool:
        """Whether our finalizer still keeps the object."""
        return names.POD_FINALIZER in self.finalizers

    @property
    def ended(self) -> bool:
        """Whether its containers have stopped for good."""
        return self.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED)


def pods_to_drain(pods: Iterable[Pod], operations_namespace: str, skip: timedelta | None, now: datetime) -> list[Pod]:
    """The pods of a node that a drain must see gone: all but mirror, DaemonSet and finished ones and our own.

    `skip`: nor is a pod whose end is overdue by more than this; None waits for each.
    """
    return [
        pod
        for pod in pods
        if not (pod.mirror or pod.daemon or pod.ended or pod.namespace == operations_namespace)
        and not (skip is not None and pod.deletion is not None and now - pod.deletion > skip)
    ]
