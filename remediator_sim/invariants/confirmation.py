"""I3: under a policy with a second source nothing disruptive starts unless that has said yes within its time."""

from collections.abc import Iterator

from remediator_sim.invariants import clauses, contract, disturbances
from remediator_sim.invariants.contract import Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD


def claim(history: History, event: Event) -> Iterator[str]:
    """A node was written. Counts each time that our case taint appeared on it."""
    for case, sentence in disturbances.claims(event):
        yield from _confirmed(history, case, sentence)


def start(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each new attempt."""
    for case, sentence in disturbances.starts(event):
        yield from _confirmed(history, case, sentence)


def intent(history: History, event: Event) -> Iterator[str]:
    """An operation was written. Counts each new intent."""
    for case, sentence in disturbances.intents(event):
        yield from _confirmed(history, case, sentence)


def pod(history: History, event: Event) -> Iterator[str]:
    """A Pod was written. Counts each new Pod of ours that disturbs a node: drains and operations."""
    for case, sentence in disturbances.pods(event):
        yield from _confirmed(history, case, sentence)


def _confirmed(history: History, case: str, sentence: str) -> Iterator[str]:
    """HELD where the second source agreed lately; nothing where the policy has none, or what was confirmed goes on."""
    tracked = history.tracked.get(case)
    policy = history.policy(tracked.last) if tracked else None
    asked = part(policy, "spec", "confirm")
    if tracked is None or policy is None or not asked or _completes(tracked.last):
        return
    if history.lately_edited(contract.name(policy)):
        return
    node = tracked.last["spec"]["nodeName"]
    agreed = [history.confirmed[key] for kind in clauses.watched(policy) if (key := (node, kind)) in history.confirmed]
    within = contract.duration(asked.get("within", "5m")) + history.limits.grace
    if agreed and history.at - max(agreed) <= within:
        yield HELD
        return
    last = f"the last time at {clock(max(agreed))}" if agreed else "never"
    yield f"{sentence} at {clock(history.at)}, and the second source agreed {last}"


def _completes(case: Obj) -> bool:
    """Whether the case now does what completes, or judges, a try that was confirmed."""
    newest = contract.attempts(case)[-1:]
    return any(not contract.is_try(attempt) and not attempt.get("outcome") for attempt in newest)
