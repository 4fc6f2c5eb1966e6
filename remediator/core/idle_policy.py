"""The noun IdlePolicy: which Pods somebody should look at, how that is proven, and what becomes of them."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from remediator.core.selector import EVERYTHING, Selector
from remediator.core.window import Window

EVERYWHERE = "*"
FINE, COARSE = timedelta(minutes=1), timedelta(minutes=5)  # steps in which samples are looked for
FINE_FOR = timedelta(hours=2)  # the longest time that is looked at in fine steps


class JanitorMode(StrEnum):
    """Whether the janitor writes anything: in all, and by one policy."""

    DRY_RUN = "DryRun"
    ENFORCE = "Enforce"


class Finding(StrEnum):
    """What a policy looks for."""

    IDLE_GPUS = "IdleGPUs"
    IDLE_CPU = "IdleCPU"
    RESTARTS = "Restarts"
    PENDING = "Pending"
    ALERT = "Alert"


class IdleAction(StrEnum):
    """How something may be given back."""

    SUSPEND = "Suspend"
    SCALE = "Scale"
    DELETE = "Delete"


class IdleTicket(StrEnum):
    """Whether owners are told by an issue, too."""

    NEVER = "Never"
    EACH_OWNER = "EachOwner"


class NvmlSource(StrEnum):
    """What it counts that NVML tells of the use of GPUs, beside Prometheus."""

    REQUIRED = "Required"
    IF_REPORTED = "IfReported"
    OFF = "Off"


@dataclass(frozen=True, slots=True)
class Signal:
    """Series, and the highest value that counts as idle: of a counter of CPU seconds, in hundredths of a core."""

    series: str = "DCGM_FI_DEV_GPU_UTIL"
    at_most: int = 0


# What is asked where a policy names nothing.
SIGNALS = {
    Finding.IDLE_GPUS: (Signal(),),
    Finding.IDLE_CPU: (Signal("container_cpu_usage_seconds_total", 1),),
}


@dataclass(frozen=True, slots=True)
class IdlePolicy:
    """One policy. `alert`: the name of the alert that Finding.ALERT is about."""

    name: str
    namespaces: tuple[str, ...]
    mode: JanitorMode = JanitorMode.DRY_RUN
    selector: Selector = EVERYTHING
    owner_label: str = "owner"
    signals: tuple[Signal, ...] = (Signal(),)
    idle_for: timedelta = timedelta(hours=2)
    windows: tuple[Window, ...] = ()
    grace: timedelta = timedelta(hours=4)
    actions: tuple[IdleAction, ...] = ()
    most: int = 5
    finds: Finding = Finding.IDLE_GPUS
    alert: str = ""
    ticket: IdleTicket = IdleTicket.NEVER
    nvml: NvmlSource = NvmlSource.IF_REPORTED

    @property
    def asks_nvml(self) -> bool:
        """Whether NVML has a say, too."""
        return self.finds is Finding.IDLE_GPUS and self.nvml is not NvmlSource.OFF

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
