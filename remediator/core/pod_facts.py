"""A Pod as the janitor judges it: since when it runs, what it holds, how its containers end, and what it waits for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

Key = tuple[str, str]  # namespace and name of a Pod, as series and alerts name it
OFTEN = 5  # restarts; the pause of the kubelet between two of them is 5 minutes by then
CRASH_LOOP = "CrashLoopBackOff"
GATED = "SchedulingGated"


@dataclass(frozen=True, slots=True)
class ContainerExit:
    """How a container ended the last time."""

    code: int
    reason: str = ""
    began: datetime | None = None
    ended: datetime | None = None

    @property
    def ran(self) -> timedelta | None:
        """For how long it had run; None where nobody can tell."""
        return None if self.began is None or self.ended is None else self.ended - self.began


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """One container. `waiting`: the reason and the message for which it does not run; `running`: since when it does."""

    name: str
    restarts: int = 0
    waiting: tuple[str, str] | None = None
    running: datetime | None = None
    last_exit: ContainerExit | None = None
    init: bool = False


@dataclass(frozen=True, slots=True)
class Scheduling:
    """What the scheduler says of a Pod that has no node."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A Pod that has not ended. `gpus`: how many it asks for, None where nobody can count them.

    `unchanged`: when its creation or the last change of one of its Conditions was; None where nobody can tell.
    """

    namespace: str
    name: str
    uid: str
    gpus: int | None
    started: datetime | None
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    containers: int = 1  # of its spec, without init containers
    states: tuple[ContainerFacts, ...] = ()
    pending: bool = False
    created: datetime | None = None
    unchanged: datetime | None = None
    scheduling: Scheduling | None = None
    scheduler: str = ""

    @property
    def key(self) -> Key:
        """As series and alerts name it."""
        return self.namespace, self.name

    @property
    def restarts_often(self) -> bool:
        """Whether one of its containers has restarted so often that somebody should look at why."""
        return any(container.restarts >= OFTEN for container in self.states)
