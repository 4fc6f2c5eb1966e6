"""I10: a Pod that never started through no fault of the node makes no case climb, and no hot loop."""

from collections.abc import Iterator
from datetime import timedelta

from remediator_sim.invariants import contract
from remediator_sim.invariants.contract import clock
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History, begun
from remediator_sim.invariants.results import HELD

REASONS = frozenset({"ImageNotPulled", "ContainerNotCreated", "PodNotPlaced", "PodStartUnknown"})
PAUSE = timedelta(minutes=10)


def stays_on_its_rung(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each attempt that follows one whose Pod never started: later, on the same rung."""
    attempts = contract.attempts(event.new)
    for attempt in begun(event):
        before = attempts[: attempts.index(attempt)][-1:]
        if not before or before[0].get("reason") not in REASONS or history.lately_edited(_policy(event)):
            continue
        (last,) = before
        pause = contract.moment(attempt.get("startedAt") or "") - contract.moment(last.get("finishedAt") or "")
        sentence = f"case {event.key} began {attempt['operation']} at {clock(event.at)} after {last['reason']}"
        if attempt["rung"] != last["rung"]:
            yield f"{sentence}, on another rung"
        elif pause < PAUSE - history.limits.clocks - timedelta(seconds=2):
            yield f"{sentence}, and only {pause.total_seconds():.0f} s later"
        else:
            yield HELD


def _policy(event: Event) -> str:
    return str(event.obj["spec"].get("policyName", ""))
