"""I3: nothing disruptive starts unless the node, as the server had it then, clearly showed the fault."""

from collections.abc import Iterator

from remediator_sim.invariants import clauses, contract, dead, disturbances
from remediator_sim.invariants.contract import Obj, clock
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History, probed
from remediator_sim.invariants.results import HELD


def claim(history: History, event: Event) -> Iterator[str]:
    """A node was written. Counts each time that our case taint appeared on it."""
    for case, sentence in disturbances.claims(event):
        yield from _shown(history, case, sentence)


def start(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each new attempt."""
    for case, sentence in disturbances.starts(event):
        yield from _shown(history, case, sentence)


def probe(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each new probe: it is made on a node that shows no fault."""
    for attempt in probed(event):
        yield from _shown(history, contract.uid(event.obj), f"the probe {attempt['operation']} was begun")


def intent(history: History, event: Event) -> Iterator[str]:
    """An operation was written. Counts each new intent: the point of no return."""
    for case, sentence in disturbances.intents(event):
        yield from _shown(history, case, sentence)


def pod(history: History, event: Event) -> Iterator[str]:
    """A Pod was written. Counts each new Pod of ours that disturbs a node: drains and operations."""
    for case, sentence in disturbances.pods(event):
        yield from _shown(history, case, sentence)


def _shown(history: History, case: str, sentence: str) -> Iterator[str]:
    """HELD where the node showed what the case's policy asks for; nothing where no policy says what that is."""
    tracked = history.tracked.get(case)
    policy = history.policy(tracked.last) if tracked else None
    if tracked is not None and policy is not None:
        node = tracked.last["spec"]["nodeName"]
        if renewed := dead.alive(history, policy, node):
            yield f"{sentence} at {clock(history.at)}, and {renewed}"
            return
        held = _calls_for(history, tracked.last, policy, node)
        yield HELD if held else f"{sentence} at {clock(history.at)}, and {node} showed {_showed(history, policy, node)}"


def _calls_for(history: History, case: Obj, policy: Obj, node: str) -> bool:
    """Whether the node showed what the newest attempt is for: a fault; a probe, and the case of a
    new node, are for a node that shows none.

    What completes a try, and what comes after a probe that has failed, are for any node of which it can be told.
    """
    newest = [attempt for attempt in contract.attempts(case) if not attempt.get("outcome")][-1:]
    if contract.gate(case) or any(attempt.get("probe") for attempt in newest):
        return history.well(node, policy)
    if history.sick(node, policy):
        return True
    lacks = any(contract.lacks(state, case) for state in history.lately(node))  # which is a fault, too
    return (_completes(case) or _refuted(case) or lacks) and history.clear(node, policy)


def _refuted(case: Obj) -> bool:
    """Whether the newest attempt comes after a probe that has failed; attempts that came to nothing lie between."""
    earlier = [attempt for attempt in contract.attempts(case)[:-1] if attempt.get("outcome") != "Cancelled"]
    return any(attempt.get("probe") and attempt.get("outcome") == "Failed" for attempt in earlier[-1:])


def _completes(case: Obj) -> bool:
    """Whether the case now does what completes a try: the fault may be gone, as long as that can be told."""
    return any(attempt.get("follows") and not attempt.get("outcome") for attempt in contract.attempts(case)[-1:])


def _showed(history: History, policy: Obj, node: str) -> str:
    """What the node said instead, in a few words."""
    seen = history.nodes.get(node)
    kinds = [*clauses.watched(policy), "Ready", "DetectorStale"]
    texts = [f"{kind}={contract.says(seen, kind) or 'absent'}" for kind in dict.fromkeys(kinds)]
    beat = (contract.condition(seen, kinds[0]) or {}).get("lastHeartbeatTime", "never")
    return f"{', '.join(texts)}, heartbeat {beat}"
