"""What is handed over: what users ask for is done once and answered, and no node comes back without its proof."""

from collections.abc import Iterator
from datetime import timedelta

from remediator_sim.invariants import clauses, contract
from remediator_sim.invariants.contract import CASES, OPERATIONS, Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.failures import KEPT_BY_PODS
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD

BY_ITSELF = "ReleasedHealthy"


def one_case(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each new one for a user's operation: the only one, of an operation that was there."""
    asked = contract.asked_for(event.obj)
    if event.old is not None or not asked:
        return
    same = [
        tracked.name
        for tracked in history.cases()
        if tracked.first is not event.obj and contract.asked_for(tracked.first).get("uid") == _of(asked)
    ]
    made = history.tracked.get(_of(asked))
    sentence = f"case {event.key} was opened at {clock(event.at)} for operation {asked.get('operation')}"
    if same:
        yield f"{sentence}, and so was {same[0]} before"
    elif made is None or made.first["spec"].get("templateName") != asked.get("templateName"):
        yield f"{sentence}, which asks for nothing like it"
    else:
        yield HELD


def _of(asked: Obj) -> str:
    return str(asked.get("uid", ""))


def one_try(history: History, event: Event) -> Iterator[str]:
    """An operation was written. Counts each intent of one for a user: no other one had its intent, and then a Pod.

    Who lets the case try again asks once more.
    """
    case = history.tracked.get(event.obj["spec"].get("caseUID", ""))
    newly = part(event.new, "status").get("intent") and not part(event.old, "status").get("intent")
    if case is None or not contract.asked_for(case.last) or not newly:
        return
    asked = contract.asked_for(case.last)
    if event.obj["spec"]["templateName"] != asked["templateName"]:  # it completes the one that was asked for
        return
    again = part(case.last, "status").get("retriedAfter", 0)
    before = {attempt["operation"] for attempt in contract.attempts(case.last)[:again]}
    earlier = [
        each.name
        for each in history.operations_of[contract.uid(case.last)]
        if each.name not in (event.key, *before)
        and "intent" in each.times
        and each.last["spec"]["templateName"] == asked["templateName"]
        and not history.never_ran(each.last)
    ]
    sentence = f"{event.key} was begun at {clock(event.at)} for what a user has asked for once"
    yield f"{sentence}, and so was {earlier[0]} before" if earlier else HELD


def answered(history: History, event: Event) -> Iterator[str]:
    """Time passed. Tells of each operation of a user that says nothing though its case is over for long."""
    unfinished = [each for each in history.objects[OPERATIONS].values() if not contract.finished(each)]
    if not unfinished:  # as in most moments
        return
    over = {_of(contract.asked_for(tracked.last)): tracked for tracked in history.cases() if _decided(tracked)}
    for operation in unfinished:
        tracked = over.get(contract.uid(operation))
        if tracked is None:
            continue
        since = min(at for at in (tracked.over, tracked.escalated) if at)
        if history.at - since - history.absent(since) > history.limits.settle:
            yield f"operation {contract.name(operation)} is not answered, and case {tracked.name} is over"


def _decided(tracked: object) -> bool:
    return bool(getattr(tracked, "over", None) or getattr(tracked, "escalated", None))


def probed(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each that recovers after a try under a policy with a probe: that one has succeeded.

    Where no operation of the case was carried out, its fault has gone by itself, and there is nothing to try out.
    """
    policy = history.policy(event.obj)
    recovers = contract.phase(event.new) == "Recovered" and contract.phase(event.old) != "Recovered"
    if not recovers or policy is None or history.lately_edited(contract.name(policy)):
        return
    idle = {each.name for each in history.operations_of[contract.uid(event.obj)] if history.never_ran(each.last)}
    attempts = contract.attempts(event.new)
    if all(attempt["operation"] in idle or attempt.get("reason") in KEPT_BY_PODS for attempt in attempts):
        return
    wanted = part(policy, "spec", "verify").get("probe")
    newest = attempts[-1]
    good = newest.get("probe") and (newest.get("template"), newest.get("outcome")) == (wanted, "Succeeded")
    if wanted:
        yield HELD if good else f"case {event.key} recovered at {clock(event.at)} without the probe {wanted}"


def kept(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each that recovers after a try: its node has the devices that it had before."""
    policy = history.policy(event.obj)
    recovers = contract.phase(event.new) == "Recovered" and contract.phase(event.old) != "Recovered"
    if (
        not recovers
        or policy is None
        or history.lately_edited(contract.name(policy))
        or not contract.attempts(event.new)
    ):
        return
    known = part(event.obj, "spec", "trigger", "devices")
    if not known or part(policy, "spec", "verify").get("inventory") == "Ignore":
        return
    node = event.obj["spec"]["nodeName"]
    lacking = [contract.lacks(state, event.obj) for state in history.lately(node)]
    text = (
        f"case {event.key} recovered at {clock(event.at)}, and {node} lacks {', '.join(lacking[-1] if lacking else ())}"
    )
    yield text if lacking and all(lacking) else HELD


def released(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each that is released by itself: its policy says so, and nobody holds it.

    Its node is well for as long as a recovery asks for, and it is the first time within the window of attempts.
    """
    if part(event.new, "status").get("reason") != BY_ITSELF or contract.ended(event.old):
        return
    policy, node = history.policy(event.obj), event.obj["spec"]["nodeName"]
    if policy is None or history.lately_edited(contract.name(policy)):
        return
    sentence = f"case {event.key} was released by itself at {clock(event.at)}"
    stops = [word for word, since in history.set_stops(event.obj).items() if history.at - since > history.limits.grace]
    if part(policy, "spec", "escalation").get("release") != "WhenHealthy":
        yield f"{sentence}, and its policy does not say so"
    elif stops:
        yield f"{sentence} though {stops[0]}"
    elif not history.well(node, policy) or _settled(history, node, policy) < _settle(policy) - timedelta(seconds=2):
        yield f"{sentence}, and {node} has not shown for long enough that it is well"
    elif _before(history, event.obj, policy):
        yield f"{sentence}, and another case of {node} was, too"
    else:
        yield HELD


def _settle(policy: Obj) -> timedelta:
    return contract.duration(part(policy, "spec", "verify").get("settle", "5m"))


def _settled(history: History, node: str, policy: Obj) -> timedelta:
    """For how long, by its own clock, the node has said that all is well."""
    return min(clauses.lasted(history.nodes.get(node), policy), default=timedelta())


def _before(history: History, case: Obj, policy: Obj) -> bool:
    """Whether a case of the node that is still there was released by itself within the window."""
    window = contract.duration(part(policy, "spec", "attempts").get("window", "168h"))
    others = (other for other in history.objects[CASES].values() if contract.uid(other) != contract.uid(case))
    return any(
        part(other, "status").get("reason") == BY_ITSELF
        and other["spec"]["nodeName"] == case["spec"]["nodeName"]
        and history.at - contract.moment(part(other, "status").get("endedAt") or "") < window - history.limits.grace
        for other in others
    )
