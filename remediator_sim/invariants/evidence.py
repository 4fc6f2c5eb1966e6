"""I3: nothing disruptive starts unless the node, as the server had it then, clearly showed the fault."""

from collections.abc import Iterator

from remediator_sim.invariants import contract
from remediator_sim.invariants.contract import Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History, begun
from remediator_sim.invariants.results import HELD


def claim(history: History, event: Event) -> Iterator[str]:
    """A node was written. Counts each time that our case taint appeared on it."""
    case = contract.held_by(event.new)
    if case and case != contract.held_by(event.old):
        yield from _shown(history, case, f"{event.key} was taken")


def start(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each new attempt."""
    for attempt in begun(event):
        yield from _shown(history, contract.uid(event.obj), f"{attempt['operation']} was begun")


def intent(history: History, event: Event) -> Iterator[str]:
    """An operation was written. Counts each new intent: the point of no return."""
    if part(event.new, "status").get("intent") and not part(event.old, "status").get("intent"):
        yield from _shown(history, event.obj["spec"].get("caseUID", ""), f"the intent of {event.key} was written")


def pod(history: History, event: Event) -> Iterator[str]:
    """A Pod was written. Counts each new Pod of ours that disturbs a node: drains and operations."""
    if event.old is None and contract.template(event.obj) not in ("", contract.LOOKS):
        case = part(event.obj, "metadata", "labels").get(contract.CASE_UID, "")
        yield from _shown(history, case, f"Pod {event.key} was made")


def _shown(history: History, case: str, sentence: str) -> Iterator[str]:
    """HELD where the node showed what the case's policy asks for; nothing where no policy says what that is."""
    tracked = history.tracked.get(case)
    policy = history.policy(tracked.last) if tracked else None
    if tracked is not None and policy is not None:
        node = tracked.last["spec"]["nodeName"]
        held = history.sick(node, policy) or (_completes(tracked.last) and history.clear(node, policy))
        yield HELD if held else f"{sentence} at {clock(history.at)}, and {node} showed {_showed(history, policy, node)}"


def _completes(case: Obj) -> bool:
    """Whether the case now does what completes a try: the fault may be gone, as long as that can be told."""
    return any(attempt.get("follows") and not attempt.get("outcome") for attempt in contract.attempts(case)[-1:])


def _showed(history: History, policy: Obj, node: str) -> str:
    """What the node said instead, in a few words."""
    seen = history.nodes.get(node)
    kinds = [*contract.watched(policy), "Ready", "DetectorStale"]
    texts = [f"{kind}={contract.says(seen, kind) or 'absent'}" for kind in dict.fromkeys(kinds)]
    beat = (contract.condition(seen, kinds[0]) or {}).get("lastHeartbeatTime", "never")
    return f"{', '.join(texts)}, heartbeat {beat}"
