"""I5: every case ends or is handed to a person, in time; what is over leaves nothing behind."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from remediator_sim.invariants import contract, ledger, pod_words
from remediator_sim.invariants.contract import BUDGETS, PODS, TEMPLATES, Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD
from remediator_sim.invariants.tracked import Tracked


def in_time(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each that ended, went, or was handed to a person after it had held its node."""
    tracked = history.tracked[contract.uid(event.obj)]
    decided = min((at for at in (tracked.over, tracked.escalated) if at), default=None)
    if tracked.claimed and decided == event.at:
        yield _late(history, tracked) or HELD


def still_open(history: History, event: Event) -> Iterator[str]:
    """Time passed. Tells of each case that goes on for longer than is allowed."""
    yield from filter(None, (_late(history, tracked) for tracked in history.open.values()))


FOR_NEWS = timedelta(minutes=30)  # what a node has to be heard of again after an absence of ours, and as long again


def waits_for_the_dead(history: History, event: Event) -> Iterator[str]:
    """Time passed. Tells of each operation that waits to begin on a silent node for longer than its drain may take."""
    for uid, tracked in history.open.items():
        late = [why for each in history.operations_of[uid] if (why := _waits_for_the_dead(history, each))]
        if late and not history.stopped(tracked.last):
            yield from late


def _waits_for_the_dead(history: History, operation: Tracked) -> str:
    if operation.gone or contract.finished(operation.last) or operation.times:
        return ""
    spec = operation.last["spec"]
    ready = contract.condition(history.nodes.get(spec.get("nodeName", "")), "Ready") or {}
    drain = part(history.objects[TEMPLATES].get(spec["templateName"]), "spec", "drain")
    if ready.get("status") != "Unknown":
        return ""
    silent = max(operation.made, contract.moment(ready.get("lastTransitionTime", "")))
    waited = history.at - silent - history.absent(silent)
    late = waited > contract.duration(drain.get("timeout", "30m")) + FOR_NEWS
    return f"operation {operation.name} waits for {spec['nodeName']}, silent since {clock(silent)}" if late else ""


def _late(history: History, tracked: Tracked) -> str:
    """What is wrong with how long a case has gone on, "" for nothing.

    One that has not claimed its node may wait for as long as the node is not clearly well; one that holds it, once
    a person was told what holds it.
    """
    bound, begun = history.limits.bound, tracked.claimed or tracked.well or history.at
    if history.at - begun <= bound:  # as nearly always
        return ""
    node = tracked.last["spec"]["nodeName"]
    if not tracked.claimed:
        return f"case {tracked.name} waits though {node} is well since {clock(begun)}"
    if contract.told(tracked.last):
        return ""
    late = tracked.escalated in (None, history.at) and history.at - tracked.claimed - tracked.stood > bound
    return f"case {tracked.name} held {node} since {clock(tracked.claimed)}: for longer than {bound}" if late else ""


def cleared(history: History, event: Event) -> Iterator[str]:
    """Time passed. Counts each case that was over for as long as it may take to clear everything away."""
    for tracked in history.cases():
        if tracked.over and history.passed(_clearable(tracked) + history.limits.settle):
            yield left(history, tracked)


def _clearable(tracked: Tracked) -> datetime:
    """Since when all of a case that is over can be cleared away: its marks keep others off a node with its Pods."""
    over = tracked.over or tracked.made
    return max(over, tracked.silent or over)


def end(history: History, event: Event) -> Iterator[str]:
    """The end. Counts every case: over and cleared away, known to a person, or visibly stopped."""
    for tracked in history.cases():
        if tracked.over:
            yield left(history, tracked) if event.at - _clearable(tracked) > history.limits.settle else HELD
        elif waits(history, tracked):
            yield _late(history, tracked) or HELD
        else:
            yield f"case {tracked.name} is still {contract.phase(tracked.last)} at the end"


def waits(history: History, tracked: Tracked) -> bool:
    """Whether nothing need happen to an open case before somebody does something, or its gate opens, or just has."""
    told = tracked.escalated or contract.told(tracked.last)
    gated = contract.gated(tracked.last, history.at - history.limits.settle)
    return bool(told or gated or not tracked.claimed or history.stopped(tracked.last))


