"""What a test of an idle node has proven: read from its Pod, as its kubelet tells the end, and from the node then."""

from collections.abc import Sequence
from typing import NamedTuple

from remediator_sim.invariants import contract, pod_words
from remediator_sim.invariants.contract import Obj, part
from remediator_sim.invariants.event import Event


class Proven(NamedTuple):
    """A test that has ended by itself: for which policy, on which node in which boot, and whether it passed."""

    policy: str
    node: str
    boot: str
    passed: bool


def proven(event: Event, lately: Sequence[Obj]) -> Proven | None:
    """What a write of a Pod tells for the first time, and proves; `lately` is what the node said up to then.

    Beside a repair and in another boot than the one that it was made for it proves nothing, nor does a Pod that is
    only the other end of a measurement.
    """
    policy, node, boot = pod_words.tested(event.new)
    passed = _said(event.new)
    if not policy or passed is None or _said(event.old) is not None or pod_words.neighbour_of(event.new):
        return None
    counts = any(not contract.held_by(state) and contract.boot(state) == boot for state in lately)
    return Proven(policy, node, boot, passed) if counts else None


def _said(pod: Obj | None) -> bool | None:
    """Whether the program of a test says that the node is fine; None where it has not said anything, or was ended."""
    ended = [part(each, "state", "terminated") for each in part(pod, "status", "containerStatuses") or ()]
    killed = contract.deleted(pod) or part(pod, "status").get("reason")
    if killed or _disrupted(pod) or not contract.pod_ended(pod) or not ended:
        return None
    return {0: True, 1: False}.get(ended[0].get("exitCode"))


def _disrupted(pod: Obj | None) -> bool:
    shown = part(pod, "status", "conditions") or ()
    return any(each["type"] == "DisruptionTarget" and each["status"] == "True" for each in shown)
