"""What jobs are promised: they are asked for a checkpoint, go together, and another system's drain is waited for."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from remediator_sim.invariants import contract, pod_words
from remediator_sim.invariants.contract import NODES, OPERATION_UID, TEMPLATES, Obj, clock, moment, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD

WANTED, REQUESTED, DONE = (f"remediator.dev/checkpoint{word}" for word in ("", "-requested", "-done"))
JOBSET = "jobset.sigs.k8s.io/jobset-name"
MOST, UNREADABLE = timedelta(hours=1), timedelta(minutes=10)
LAST_CALL = timedelta(seconds=75)  # so long before its own end a drain waits for nobody; its time is in whole seconds
ONE_ORDER = timedelta(seconds=30)  # from the first to the last eviction of a gang


def asked_before(history: History, event: Event) -> Iterator[str]:
    """A Pod was written. Counts each that wants a checkpoint and goes while we drain its node: we asked, and waited."""
    drain = _drain_that_takes(history, event)
    wanted = _wanted(event.old)
    if drain is None or not wanted or part(event.old, "status").get("phase") != "Running":
        return
    notes = part(event.old, "metadata", "annotations")
    asked, done = moment(notes.get(REQUESTED, "")), moment(notes.get(DONE, ""))
    operation = history.tracked.get(part(drain, "metadata", "labels").get(OPERATION_UID, ""))
    if operation is None:
        return
    sentence = f"Pod {event.key} was evicted at {clock(event.at)}, and wants a checkpoint"
    if asked < moment(part(operation.first, "metadata").get("creationTimestamp", "")):
        yield f"{sentence}: {operation.name} had not asked it"
        return
    over = asked <= done or event.at >= asked + wanted or event.at >= _last_call(history, operation.last, drain)
    yield HELD if over else f"{sentence}: it was asked at {clock(asked)} and has not answered"


def together(history: History, event: Event) -> Iterator[str]:
    """A Pod was written. Counts each of a gang that one drain Pod takes after another one: it is the same order."""
    drain = _drain_that_takes(history, event)
    gang = part(event.old, "metadata", "labels").get(JOBSET)
    if drain is None or not gang:
        return
    key = (gang, contract.uid(drain))
    first = history.gangs.setdefault(key, event.at)
    if event.at > first:
        took = event.at - first - history.absent(first)
        sentence = f"Pod {event.key} of {gang} was evicted at {clock(event.at)}, the first one at {clock(first)}"
        yield HELD if took <= ONE_ORDER else sentence


def answered(history: History, event: Event) -> Iterator[str]:
    """An operation was written. Counts each intent after a drain that was handed over: the other system answered."""
    if not part(event.new, "status").get("intent") or part(event.old, "status").get("intent"):
        return
    drain = part(history.objects[TEMPLATES].get(event.obj["spec"]["templateName"]), "spec", "drain")
    if drain.get("strategy") != "External":
        return
    node, asked = event.obj["spec"]["nodeName"], moment(part(event.new, "status").get("drainStartedAt", ""))
    states = [*history.lately(node), history.objects[NODES].get(node)]
    good = any(_answers(contract.condition(state, drain["condition"]), asked) for state in states)
    yield HELD if good else f"the intent of {event.key} was written, and no {drain['condition']} answers {clock(asked)}"


def _answers(condition: Obj | None, asked: datetime) -> bool:
    if condition is None or condition["status"] != "True":
        return False
    times = (condition.get("lastTransitionTime"), condition.get("lastHeartbeatTime"))
    return any(moment(time or "") >= asked for time in times)


def _drain_that_takes(history: History, event: Event) -> Obj | None:
    """The drain Pod of ours that works on the node of a user's Pod that was just evicted, None where none does."""
    gone = contract.deleted(event.new)
    if event.old is None or not gone or contract.deleted(event.old):
        return None
    if pod_words.template(event.obj):
        return None
    node = part(event.obj, "spec").get("nodeName", "")
    pods = history.objects[contract.PODS].values()
    drains = (pod for pod in pods if pod_words.template(pod) == contract.DRAINS and contract.phase(pod) == "Running")
    return next((pod for pod in drains if pod_words.environment(pod).get("NODE_NAME") == node), None)


def _wanted(pod: Obj | None) -> timedelta:
    notes = part(pod, "metadata", "annotations")
    if WANTED not in notes:
        return timedelta(0)
    readable = re.fullmatch(r"(\d+[hms])+|0", notes[WANTED])
    return min(MOST, contract.duration(notes[WANTED])) if readable else UNREADABLE


def _last_call(history: History, operation: Obj, drain: Obj) -> datetime:
    """Shortly before the drain Pod is over: what the controller has given it is its own time."""
    seconds = part(drain, "spec").get("activeDeadlineSeconds") or 0
    made = moment(part(drain, "metadata").get("creationTimestamp", ""))
    template = part(history.objects[TEMPLATES].get(operation["spec"]["templateName"]), "spec", "drain")
    own = contract.duration(template.get("timeout", "30m"))
    begun = moment(part(operation, "status").get("drainStartedAt", "")) or made
    return min(made + timedelta(seconds=seconds), begun + own) - LAST_CALL - history.limits.clocks
