"""The noun IdlePolicy: which Pods must use their GPUs, how that is proven, and what becomes of those that do not."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from remediator.core.selector import EVERYTHING, Selector
from remediator.core.window import Window

EVERYWHERE = "*"
FINE, COARSE = timedelta(minutes=1), timedelta(minutes=5)  # steps in which samples are looked for
FINE_FOR = timedelta(hours=2)  # the longest time that is looked at in fine steps


class Mode(StrEnum):
    """Whether the janitor writes anything: in all, and by one policy."""

    DRY_RUN = "DryRun"
    ENFORCE = "Enforce"


class IdleAction(StrEnum):
    """How GPUs may be given back."""

    SUSPEND = "Suspend"
    SCALE = "Scale"
    DELETE = "Delete"


@dataclass(frozen=True, slots=True)
class Signal:
    """Series of dcgm-exporter, and the highest value that counts as idle."""

    series: str = "DCGM_FI_DEV_GPU_UTIL"
    at_most: int = 0


@dataclass(frozen=True, slots=True)
class IdlePolicy:
    """One policy."""

    name: str
    namespaces: tuple[str, ...]
    mode: Mode = Mode.DRY_RUN
    selector: Selector = EVERYTHING
    owner_label: str = "owner"
    signals: tuple[Signal, ...] = (Signal(),)
    idle_for: timedelta = timedelta(hours=2)
    windows: tuple[Window, ...] = ()
    grace: timedelta = timedelta(hours=4)
    actions: tuple[IdleAction, ...] = ()
    most: int = 5

    @property
    def step(self) -> timedelta:
        """In each of such steps of the time there must be samples."""
        return FINE if self.idle_for <= FINE_FOR else COARSE

    @property
    def steps(self) -> int:
        """How many of them there are."""
        return self.idle_for // self.step

    def covers(self, namespace: str) -> bool:
        """Whether it is about Pods of this namespace."""
        return EVERYWHERE in self.namespaces or namespace in self.namespaces
