"""I2, I5: what other controllers ask for is done once at most, under their wish, and they are told how it ended."""

from collections.abc import Iterator
from hashlib import sha256

from remediator_sim.invariants import contract, pod_words
from remediator_sim.invariants.contract import NVSENTINEL_REQUESTS, OPERATIONS, PODS, REQUESTS, Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD
from remediator_sim.invariants.tracked import Tracked

SOURCES = dict(zip(REQUESTS, ("node-repairs", "nvsentinel"), strict=True))
ENDS = dict(zip(REQUESTS, ("Succeeded", "ExternalRemediationComplete"), strict=True))
RELEASED = "NVSentinelOwnershipReleased"
FINALIZER, TAKEN_BACK = "remediator.dev/outcome", "RemediatorTakenBack"


def asked_once(history: History, event: Event) -> Iterator[str]:
    """An operation was written. Counts each that is made for another controller: its only one, and still wanted."""
    if event.old is not None:
        return
    request = next((each for each in history.requests if _operation(each) == event.key), None)
    if request is None:
        return
    same = [each for each in _operations(history, event.key) if each.first is not event.obj]
    sentence = f"operation {event.key} was made at {clock(event.at)} for {request.name}"
    unwanted = _unwanted(history, request)
    if same:
        yield f"{sentence}, and so it was at {clock(same[0].made)}"
    else:
        yield f"{sentence}, {unwanted}" if unwanted else HELD


def _unwanted(history: History, request: Tracked) -> str:
    """Why nothing may be done for it, and has not for the whole grace; "" where something may."""
    if _end(request.last)[0] in ("True", "False"):
        return "which was told its end"
    if request.gone is not None or FINALIZER not in (part(request.last, "metadata").get("finalizers") or ()):
        return "which does not wait for it"
    if request.kind == NVSENTINEL_REQUESTS and _condition(request.last, RELEASED)[0] != "True":
        return "and NVSentinel still works on the node"
    withdrawn = request.withdrawn
    late = withdrawn is not None and history.at - withdrawn > history.limits.grace
    return f"which nobody waits for since {clock(withdrawn)}" if withdrawn and late else ""


def told(history: History, event: Event) -> Iterator[str]:
    """A request was written. Counts each that is told an end: the true one, and it stays."""
    if event.old is None or event.new is None:
        return
    before, (status, reason) = _end(event.old)[0], _end(event.new)
    if before in ("True", "False"):
        if status != before:
            yield f"the end of {event.key} was {before}, and is {status or 'unsaid'} since {clock(event.at)}"
        return
    if status not in ("True", "False"):
        return
    sentence = f"{event.key} was told {status} ({reason}) at {clock(event.at)}"
    cases = _cases(history, _operation(history.tracked[contract.uid(event.obj)]))
    worked = any(_worked(case.last) for case in cases)
    goes_on = [case.name for case in cases if case.over is None and case.escalated is None]
    if reason == TAKEN_BACK:
        there = _operation(history.tracked[contract.uid(event.obj)]) in history.objects[OPERATIONS]
        yield f"{sentence}, and its operation is there" if there else HELD
    elif (status == "True") != worked:
        yield f"{sentence}, and what it asks for was {'' if worked else 'not '}carried out"
    else:
        yield f"{sentence} while case {goes_on[0]} goes on" if goes_on else HELD


def let_go(history: History, event: Event) -> Iterator[str]:
    """A request was written. Counts each that we have waited with, and that goes: nothing works on its node for it.

    A case that a person has works no more: its request was told so, and may go. So may that of a Pod which stands on a
    node whose kubelet does not report: nobody can end that Pod.
    """
    held = [FINALIZER in (part(obj, "metadata").get("finalizers") or ()) for obj in (event.old, event.new)]
    if held != [True, False]:
        return
    cases = _cases(history, _operation(history.tracked[contract.uid(event.obj)]))
    works = [f"case {case.name}" for case in cases if case.over is None and case.escalated is None and case.claimed]
    works += [f"Pod {name}" for name in _pods(history, {contract.uid(case.first) for case in cases})]
    yield f"{event.key} was let go at {clock(event.at)} while {works[0]} works for it" if works else HELD


