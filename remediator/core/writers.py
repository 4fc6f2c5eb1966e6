"""Who writes a Condition of a node: the kubelet, detectors, or the controller of what it counts."""

from functools import lru_cache

from remediator.core.alerts import PREFIX as ALERT
from remediator.core.device_count import DEVICES_MISSING
from remediator.core.rejections import PODS_REJECTED

EVENT = "Event/"  # how the Conditions begin that say whether Events repeat
DETECTOR_STALE = "DetectorStale"
KUBELET_CONDITIONS = frozenset({"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})
# Conditions that the controller writes of what it counts. One that is absent, or False, however old, proves health.
COUNTED = frozenset({PODS_REJECTED, DEVICES_MISSING})


@lru_cache(maxsize=1024)  # of each clause of each policy it is asked in every decision
def counted(name: str) -> bool:
    """Whether the controller writes it of what it counts, of alerts that Alertmanagers list, or of Events."""
    return name in COUNTED or name.startswith((ALERT, EVENT))


@lru_cache(maxsize=1024)
def by_detectors(name: str) -> bool:
    """Whether it says what detectors have found: they write it, or the controller does by what they count."""
    return name == DEVICES_MISSING or (name not in KUBELET_CONDITIONS and not counted(name))
