"""I4: the breaker and every hold stop starts, and only starts."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from remediator_sim.invariants import causes, contract, pod_words
from remediator_sim.invariants.contract import Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import PAUSE, History, begun, control_plane, full
from remediator_sim.invariants.results import HELD
from remediator_sim.invariants.tracked import Tracked


def breaker(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each new attempt: with it no more have begun than the breaker lets through."""
    limits = history.limits
    for attempt in begun(event):
        count = len(history.starts_within(limits.breaker_window))
        sentence = (
            f"{attempt['operation']} was start number {count} within {limits.breaker_window} at {clock(event.at)}"
        )
        yield HELD if count <= limits.breaker_starts else f"{sentence}; the breaker allows {limits.breaker_starts}"


def held(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each new attempt, and the first claim: nothing that stops starts stood then.

    That is what a person has set, tries that were in vain, and a cause that many nodes have in common.
    """
    starts = [f"{attempt['operation']} was begun" for attempt in begun(event)]
    if part(event.new, "status").get("startedAt") and not part(event.old, "status").get("startedAt"):
        starts.append(f"case {event.key} took {event.obj['spec']['nodeName']}")
    for what in starts:
        yield _in_spite(history, history.stopped(event.obj), what) or _against(history, event.obj, what)


def _against(history: History, case: Obj, what: str) -> str:
    """What stops starts without anybody having set it: tries that were in vain, and what many nodes have in common."""
    policy = history.policy(case)
    if policy is None or history.lately_edited(contract.name(policy)):
        return HELD
    why = history.in_vain(policy) or causes.in_common(history, case)
    return f"{what} at {clock(history.at)} though {why}" if why else HELD


def pod(history: History, event: Event) -> Iterator[str]:
    """A Pod was written. Counts each new Pod of ours: none is made while all new work, or its case, is stopped."""
    if event.old is None and pod_words.template(event.obj):
        stops = {PAUSE: history.stops[PAUSE]} if PAUSE in history.stops else {}
        uid = part(event.obj, "metadata", "labels").get(contract.CASE_UID)
        cases = [tracked.last for tracked in history.open.values() if contract.uid(tracked.last) == uid]
        for case in cases:
            stops |= history.stopped(case)
        yield _in_spite(history, stops, f"Pod {event.key} was made")


def _in_spite(history: History, stops: dict[str, datetime], what: str, grace: timedelta | None = None) -> str:
    """What a person set a moment ago may not have been heard of yet."""
    unheard = history.limits.grace if grace is None else grace
    old = [(word, since) for word, since in stops.items() if history.at - since > unheard]
    return f"{what} at {clock(history.at)} though {old[0][0]} since {clock(old[0][1])}" if old else HELD


def goes_on(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each that ended, or went, while starts were stopped."""
    news = contract.ended(event.new) and not contract.ended(event.old)
    if (news or event.new is None) and (history.stopped(event.obj) or full(history)):
        yield HELD


def stuck(history: History, event: Event) -> Iterator[str]:
    """Time passed. Tells of each case that starts are stopped for, and whose recovery waits with them."""
    for tracked in history.open.values():
        if not _well_for_long(history, tracked):
            continue
        stops = history.stopped(tracked.last) or (full(history) and {"the breaker is open": history.at})
        if stops and not _running(tracked.last) and not _to_probe(history, tracked.last):
            node, since = tracked.last["spec"]["nodeName"], clock(tracked.well or history.at)
            yield f"case {tracked.name} does not end though {node} is well since {since}: {next(iter(stops))}"


def _well_for_long(history: History, tracked: Tracked) -> bool:
    """Whether the node has shown that it is well for all that its policy asks, and a while more."""
    if tracked.well is None or tracked.escalated is not None:
        return False
    verify = part(history.policy(tracked.last), "spec", "verify")
    asked = [contract.duration(verify.get(word, usual)) for word, usual in (("settle", "5m"), ("fresh", "3m"))]
    needed = sum(asked, history.limits.settle)
    return history.at - tracked.well > needed


def _to_probe(history: History, case: Obj) -> bool:
    """Whether its recovery needs a Pod, which what stops starts stops, too."""
    return bool(part(history.policy(case), "spec", "verify").get("probe"))


def _running(case: Obj) -> bool:
    return any(not attempt.get("outcome") for attempt in contract.attempts(case)[-1:])


def next_pod(history: History, event: Event) -> Iterator[str]:
    """A Pod was written. Counts each new Pod of ours that disturbs: none for a case that a person has stopped."""
    if event.old is None and pod_words.template(event.obj) not in ("", contract.LOOKS):
        uid = part(event.obj, "metadata", "labels").get(contract.CASE_UID, "")
        yield from _stopped_before(history, uid, f"Pod {event.key} was made")


def next_intent(history: History, event: Event) -> Iterator[str]:
    """An operation was written. Counts each new intent: none for a case that a person has stopped."""
    if part(event.new, "status").get("intent") and not part(event.old, "status").get("intent"):
        uid = event.obj["spec"].get("caseUID", "")
        yield from _stopped_before(history, uid, f"the intent of {event.key} was written")


def _stopped_before(history: History, uid: str, what: str) -> Iterator[str]:
    tracked = history.tracked.get(uid)
    if tracked is not None:
        yield _in_spite(history, history.stopped(tracked.last) | _deleted(tracked), what)


def _deleted(tracked: Tracked) -> dict[str, datetime]:
    return {f"case {tracked.name} was deleted": tracked.deleted} if tracked.deleted else {}


TOLD_AFTER, TO_TELL = timedelta(hours=1), timedelta(minutes=15)


def told(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each that says for the first time that a user was told what holds it."""
    if contract.told(event.new) and not contract.told(event.old):
        yield HELD


def silent(history: History, event: Event) -> Iterator[str]:
    """Time passed. Tells of each case that is held for long, as no user has chosen, and of which nobody was told."""
    for tracked in history.open.values():
        since = tracked.held
        if since is None or history.at - since <= TOLD_AFTER + TO_TELL or tracked.deleted or tracked.escalated:
            continue
        if not contract.told(tracked.last) and history.at - since - history.absent(since) > TOLD_AFTER + TO_TELL:
            yield f"case {tracked.name} is held since {clock(since)}, and nobody was told"


def since(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each reason that holds it as before: the time since when it does has not moved."""
    before, now = _since(event.old), _since(event.new)
    for reason in sorted(before.keys() & now.keys()):
        moved = f"case {event.key} is held for {reason} since {now[reason]!r}, and had said {before[reason]!r}"
        yield HELD if now[reason] == before[reason] != "" else moved


def _since(case: Obj | None) -> dict[str, str]:
    blocks = part(case, "status").get("blockedBy") or ()
    return {block["reason"]: block.get("since") or "" for block in blocks}


FOR_THE_END = timedelta(minutes=15)  # what an operation may take to end that must not go on


def cancelled(history: History, event: Event) -> Iterator[str]:
    """Time passed. Tells of each operation without an intent that goes on for long though its case is stopped."""
    for uid, tracked in history.open.items():
        going = [each for each in history.operations_of[uid] if not (each.gone or contract.finished(each.last))]
        stops = history.set_stops(tracked.last) if going else {}
        since = min(stops.values(), default=history.at)
        for operation in going:
            begun = max(since, operation.made)  # a user may make one for a case that was stopped before
            if "intent" not in operation.times and history.at - begun - history.absent(begun) > FOR_THE_END:
                yield f"operation {operation.name} goes on though {next(iter(stops))} since {clock(since)}"


def claimed(history: History, event: Event) -> Iterator[str]:
    """A node was written. Counts each claim and each cordon of ours: none on a node of the control plane."""
    taken = contract.held_by(event.new) and contract.held_by(event.new) != contract.held_by(event.old)
    by = part(event.new, "metadata", "annotations").get(contract.CORDONED_BY)
    if taken or (by and by != part(event.old, "metadata", "annotations").get(contract.CORDONED_BY)):
        yield _on_control_plane(history, event.key, f"{event.key} was taken out of service")


# A drain looks up every 5 seconds what stops it, and an eviction that was sent before may take a moment.
UNTIL_NEXT_LOOK = timedelta(seconds=8)


def evicted(history: History, event: Event) -> Iterator[str]:
    """A Pod was written. Counts each of somebody else that goes while we drain its node: none while it is stopped."""
    node, gone = part(event.obj, "spec").get("nodeName", ""), contract.deleted(event.new)
    if event.old is None or contract.deleted(event.old) or not (gone or event.new is None):
        return
    tracked = history.tracked.get(_drained_for(history, node))
    if tracked is not None and not pod_words.template(event.obj):
        stops = history.set_stops(tracked.last) | _deleted(tracked)
        if stops:
            yield _in_spite(history, stops, f"Pod {event.key} was evicted", UNTIL_NEXT_LOOK)


def _drained_for(history: History, node: str) -> str:
    """The uid of the case for which a drain of ours works on the node, "" where none does."""
    drains = (pod for pod in history.objects[contract.PODS].values() if pod_words.template(pod) == contract.DRAINS)
    labels = (
        part(pod, "metadata", "labels")
        for pod in drains
        if pod_words.environment(pod).get("NODE_NAME") == node and contract.phase(pod) in ("", "Pending", "Running")
    )
    return next((found.get(contract.CASE_UID, "") for found in labels), "")


def rebooted(history: History, event: Event) -> Iterator[str]:
    """A machine was asked to reboot. Counts each time: none of the control plane, unless the Pod was there before."""
    node, attempt = event.obj["node"], event.obj["attemptID"]
    operations = [tracked for tracked in history.tracked.values() if tracked.kind == contract.OPERATIONS]
    uids = [contract.uid(tracked.first) for tracked in operations if tracked.name == attempt]
    began = max((pod.made for uid in uids for pod in history.pods_of.get(uid, ())), default=history.at)
    yield _on_control_plane(history, node, f"{node} was asked to reboot", min(began, history.at))


def _on_control_plane(history: History, node: str, what: str, at: datetime | None = None) -> str:
    since = history.stops.get(control_plane(node))
    late = since is not None and (at or history.at) - since > history.limits.grace
    return (
        f"{what} at {clock(history.at)} though it is part of the control plane since {clock(since)}"
        if since and late
        else HELD
    )


def truly_of_control_plane(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each that is held for the control plane: its node is part of it, or was lately."""
    node = event.obj["spec"]["nodeName"]
    if _held_for_control_plane(event.new) and not _held_for_control_plane(event.old):
        known = history.left.get(node, history.at - 2 * history.limits.grace)
        true = control_plane(node) in history.stops or history.at - known <= history.limits.grace
        sentence = f"case {event.key} is held for the control plane at {clock(event.at)}, and {node} is none of it"
        yield HELD if true else sentence


def _held_for_control_plane(case: Obj | None) -> bool:
    return any(block.get("reason") == "ControlPlane" for block in part(case, "status").get("blockedBy") or ())
