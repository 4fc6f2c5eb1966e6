"""I4: of nodes that showed one cause together, those that stay sick once it has gone are taken one after the other."""

from collections.abc import Iterator

from remediator_sim.invariants import contract, ledger
from remediator_sim.invariants.contract import CASES, Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD

SHARED = "SharedCause"
Cause = tuple[str, str, str]  # policy, condition, what was compared


def one_by_one(history: History, event: Event) -> Iterator[str]:
    """A budget was written. Counts each entry for a node of a former group: no other of it is entered beside it or
    before, and goes on. One that something stops, or that waits for a person, keeps no other waiting.
    """
    entered = _entered(history, event)
    causes = {uid: cause for uid in entered if (cause := _cause(history, uid))}
    going = {uid: cause for uid, cause in _going(history).items() if uid not in entered}
    for uid, cause in causes.items():
        before = [other for other, shown in (going | causes).items() if shown == cause and other != uid]
        names = ", ".join(sorted(history.tracked[other].name for other in before))
        sentence = f"case {history.tracked[uid].name} was entered at {clock(event.at)} beside {names}"
        yield f"{sentence}: all had one cause in common, and go one by one" if before else HELD


def _entered(history: History, event: Event) -> list[str]:
    """The cases that are new in the ledger, and do not hold their nodes yet."""
    before, after = ledger.claims(event.old), ledger.claims(event.new)
    new = [(uid, node) for uid, node in after.items() if uid not in before]
    return [uid for uid, node in new if contract.held_by(history.nodes.get(node)) != uid]


def _going(history: History) -> dict[str, Cause]:
    """The cases of former groups that hold their nodes, and that nothing has stopped for all of the grace."""
    heard = history.at - history.limits.grace
    free = (uid for uid, tracked in history.open.items() if tracked.free is not None and tracked.free <= heard)
    return {uid: cause for uid in free if (cause := _cause(history, uid))}


def _cause(history: History, uid: str) -> Cause | None:
    """What a case had in common with others; None where it was never held for that, or only a moment ago."""
    tracked = history.tracked.get(uid)
    if tracked is None or tracked.kind != CASES:
        return None
    heard = history.at - history.limits.grace
    spec, timeline = tracked.last["spec"], part(tracked.last, "status", "timeline") or ()
    held = [entry for entry in timeline if entry.get("reason") == SHARED]
    trigger: Obj = spec.get("trigger") or {}
    text = trigger.get("cause") or trigger.get("message") or ""
    if not text or not any(contract.moment(entry.get("at") or "") <= heard for entry in held):
        return None
    return spec.get("policyName", ""), trigger.get("condition", ""), text
