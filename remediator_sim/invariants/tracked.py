"""What is remembered of single things: limits, objects, starts, marks of people."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from remediator_sim.invariants import contract
from remediator_sim.invariants.contract import Obj


@dataclass(frozen=True, slots=True)
class Limits:
    """What was promised, and how much is forgiven.

    `bound`: how long a case may hold its node, stops not counted, before it is over or a person was called. `settle`:
    how long what is over may take to be cleared away. `grace`: how old a view of the world may be that somebody acts
    on. `silence`: how long nobody may have heard that a node is down, whose watch has fallen silent. `stale`: how old a
    heartbeat may be that still proves something. `clocks`: by how much the clocks of two who led may differ. `quiet`:
    for how long policies only show what is new.
    """

    breaker_starts: int
    breaker_window: timedelta
    bound: timedelta = timedelta(minutes=10)
    settle: timedelta = timedelta(seconds=20)
    grace: timedelta = timedelta(seconds=3)
    silence: timedelta = timedelta(seconds=3)
    stale: timedelta = timedelta(minutes=15)
    clocks: timedelta = timedelta(0)
    quiet: timedelta = timedelta(days=7)


class HeldLease(NamedTuple):
    """Who has the Lease of a node ("" nobody), since when, and until when unless they renew it."""

    holder: str
    since: datetime
    until: datetime

    @property
    def of_another(self) -> bool:
        """Whether no case of ours has it, but somebody."""
        return bool(self.holder) and not self.holder.startswith(contract.OUR_HOLDER)


class Moment(NamedTuple):
    """When something was written for the first time: when we saw that, and what time it says."""

    seen: datetime
    written: datetime


@dataclass(slots=True)
class Tracked:
    """One object from its first sight on; `last` is what it said last, `emptied` when somebody emptied its status.
    `times` is for operations: by the word of the status, when it was first there. For cases,
    `claimed` and `over` are when they were seen, by the server's clock; `stood` is how long it was stopped since;
    `held` is since when it says that it is held, and by nothing that a user has chosen; `free` is since when it holds
    its node, nothing holds it, and no person has it; `queued` is since when it waits for budgets alone; `approved` is
    until when a person had approved it;
    `silent` is until when a Pod of it stood on a node whose kubelet did not report, so that nobody could end that Pod.
    `out` is since when its user has the node, `agreed` when they said until when.
    For requests of other controllers, `withdrawn` is since when nobody waits for them any more. For Pods, `ended` is
    when all containers of one that ran had ended.
    """

    kind: str
    first: Obj
    made: datetime
    last: Obj
    gone: datetime | None = None
    emptied: datetime | None = None
    claimed: datetime | None = None
    over: datetime | None = None
    escalated: datetime | None = None
    stood: timedelta = timedelta(0)
    well: datetime | None = None
    held: datetime | None = None
    free: datetime | None = None
    queued: datetime | None = None
    deleted: datetime | None = None
    released: datetime | None = None
    approved: datetime | None = None
    silent: datetime | None = None
    out: datetime | None = None
    agreed: datetime | None = None
    withdrawn: datetime | None = None
    ended: datetime | None = None
    times: dict[str, Moment] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The object's name."""
        return contract.name(self.last)


@dataclass(frozen=True, slots=True)
class Start:
    """One attempt, when its case first told of it."""

    at: datetime
    case: str
    node: str
    policy: str
    operation: str


@dataclass(slots=True)
class Mark:
    """What a person set on a node. Empty maps and False mean: nothing of the kind."""

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    taints: list[Obj] = field(default_factory=list)
    cordon: bool = False
