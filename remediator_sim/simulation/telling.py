"""Which writes stand in the story, and in which words."""

from collections.abc import Iterator

from remediator_sim.invariants import contract, pod_words
from remediator_sim.invariants.contract import (
    CASES,
    INVENTORIES,
    LEASES,
    NAMESPACES,
    NODES,
    OPERATIONS,
    PODS,
    POLICIES,
    REQUESTS,
    Obj,
    part,
)
from remediator_sim.invariants.event import Event


def told(event: Event) -> Iterator[tuple[str, str]]:
    """(who, what) for each thing in a write that a reader wants to know."""
    if event.kind == NODES:
        yield from ((event.key, text) for text in _node(event.old, event.new))
    elif event.kind == CASES:
        yield from ((event.obj["spec"]["nodeName"], text) for text in _case(event))
    elif event.kind == OPERATIONS:
        yield from ((event.obj["spec"]["nodeName"], text) for text in _phases("operation", event))
    elif event.kind == PODS and pod_words.template(event.obj):
        if event.old is None or event.new is None:
            where = part(event.obj, "spec").get("nodeName", "")
            yield where or "pod", f"Pod {contract.name(event.obj)} {'is gone' if event.new is None else 'is made'}"
    elif event.kind == POLICIES and part(event.old, "spec") != part(event.new, "spec"):
        yield "policy", f"{event.key} is {part(event.new, 'spec').get('mode') or 'gone'}"
    elif event.kind == INVENTORIES:
        yield from ((contract.name(event.obj), text) for text in _tested(event.old, event.new))
    elif event.kind in REQUESTS:
        yield from ((contract.name(event.obj), text) for text in _request(event.old, event.new))
    elif event.kind == LEASES and (node := contract.leased(event.key)):
        before, after = (part(obj, "spec").get("holderIdentity") for obj in (event.old, event.new))
        if before != after:
            yield node, f"its Lease is held by {after or 'nobody'}"
    elif event.kind == NAMESPACES and _paused(event.old) != _paused(event.new):
        yield "user", "pauses everything" if _paused(event.new) else "ends the pause"


def _tested(old: Obj | None, new: Obj | None) -> Iterator[str]:
    before, after = (part(inventory, "status").get("idleTest") for inventory in (old, new))
    if after and after != before:
        yield f"{'has passed' if after.get('passed') else 'has failed'} a test of policy {after['policy']}"


def _paused(namespace: Obj | None) -> bool:
    return contract.PAUSED in part(namespace, "metadata", "annotations")


def _good(condition: str) -> str:
    """What a node says of a condition that is fine: that it begins to say so is not told."""
    return "True" if condition == "Ready" else "False"


def _node(old: Obj | None, new: Obj | None) -> Iterator[str]:
    if old is None or new is None:
        yield "is registered" if old is None else "is gone"
        return
    for condition in part(new, "status", "conditions") or ():
        if (contract.says(old, condition["type"]) or _good(condition["type"])) != condition["status"]:
            yield f"says {condition['type']}={condition['status']}"
    if contract.held_by(old) != contract.held_by(new):
        yield f"is held by {contract.held_by(new)}" if contract.held_by(new) else "is let go"
    before, after = (bool(part(node, "spec").get("unschedulable")) for node in (old, new))
    if before != after:
        yield "is cordoned" if after else "is uncordoned"


def _request(old: Obj | None, new: Obj | None) -> Iterator[str]:
    if old is None or new is None:
        yield "asks for a repair" if old is None else "is gone"
        return
    for condition in part(new, "status", "conditions") or ():
        before = contract.condition(old, condition["type"]) or {}
        if (before.get("status"), before.get("reason")) != (condition["status"], condition.get("reason")):
            yield f"says {condition['type']}={condition['status']} {condition.get('reason', '')}".rstrip()
    if contract.deleted(new) and not contract.deleted(old):
        yield "is deleted"


def _case(event: Event) -> Iterator[str]:
    yield from _phases("case", event)
    reasons = [part(case, "status").get("reason") for case in (event.old, event.new)]
    if contract.is_out(event.old) and contract.is_out(event.new) and reasons[0] != reasons[1]:
        yield f"case {event.key} says {reasons[1]}"
    before, after = (_reasons(case) for case in (event.old, event.new))
    if before != after and after:
        yield f"case {event.key} waits: {', '.join(after)}"
    for attempt in contract.attempts(event.new)[len(contract.attempts(event.old)) :]:
        yield f"case {event.key} begins {attempt['operation']}"


def _reasons(case: Obj | None) -> list[str]:
    return [block["reason"] for block in part(case, "status").get("blockedBy") or ()]


def _phases(word: str, event: Event) -> Iterator[str]:
    if event.old is None:
        yield f"{word} {event.key} is made"
    elif event.new is None:
        yield f"{word} {event.key} is gone"
    elif contract.phase(event.old) != contract.phase(event.new):
        why = part(event.new, "status").get("reason") or ""
        yield f"{word} {event.key} is {contract.phase(event.new)} {why}".rstrip()
    elif contract.deleted(event.new) and not contract.deleted(event.old):
        yield f"{word} {event.key} is deleted"