def ends_once(history: History, event: Event) -> Iterator[str]:
    """A case was written. Tells of each that ends while it tries something, without what completes a try, or again."""
    before, after = (part(obj, "status").get("endedAt") for obj in (event.old, event.new))
    if event.new is None or before == after:
        return
    running = [attempt["operation"] for attempt in contract.attempts(event.new) if not attempt.get("outcome")]
    sentence = f"case {event.key} ended at {clock(event.at)}"
    if before:
        yield f"{sentence}, and had ended before"
    elif running:
        yield f"{sentence} while {running[0]} ran"
    elif contract.phase(event.new) == "Recovered" and (left_out := _incomplete(history, event.new)):
        yield f"{sentence} without {left_out}"


def _incomplete(history: History, case: Obj) -> str:
    """What the newest try of a case that worked wants done after it and was not done, "" for nothing."""
    tries = [attempt for attempt in contract.attempts(case) if contract.is_try(attempt)][-1:]
    for newest in (attempt for attempt in tries if attempt.get("outcome") == "Succeeded"):
        wanted = part(history.objects[TEMPLATES].get(newest.get("template", "")), "spec").get("after") or []
        followed = [each for each in contract.attempts(case) if each.get("follows") == newest["operation"]]
        done = {each.get("template") for each in followed}
        return ", ".join(name for name in wanted if name not in done)
    return ""


TO_END, TO_RELEASE = timedelta(minutes=40), timedelta(minutes=15)  # an operation that has its intent may end first


def obeyed(history: History, event: Event) -> Iterator[str]:
    """Time passed. Tells of each case that goes on for long though a person has deleted it, or given its node back."""
    for tracked in history.open.values():
        released = max(tracked.released, tracked.escalated) if tracked.released and tracked.escalated else None
        for since, most, what in ((tracked.deleted, TO_END, "deleted"), (released, TO_RELEASE, "released")):
            if since and history.at - since - history.absent(since) > most:
                yield f"case {tracked.name}, {what} by a person at {clock(since)}, goes on"


def left(history: History, tracked: Tracked) -> str:
    """What a case that is over has left behind, as a sentence; HELD for nothing."""
    case, over = contract.uid(tracked.last), clock(tracked.over or history.at)
    node = history.nodes.get(tracked.last["spec"]["nodeName"])
    notes = part(node, "metadata", "annotations")
    ledgers = [contract.name(budget) for budget in history.objects[BUDGETS].values() if case in ledger.claims(budget)]
    pods = [contract.name(pod) for pod in history.objects[PODS].values() if _of(pod, case, history)]
    again = any(other.name == tracked.name for other in history.open.values())  # a case that was deleted comes again
    ours = notes.get(contract.CORDON_REASON, "").endswith(f"(remediator {tracked.name})") and not again
    kept = tracked.gone is None and contract.FINALIZER in part(tracked.last, "metadata", "finalizers")
    leftovers = [
        *(["its taint"] if contract.held_by(node) == case else []),
        *(["its cordon"] if notes.get(contract.CORDONED_BY) == case else []),
        *(["its reason for Slurm"] if ours and node and not contract.kept_out(node) else []),
        *(["its word to cluster-autoscaler"] if notes.get(contract.SCALE_DOWN_DISABLED_BY) == case else []),
        *(f"an entry in budget {name}" for name in ledgers),
        *(f"Pod {name}" for name in pods),
        *(["its finalizer"] if kept else []),
    ]
    return f"case {tracked.name} was over at {over} and has left {', '.join(leftovers)}" if leftovers else HELD


def _of(pod: Obj, case: str, history: History) -> bool:
    """Whether it is a Pod of this case, on a node that can still end it."""
    mine = pod_words.template(pod) and part(pod, "metadata", "labels").get(contract.CASE_UID) == case
    return bool(mine) and part(pod, "spec").get("nodeName", "") in history.nodes


def come_back(history: History, event: Event) -> Iterator[str]:
    """A node was written. Counts each time that our case taint appeared: its case is not over."""
    case = contract.held_by(event.new)
    if case and case != contract.held_by(event.old):
        tracked = history.tracked.get(case)
        over = tracked.over if tracked else None
        sentence = f"{event.key} was taken at {clock(event.at)} by case {tracked.name if tracked else case}"
        yield f"{sentence}, which was over since {clock(over)}" if over else HELD
