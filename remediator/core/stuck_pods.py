"""Whether Pods that somebody has deleted stay on a node although its kubelet works. Pure.

A deletion says when the Pod should be gone, its grace included. A kubelet that does not end it is at fault, or its
runtime, or a process that nobody can kill.

* Only Pods whose containers may run are known here. One whose containers have all ended and that waits for a finalizer,
  or for its volumes, has ended as its kubelet says, and is none of them.
* One Pod may be slow: it counts after LONG. PODS of them count after SOON.
* While a kubelet does not report that it is Ready, nobody ends Pods, and its own Condition says so: time counts from
  when it was Ready again.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from remediator.core.node import Node, Status
from remediator.core.own_condition import OwnCondition

STUCK_PODS = "PodsStuckTerminating"  # the Condition
PODS = 3
SOON, LONG = timedelta(minutes=10), timedelta(minutes=30)
STAY, END, UNSURE = "PodsDoNotEnd", "NoPodStuck", "EndOfPodsUnknown"


def own_condition(node: Node, ends: Mapping[str, datetime], now: datetime) -> OwnCondition | None:
    """What the Condition should say; None where it never stood and too few Pods stay.

    `ends`: when the grace of each Pod on the node that somebody has deleted is over, by namespace/name.
    """
    before = node.conditions.get(STUCK_PODS)
    stands = before is not None and before.status is not Status.FALSE
    if node.ready is not Status.TRUE:
        text = "its kubelet does not report that it is Ready, so nobody can tell whether it ends Pods"
        return OwnCondition(STUCK_PODS, Status.UNKNOWN, UNSURE, text) if stands else None
    since = node.conditions["Ready"].since
    late = {key: at for key, at in ends.items() if now - max(at, since) >= SOON}
    long = bool(late) and now - max(min(late.values()), since) >= LONG
    if late and (stands or len(late) >= PODS or long):
        return OwnCondition(STUCK_PODS, Status.TRUE, STAY, _told(late, LONG if long else SOON))
    if stands and overdue(ends, now):
        text = f"its kubelet is Ready since {since:%H:%M} UTC only, so nobody can tell yet whether it ends Pods"
        return OwnCondition(STUCK_PODS, Status.UNKNOWN, UNSURE, text)
    if before is None:
        return None
    return OwnCondition(STUCK_PODS, Status.FALSE, END, "Pods that somebody deletes end in time")


def overdue(ends: Mapping[str, datetime], now: datetime) -> bool:
    """Whether one of these Pods should be gone for so long that it may count."""
    return any(now - at >= SOON for at in ends.values())


def _told(late: Mapping[str, datetime], time: timedelta) -> str:
    """How many there are, and which one stays longest. `time`: what that one has stayed at least."""
    at, key = min((at, key) for key, at in late.items())
    longest = f"{key}, since {at:%Y-%m-%d %H:%M} UTC"
    if len(late) > 1:
        return f"{len(late)} Pods stay {_minutes(SOON)} or more after the end of their grace; longest {longest}"
    return f"1 Pod stays {_minutes(time)} or more after the end of its grace: {longest}"


def _minutes(time: timedelta) -> str:
    return f"{time.total_seconds() / 60:g} minutes"
