"""Who writes a Condition of a node: the kubelet, detectors, or the controller of what it counts."""

from collections.abc import Collection
from functools import lru_cache

from remediator.core.alerts import PREFIX as ALERT
from remediator.core.device_count import DEVICES_MISSING
from remediator.core.idle_result import IDLE_TEST_FAILED
from remediator.core.node_versions import NODE_DRIFT
from remediator.core.reboot_loop import REBOOT_LOOP
from remediator.core.rejections import PODS_REJECTED
from remediator.core.stuck_pods import STUCK_PODS

EVENT = "Event/"  # how the Conditions begin that say whether Events repeat
DETECTOR_STALE = "DetectorStale"
KUBELET_CONDITIONS = frozenset({"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})
# Conditions that the controller writes of what it counts, or has tried. One that is absent, or False, however old,
# proves health; of Events a False that is old does not: who still counts says it again.
COUNTED = frozenset({PODS_REJECTED, DEVICES_MISSING, IDLE_TEST_FAILED, NODE_DRIFT, REBOOT_LOOP, STUCK_PODS})


@lru_cache(maxsize=1024)  # of each clause of each policy it is asked in every decision
def counted(name: str) -> bool:
    """Whether the controller writes it of what it counts, of alerts that Alertmanagers list, or of Events."""
    return name in COUNTED or name.startswith((ALERT, EVENT))


def ever_counted(name: str, conditions: Collection[str]) -> bool:
    """Whether these Conditions of a node have it, or one by another rule on Events with the same reason.

    A rule that was edited is a Condition of another name: that it is absent then says nothing of the Events.

    >>> ever_counted("Event/TaskHung/5-in-600s", ["Ready", "Event/TaskHung/3-in-600s"])
    True
    """
    if name in conditions or not name.startswith(EVENT):
        return name in conditions
    reason = name[: name.rindex("/") + 1]
    return any(other.startswith(reason) for other in conditions)


def never_counted(name: str, conditions: Collection[str]) -> bool:
    """Whether the controller counts it, and has never said of a node with these Conditions what it counts there."""
    return counted(name) and not ever_counted(name, conditions)


@lru_cache(maxsize=1024)
def by_detectors(name: str) -> bool:
    """Whether it says what detectors have found: they write it, or the controller does by what they count or read."""
    return name in (DEVICES_MISSING, NODE_DRIFT) or (name not in KUBELET_CONDITIONS and not counted(name))
