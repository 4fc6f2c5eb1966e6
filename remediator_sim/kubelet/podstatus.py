"""What a kubelet writes about a Pod, and what it makes of one that it finds. Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from remediator.kube.wire.times import parse, stamp
from remediator_sim.kubelet.container import is_ours
from remediator_sim.kubelet.node import address
from remediator_sim.kubelet.runtime import Record, Terminated
from remediator_sim.stamps import transitioned

OVER = ("Succeeded", "Failed")
REASONS = {"Pending": "ContainersNotReady", "Running": "", "Succeeded": "PodCompleted", "Failed": "PodFailed"}
DEADLINE = "Pod was active on the node longer than the specified deadline"
EXPIRED = {"reason": "DeadlineExceeded", "message": DEADLINE}
NOT_FOUND = "The container could not be located when the pod was terminated"
# The end of a container that was to begin when the volumes of its Pod were there, which they never were.
UNMOUNTED = {
    "exitCode": 137,
    "reason": "ContainerStatusUnknown",
    "message": NOT_FOUND,
    "startedAt": None,
    "finishedAt": None,
}
POD_NETWORK = 100


def is_over(pod: Mapping[str, Any]) -> bool:
    """Whether its outcome is already in its status."""
    return pod.get("status", {}).get("phase") in OVER


def is_deleted(pod: Mapping[str, Any]) -> bool:
    """Whether somebody asked for its deletion."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def grace(pod: Mapping[str, Any]) -> float:
    """Seconds between SIGTERM and SIGKILL."""
    asked = pod["metadata"].get("deletionGracePeriodSeconds")
    return float(pod["spec"].get("terminationGracePeriodSeconds", 30) if asked is None else asked)


def seconds_left(pod: Mapping[str, Any], started: datetime, now: datetime) -> float | None:
    """Until activeDeadlineSeconds is over, counted from `started`; never below 0; None without a deadline."""
    limit = pod["spec"].get("activeDeadlineSeconds")
    if limit is None:
        return None
    return max(0.0, (started + timedelta(seconds=limit) - now).total_seconds())


def restarts_always(pod: Mapping[str, Any]) -> bool:
    """Whether its container would be started anew after the machine went away. Our programs never are."""
    return not is_ours(pod) and pod["spec"].get("restartPolicy", "Always") != "Never"


def lost(pod: Mapping[str, Any], record: Record | None, boot_id: str, now: datetime) -> Terminated | None:
    """The end of a container that an earlier kubelet of this host started, as the next one sees it.

    Its recorded end where it has one; else what becomes of one that vanished: with the whole disk (137,
    ContainerStatusUnknown), with the machine (255, Unknown), with the kubelet that was its parent (137, Error).
    None: nothing to report, it may run, or go on to.
    """
    if restarts_always(pod):
        return None
    if record is None:
        started = pod.get("status", {}).get("phase") == "Running"
        return Terminated(137, "ContainerStatusUnknown", NOT_FOUND, now, now) if started else None
    if record.terminated:
        return record.terminated
    if record.boot_id != boot_id:
        return Terminated(255, "Unknown", "", record.started_at, now)
    return Terminated(137, "Error", "", record.started_at, now) if is_ours(pod) else None


def begun(record: Record | None, boot_id: str, now: datetime) -> Record:
    """The record of a container that runs from now on in this boot; the one it has, if it ran all along."""
    if record is None:
        return Record(boot_id, now)
    return record if record.boot_id == boot_id else Record(boot_id, now, record.restarts + 1)


def pending(pod: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Accepted by the kubelet, its container not yet running."""
    return _status(pod, "Pending", {"waiting": {"reason": "ContainerCreating"}}, 0, now)


def running(pod: Mapping[str, Any], record: Record, now: datetime) -> dict[str, Any]:
    """Running and ready."""
    return _status(pod, "Running", {"running": {"startedAt": stamp(record.started_at)}}, record.restarts, now)


def finished(
    pod: Mapping[str, Any], end: Terminated, restarts: int, now: datetime, *, too_late: bool = False
) -> dict[str, Any]:
    """Ended as `end` says; `too_late` when it was killed at its deadline."""
    state = {
        "exitCode": end.exit_code,
        "reason": end.reason,
        "message": end.message,
        "startedAt": stamp(end.started_at),
        "finishedAt": stamp(end.finished_at),
    }
    phase = "Failed" if end.exit_code or too_late else "Succeeded"
    return {**_status(pod, phase, {"terminated": state}, restarts, now), **(EXPIRED if too_late else {})}


def unmounted(pod: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Its time is over, and its volumes have never been there."""
    return {**_status(pod, "Failed", {"terminated": UNMOUNTED}, 0, now), **EXPIRED}


def _status(
    pod: Mapping[str, Any], phase: str, state: Mapping[str, Any], restarts: int, now: datetime
) -> dict[str, Any]:
    before = pod.get("status", {})
    started = before.get("startTime") or stamp(now)
    ready = phase == "Running"
    return {
        "phase": phase,
        "startTime": started,
        **_addresses(pod),
        "conditions": transitioned(before.get("conditions", ()), _conditions(phase), now),
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container.get("image", ""),
                "imageID": "",
                "ready": ready,
                "started": ready,
                "restartCount": restarts,
                "state": state,
            }
            for container in sorted(pod["spec"]["containers"], key=itemgetter("name"))  # as a kubelet lists them
        ],
    }


def started_at(pod: Mapping[str, Any], now: datetime) -> datetime:
    """When the kubelet took it, which is where its deadline counts from."""
    text = pod.get("status", {}).get("startTime")
    return parse(text) if text else now


def _addresses(pod: Mapping[str, Any]) -> dict[str, Any]:
    host = address(pod["spec"]["nodeName"])
    own = host if pod["spec"].get("hostNetwork") else address(pod["metadata"]["uid"], POD_NETWORK)
    return {"hostIP": host, "podIP": own, "podIPs": [{"ip": own}]}


def _conditions(phase: str) -> list[dict[str, Any]]:
    # An empty reason, not none: a strategic merge would keep the one of the phase before.
    ready = {"status": "True" if phase == "Running" else "False", "reason": REASONS[phase]}
    return [
        {"type": "PodScheduled", "status": "True"},
        {"type": "Initialized", "status": "True"},
        {"type": "ContainersReady", **ready},
        {"type": "Ready", **ready},
    ]
