"""I3: that Pods do not end is said only of a node whose kubelet works, and on which some have not ended in time."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from remediator_sim.invariants import contract
from remediator_sim.invariants.contract import PODS, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD
from remediator_sim.invariants.tracked import Tracked

STUCK = "PodsStuckTerminating"
MANY, SOON, LONG = 3, timedelta(minutes=10), timedelta(minutes=30)
UNHEARD = timedelta(minutes=3)  # for which a watch that says nothing is believed


def said(history: History, event: Event) -> Iterator[str]:
    """A node was written. Counts each time that it says so, also again."""
    now, before = (contract.condition(obj, STUCK) for obj in (event.new, event.old))
    if now is None or now["status"] != "True" or now == before:
        return
    forgiven = history.limits.grace + history.limits.clocks
    late = [history.at + forgiven - _should_end(pod) for pod in history.tracked.values() if _stays(pod, history, event)]
    soon = [each for each in late if each >= SOON]
    stands = before is not None and before["status"] != "False"
    enough = bool(soon) and (stands or len(soon) >= MANY or max(soon) >= LONG)
    text = f"{event.key} says {STUCK} at {clock(event.at)}"
    if not any(contract.says(state, "Ready") == "True" for state in history.lately(event.key)):
        yield f"{text}, and its kubelet is not Ready"
    else:
        yield HELD if enough else f"{text}, and {len(soon)} of its Pods should have ended for {SOON} or longer"


def _stays(pod: Tracked, history: History, event: Event) -> bool:
    """Whether it is a Pod of the node that is to end, and runs, or has ended or gone a moment ago."""
    if pod.kind != PODS or part(pod.last, "spec").get("nodeName") != event.key or not contract.deleted(pod.last):
        return False
    if (left := pod.ended or pod.gone) is not None:
        return history.at - left < UNHEARD
    return not contract.pod_ended(pod.last)


def _should_end(pod: Tracked) -> datetime:
    return contract.moment(pod.last["metadata"]["deletionTimestamp"])
