"""Operations as they are stored in the API server."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from remediator.core import names
from remediator.core.case import AttemptOutcome, KeepOut
from remediator.core.reasons import Reason


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
    """One operation on one node. `intent_boot_id` is written before its Pod is made, and never again; `pod`, its name,
    once it was seen.
    """

    name: str
    uid: str
    node: str
    node_uid: str
    case_uid: str
    template: str
    created: datetime
    requested_by: str = ""
    source: str = ""  # of one that another controller asks for: the setting that lets the kind of its object in
    parameters: Mapping[str, str] = field(default_factory=dict)
    keep_out: KeepOut | None = None
    version: str = ""
    deleting: bool = False
    finalizers: tuple[str, ...] = ()
    phase: OperationPhase = OperationPhase.PENDING
    case_name: str = ""  # of one that a user has made: the case that was opened for it
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
    def rejected(self) -> bool:
        """Whether it ended because no case had asked for it: the status of the case was lost, or somebody else made it.

        A case that asks for it afterwards has not tried it.
        """
        return self.reason == Reason.NOT_CURRENT_ATTEMPT

    @property
    def unjudged(self) -> bool:
        """Whether its drain waits for somebody who says whether Pods may be evicted."""
        return f"({names.UNJUDGED}" in self.blocked

    @property
    def nothing_ran(self) -> bool:
        """Whether it ended before its drain began, or its drain moved no Pod, or nobody said whether Pods may go."""
        timed_out = self.reason in (Reason.DRAIN_TIMEOUT, Reason.TIMED_OUT)
        return self.phase is OperationPhase.CANCELLED and (self.drain_started is None or timed_out)


_OUTCOMES = frozenset(outcome.value for outcome in AttemptOutcome)
