"""I6: a Pod that would be lost, or that its owner keeps, goes by no drain of ours, unless that was declared."""

import json
from collections.abc import Iterator
from datetime import timedelta

from remediator_sim.invariants import contract, pod_words
from remediator_sim.invariants.contract import Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD

EVICT, SAFE = "remediator.dev/evict", "cluster-autoscaler.kubernetes.io/safe-to-evict"
KARPENTER = "karpenter.sh/do-not-disrupt"


def taken(history: History, event: Event) -> Iterator[str]:
    """A Pod was written. Counts each of somebody else that is deleted while we drain its node."""
    node = part(event.obj, "spec").get("nodeName", "")
    marked = contract.deleted(event.new) and event.old is not None
    if not marked or contract.deleted(event.old) or pod_words.template(event.obj):
        return
    parameters = _parameters(history, node)
    if parameters is not None and node in history.nodes:
        why = _kept(event.old or {}, parameters)
        yield f"Pod {event.key} was taken from {node} at {clock(event.at)} though {why}" if why else HELD


# How long a leader whose watch is silent may go by a template that has been changed.
UNHEARD = timedelta(minutes=15)


def declared(history: History, event: Event) -> Iterator[str]:
    """A Pod was written. Counts each new drain, and what it is told that may be lost: its template says so."""
    if event.old is not None or pod_words.template(event.obj) != contract.DRAINS:
        return
    parameters = json.loads(pod_words.environment(event.obj).get("PARAMETERS") or "{}")
    uid = part(event.obj, "metadata", "labels").get(contract.OPERATION_UID, "")
    operation = history.tracked.get(uid)
    if operation is not None:
        name = part(operation.first, "spec").get("templateName", "")
        wrong = [field for field in contract.DECLARES if _told(parameters, field) and not _says(history, name, field)]
        yield f"{event.key} was told {wrong[0]} at {clock(event.at)}; template {name} does not" if wrong else HELD


def _told(parameters: Obj, field: str) -> bool:
    """Whether a drain is told it; a time is told in seconds."""
    return bool(parameters.get(field)) or f"{field}Seconds" in parameters


def _says(history: History, template: str, field: str) -> bool:
    """Whether a template declares it, or did lately."""
    drain = part(history.objects[contract.TEMPLATES].get(template), "spec", "drain")
    last = history.taken_back.get((template, field))
    return bool(drain.get(field)) or (last is not None and history.at - last < UNHEARD)


def _parameters(history: History, node: str) -> Obj | None:
    """The parameters of a drain that works on the node, None where none does."""
    for pod in history.objects[contract.PODS].values():
        given = pod_words.environment(pod) if pod_words.template(pod) == contract.DRAINS else {}
        if given.get("NODE_NAME") == node and contract.phase(pod) in ("", "Pending", "Running"):
            decoded: Obj = json.loads(given.get("PARAMETERS") or "{}")
            return decoded
    return None


def _kept(pod: Obj, parameters: Obj) -> str:
    """Why nobody may take it."""
    notes = part(pod, "metadata", "annotations")
    overridden = "overrideAnnotationsAfterSeconds" in parameters  # from when on, only the drain knows
    if EVICT in notes and not (overridden and notes[EVICT] != "true"):
        return "" if notes[EVICT] == "true" else f"{EVICT} keeps it"
    if not overridden and (notes.get(KARPENTER) == "true" or notes.get(SAFE) == "false"):
        return "an annotation keeps it"
    if notes.get(SAFE) == "true":
        return ""
    owned = any(owner.get("controller") for owner in part(pod, "metadata").get("ownerReferences") or ())
    if not owned and not parameters.get("deleteBarePods"):
        return "nothing makes it again"
    data = any("emptyDir" in volume for volume in part(pod, "spec").get("volumes") or ())
    return "its data is lost" if data and not parameters.get("deleteEmptyDirData") else ""
