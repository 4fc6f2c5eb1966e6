"""I12: cases that hold each other's only place for Pods with rights in the API would wait for ever."""

from collections.abc import Iterator

from remediator_sim.invariants import contract
from remediator_sim.invariants.contract import PLACE, Obj, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD

NO_PLACE = "NoNodeForApiPods"


def without(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each that says for the first time that its Pods have no place."""
    if NO_PLACE in _reasons(event.new) and NO_PLACE not in _reasons(event.old):
        yield HELD


def wait_for_each_other(history: History, event: Event) -> Iterator[str]:
    """Time passed. Tells of the cases that have cordoned all places and wait for one: none of them will ever go on."""
    places = [node for node in history.nodes.values() if PLACE in (node["metadata"].get("labels") or ())]
    if len(places) < 2 or not all(part(node, "spec").get("unschedulable") for node in places):  # as nearly always
        return
    holding = [history.open.get(contract.held_by(node)) for node in places]
    waiting = [tracked for tracked in holding if tracked and tracked.claimed and _reasons(tracked.last) == [NO_PLACE]]
    if len(waiting) == len(places):
        since = max(tracked.held or history.at for tracked in waiting)
        if history.at - since > history.limits.grace:
            names = " and ".join(sorted(tracked.name for tracked in waiting))
            yield f"cases {names} hold each other's only place for Pods with rights in the API"


def _reasons(case: Obj | None) -> list[str]:
    return [block["reason"] for block in part(case, "status").get("blockedBy") or ()]