def _pods(history: History, cases: set[str]) -> list[str]:
    """The names of our Pods that are there for these cases, and have not ended, where their kubelet reports."""
    there = (pod for pod in history.objects[PODS].values() if pod_words.template(pod))
    named = (pod for pod in there if part(pod, "spec").get("nodeName") not in history.unreachable)
    ours = (pod for pod in named if part(pod, "metadata", "labels").get(contract.CASE_UID) in cases)
    return [contract.name(pod) for pod in ours if contract.phase(pod) in ("", "Pending", "Running")]


def unanswered(history: History, event: Event) -> Iterator[str]:
    """Time passed. Tells of each request that hears nothing for long though its operation has ended, or though nobody
    waits for it any more.
    """
    if not history.requests or not history.acts():
        return
    long_ago = history.at - history.limits.settle
    for request in (each for each in history.requests if each.gone is None):
        over = [each for each in _operations(history, _operation(request)) if contract.finished(each.last)]
        ended = [contract.moment(part(each.last, "status").get("finishedAt") or "") for each in over]
        if any(at < long_ago for at in ended) and _end(request.last)[0] not in ("True", "False"):
            yield f"{request.name} was told no end, and its operation has ended at {clock(ended[0])}"
        if request.withdrawn and request.withdrawn < long_ago and _still_asked(history, request):
            yield f"{request.name} is waited for by nobody since {clock(request.withdrawn)}, and its operation waits on"
        deleted = part(request.last, "metadata").get("deletionTimestamp")
        if deleted and contract.moment(deleted) < long_ago and _ours_only(history, request):
            yield f"{request.name} was deleted at {deleted[11:19]}, and is not let go"


def _still_asked(history: History, request: Tracked) -> bool:
    """Whether its operation goes on though its case has not even taken the node."""
    operation = history.objects[OPERATIONS].get(_operation(request))
    idle = not any(case.claimed for case in _cases(history, _operation(request)))
    return operation is not None and not contract.finished(operation) and idle


def _ours_only(history: History, request: Tracked) -> bool:
    """Whether it waits for us alone, and nothing of ours works on its node for it."""
    waits = part(request.last, "metadata").get("finalizers") == [FINALIZER]
    return waits and all(case.over is not None for case in _cases(history, _operation(request)))


def _operation(request: Tracked) -> str:
    """The name of its NodeOperation."""
    digest = sha256(contract.uid(request.first).encode()).hexdigest()[:10]
    return f"{SOURCES[request.kind]}-request-{digest}"


def _operations(history: History, name: str) -> list[Tracked]:
    """The operations of this name that ever were, oldest first."""
    return [each for each in history.operations_of[""] if each.name == name and each.kind == OPERATIONS]


def _cases(history: History, operation: str) -> list[Tracked]:
    """The cases that were opened for this operation of a user."""
    return [case for case in history.cases() if contract.asked_for(case.last).get("operation") == operation]


def _worked(case: Obj) -> bool:
    """Whether its operation was carried out and completed, and no person has the node."""
    attempts = contract.attempts(case)
    tries = [attempt.get("outcome") for attempt in attempts if contract.is_try(attempt)]
    completed = all(
        attempt.get("outcome") in ("Succeeded", "Refused") for attempt in attempts if attempt.get("follows")
    )
    return tries[-1:] == ["Succeeded"] and completed and contract.phase(case) != "Escalated"


def _end(request: Obj) -> tuple[str, str]:
    """The status and the reason by which it says its end; "" where it says none."""
    kinds = [kind for kind in ENDS.values() if _condition(request, kind)[0]]
    return _condition(request, kinds[0]) if kinds else ("", "")


def _condition(request: Obj, kind: str) -> tuple[str, str]:
    shown = contract.condition(request, kind) or {}
    return str(shown.get("status", "")), str(shown.get("reason", ""))
