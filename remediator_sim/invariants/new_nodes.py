"""I5: a new node works only once the probe of its gate has succeeded on it, or a person has said so."""

from collections.abc import Iterator
from datetime import timedelta

from remediator_sim.invariants import contract
from remediator_sim.invariants.contract import POLICIES, Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD


def opens(history: History, event: Event) -> Iterator[str]:
    """A node was written. Counts each gate that no longer keeps work off it."""
    if event.new is None:
        return
    after = _keys(event.new)
    for key in sorted(_keys(event.old) & _gates(history)):
        if key not in after:
            proven = any(_lets_work(case.last, event.new, key) for case in history.cases())
            text = f"{event.key} works since {clock(event.at)}, and no probe has succeeded on it behind {key}"
            yield HELD if proven else text


TO_CLOSE = timedelta(minutes=10)


def closes(history: History, event: Event) -> Iterator[str]:
    """Time passed. Tells of each machine that works for long though only the one before it was proven."""
    for name, since in history.replaced.items():
        node = history.nodes[name]
        keys = {key for key, machine in contract.admitted(node).items() if machine != contract.machine(node)}
        if keys & _acting(history) and history.at - since - history.absent(since) > TO_CLOSE:
            yield f"{name} works since {clock(since)}, and only the machine before it was proven"


def _acting(history: History) -> set[str]:
    """The taints of the gates that have acted for all of that time."""
    policies = history.objects[POLICIES].items()
    lately = {name for name, edited in history.edited.items() if history.at - edited <= TO_CLOSE}
    acting = [policy["spec"] for name, policy in policies if name not in lately]
    return {spec["admit"]["taint"] for spec in acting if spec.get("admit") and spec.get("mode") == "Enforce"}


def waits(history: History, node: Obj) -> bool:
    """Whether a gate keeps work off it."""
    return not _keys(node).isdisjoint(_gates(history))


def _gates(history: History) -> set[str]:
    """The taints of all gates."""
    admits = (part(policy, "spec", "admit") for policy in history.objects[POLICIES].values())
    return {admit["taint"] for admit in admits if admit}


def _keys(node: Obj | None) -> set[str]:
    return {taint["key"] for taint in contract.taints(node)}


def _lets_work(case: Obj, node: Obj, key: str) -> bool:
    """Whether this case was about this machine behind this gate, and its probe was good, or a person released it."""
    uids = case["spec"].get("nodeUID"), part(node, "metadata").get("uid")
    if contract.gate(case).get("taint") != key or uids[0] != uids[1]:
        return False
    newest = [attempt for attempt in contract.attempts(case) if attempt.get("probe")][-1:]
    return part(case, "spec").get("release") is True or any(each.get("outcome") == "Succeeded" for each in newest)
