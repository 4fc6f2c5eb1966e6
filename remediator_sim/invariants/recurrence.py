"""I10: a fault that comes back climbs, and ends with a person: by what the policy says of relapses and lemons."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise

from remediator_sim.invariants import contract
from remediator_sim.invariants.contract import Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.failures import KEPT_BY_PODS
from remediator_sim.invariants.history import History, begun
from remediator_sim.invariants.results import HELD

WEEK = timedelta(days=7)


def known(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each first attempt under a policy that knows lemons: node and board are none yet."""
    policy = _asked(history, event, "lemon")
    if policy is None or not _first(event):
        return
    spec, node = policy["spec"]["lemon"], event.obj["spec"]["nodeName"]
    most, since = spec.get("cases", 3), _opened(event.obj) - contract.duration(spec.get("window", "720h"))
    cases = [case for case in _before(history, event.obj) if _end(case) > since]
    here = [case for case in cases if case["spec"]["nodeName"] == node]
    of_node = [case for case in _since_repair(here) if _did(case)]
    of_board = [case for case in _of_board(history, event.obj, cases) if _did(case)]
    sentence = f"case {event.key} began an operation on {node} at {clock(event.at)}"
    for what, counted in (("the node", of_node), ("its board", of_board)):
        yield f"{sentence} though {what} had {len(counted)} cases, of {most} allowed" if len(counted) >= most else HELD


def _of_board(history: History, asked: Obj, cases: list[Obj]) -> list[Obj]:
    """The cases of its board that count: of other nodes those from before it was seen here, and of two at least."""
    boards, node = _boards(asked), asked["spec"]["nodeName"]
    if not boards:
        return []
    every = (case for case in [asked, *(tracked.last for tracked in history.cases())] if boards & _boards(case))
    first = min(_opened(case) for case in every if case["spec"]["nodeName"] == node)
    same = [case for case in cases if boards & _boards(case)]
    counted = [case for case in same if case["spec"]["nodeName"] == node or _end(case) <= first]
    nodes = {case["spec"]["nodeName"] for case in counted if _did(case)}
    return counted if node in nodes or len(nodes) > 1 else []


def higher(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each relapse: it begins above the last one, and is not the second in a week."""
    policy = _asked(history, event, "relapse")
    if policy is None or not _first(event):
        return
    window = contract.duration(policy["spec"]["relapse"].get("window", "72h"))
    row = _recovered(history, event.obj)
    if not row or _opened(event.obj) - _end(row[-1]) >= window:
        return
    sentence = f"case {event.key} began an operation at {clock(event.at)}"
    ladder = policy["spec"].get("ladder") or []
    highest = max(attempt["rung"] for attempt in _tries(row[-1]))
    rung = begun(event)[0]["rung"]
    again = [
        later
        for earlier, later in pairwise(row)
        if _opened(event.obj) - _opened(later) < WEEK and _opened(later) - _end(earlier) < window
    ]
    if again:
        yield f"{sentence}, the second relapse after that of {contract.name(again[-1])}"
    elif rung < min(highest + 1, len(ladder)):
        yield f"{sentence} on rung {rung}, and {contract.name(row[-1])} before it came to rung {highest}"
    else:
        yield HELD


def bounded(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each attempt on a node that had recovered by itself before: its cases are bounded."""
    policy = history.policy(event.obj)
    if policy is None or not begun(event) or history.lately_edited(contract.name(policy)):
        return
    limit = policy["spec"].get("attempts") or {}
    since = event.at - contract.duration(limit.get("window", "168h"))
    idle = [case for case in _same(history, event.obj) if _by_itself(case) and _claimed(case) > since]
    most = limit.get("max", 4)
    if idle:
        sentence = f"case {event.key} began an operation at {clock(event.at)} after {len(idle)} cases in which none was"
        yield f"{sentence}, where {most} attempts are allowed" if len(idle) >= most else HELD


def _asked(history: History, event: Event, field: str) -> Obj | None:
    """The policy of a case that was written, where it has this field and nobody has edited it lately."""
    policy = history.policy(event.obj)
    if policy is None or event.new is None or history.lately_edited(contract.name(policy)):
        return None
    return policy if part(policy, "spec").get(field) else None


def _first(event: Event) -> bool:
    """Whether a write tells of the first attempt of a case."""
    return bool(begun(event)) and not any(map(contract.is_try, contract.attempts(event.old)))


def _before(history: History, case: Obj) -> list[Obj]:
    """The other cases that had ended so long ago that everybody knows, oldest first; deleted ones are forgotten."""
    known = (tracked for tracked in history.cases() if tracked.gone is None and tracked.over is not None)
    late = history.at - history.limits.grace
    cases = [tracked.last for tracked in known if tracked.over and tracked.over < late]
    others = (other for other in cases if contract.uid(other) != contract.uid(case))
    return sorted((other for other in others if part(other, "status").get("endedAt")), key=_end)


def _same(history: History, case: Obj) -> list[Obj]:
    """Those of the same node and policy."""
    return [other for other in _before(history, case) if _key(other) == _key(case)]


def _key(case: Obj) -> tuple[str, str]:
    return case["spec"]["nodeName"], case["spec"].get("policyName", "")


def _recovered(history: History, case: Obj) -> list[Obj]:
    """Those of the same node and policy that have done something and recovered, since a person had the node."""
    row: list[Obj] = []
    for other in _same(history, case):
        if contract.phase(other) == "Escalated":
            row = []
        elif contract.phase(other) == "Recovered" and _tries(other):
            row.append(other)
    return row


def _since_repair(cases: list[Obj]) -> list[Obj]:
    """Those of a node since a person had one of them: whoever gave it back knows of those before."""
    repaired = [index for index, other in enumerate(cases) if contract.phase(other) == "Escalated"]
    return cases[repaired[-1] + 1 :] if repaired else cases


def _tries(case: Obj) -> list[Obj]:
    """What was carried out; what was cancelled may have been nothing, and what ended in its drain was none."""
    carried_out = (
        attempt
        for attempt in contract.attempts(case)
        if attempt.get("outcome") not in ("", None, "Cancelled") and attempt.get("reason") not in KEPT_BY_PODS
    )
    return [attempt for attempt in carried_out if attempt.get("counts", True) and contract.is_try(attempt)]


def _did(case: Obj) -> bool:
    """Whether it has done something for a fault, and was not cancelled; what a user asks for proves no fault."""
    return bool(_tries(case)) and contract.phase(case) != "Cancelled" and not contract.asked_for(case)


def _by_itself(case: Obj) -> bool:
    """Whether it had taken the node and recovered, though no operation was begun."""
    taken = part(case, "status").get("startedAt")
    return (
        contract.phase(case) == "Recovered" and bool(taken) and not any(map(contract.is_try, contract.attempts(case)))
    )


def _boards(case: Obj) -> set[str]:
    """The serial numbers of the boards that the case is about: those whose address its condition names."""
    gpus = part(case, "status", "evidence").get("gpus") or ()
    message = part(case, "spec", "trigger").get("message", "")
    return {gpu["serial"] for gpu in gpus if gpu["address"] in message}


def _opened(case: Obj) -> datetime:
    return contract.moment(part(case, "metadata").get("creationTimestamp") or "")


def _end(case: Obj) -> datetime:
    return contract.moment(part(case, "status").get("endedAt") or "")


def _claimed(case: Obj) -> datetime:
    return contract.moment(part(case, "status").get("startedAt") or "")
