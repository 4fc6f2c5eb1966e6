"""A Pod as the janitor judges it: since when it runs, what it holds, how its containers end, and what it waits for.

All are tuples, so that they are packed without the names of their fields.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple

Key = tuple[str, str]  # namespace and name of a Pod, as series and alerts name it
OFTEN = 5  # restarts; the pause of the kubelet between two of them is 5 minutes by then
CRASH_LOOP = "CrashLoopBackOff"
GATED = "SchedulingGated"
NONE: Mapping[str, str] = MappingProxyType({})


class ContainerExit(NamedTuple):
    """How a container ended the last time."""

    code: int
    reason: str = ""
    began: datetime | None = None
    ended: datetime | None = None

    @property
    def ran(self) -> timedelta | None:
        """For how long it had run; None where nobody can tell."""
        return None if self.began is None or self.ended is None else self.ended - self.began


class ContainerFacts(NamedTuple):
    """One container. `waiting`: the reason and the message for which it does not run; `running`: since when it does."""

    name: str
    restarts: int = 0
    waiting: tuple[str, str] | None = None
    running: datetime | None = None
    last_exit: ContainerExit | None = None
    init: bool = False


class Scheduling(NamedTuple):
    """What the scheduler says of a Pod that has no node."""

    reason: str
    message: str


class PodFacts(NamedTuple):
    """A Pod that has not ended. `gpus`: how many it asks for, None where nobody can count them.

    `unchanged`: when its creation or the last change of one of its Conditions was; None where nobody can tell.
    `all_labels`: False where it has more of them than are kept; then none is.
    """

    namespace: str
    name: str
    uid: str
    gpus: int | None
    started: datetime | None
    annotations: Mapping[str, str] = NONE
    labels: Mapping[str, str] = NONE
    containers: int = 1  # of its spec, without init containers
    states: tuple[ContainerFacts, ...] = ()
    pending: bool = False
    created: datetime | None = None
    unchanged: datetime | None = None
    scheduling: Scheduling | None = None
    scheduler: str = ""
    all_labels: bool = True
    node: str = ""

    @property
    def key(self) -> Key:
        """As series and alerts name it."""
        return self.namespace, self.name

    @property
    def restarts_often(self) -> bool:
        """Whether one of its containers has restarted so often that somebody should look at why."""
        return any(container.restarts >= OFTEN for container in self.states)
