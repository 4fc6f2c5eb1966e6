"""The model of what a drain does with each Pod: a Pod, the parameters and the scene in; a verb and a reason out."""

import re
from typing import Any, NamedTuple

from remediator_sim.plain import Object
from remediator_sim.simulation.programs.api import is_ending, part

ASKED = ("evict", "delete", "force")
MIRROR = "kubernetes.io/config.mirror"
OURS, CLUSTER = "remediator-operations", "kube-system"
OVERDUE_SECONDS = 60.0
LET_GO = "annotate it with remediator.dev/evict=true"
SAFE, KARPENTER = "cluster-autoscaler.kubernetes.io/safe-to-evict", "karpenter.sh/do-not-disrupt"
OVERDUE = "its end is overdue"
REPORTS = "ForceDelete is for a node that is silent, and its kubelet reports: choose Delete, or power the node off"
BARE = f"no controller makes it again: {LET_GO}, or set drain.deleteBarePods in the template"
SILENT = f"{OVERDUE} and the kubelet does not report: its process ends with the node's power, ForceDelete forgets it"
HANGS = f"{OVERDUE}: its process cannot end, or the kubelet is stuck; a reboot ends it (drain.skipWaitForDelete)"
MOST_RETURNS = 10
RETURNS = (
    f"has made {MOST_RETURNS} Pods on this node since the drain began: take the toleration or nodeName off that puts "
    "them here, or leave them to a rule with strategy None"
)
SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


class Scene(NamedTuple):
    """What matters beside the Pod: seconds that it is overdue, and old, and what is so."""

    overdue: float
    age: float
    skipped: bool  # its end is overdue for so long that it is not waited for
    silent: bool  # the kubelet
    deletes: bool  # the time for evictions is over
    overrides: bool  # annotations have had their time
    insistent: frozenset[tuple[str, str, str]]  # makers of Pods that have made too many here again
    judged: bool  # a budget has refused an eviction of it


def stays(pod: Object) -> bool:
    """Whether a drain leaves the Pod alone, whatever its orders."""
    meta = pod["metadata"]
    return (
        meta["namespace"] in (CLUSTER, OURS)
        or MIRROR in (meta.get("annotations") or {})
        or owner(pod) == "DaemonSet"
        or part(pod, "status").get("phase") in ("Succeeded", "Failed")
    )


def owner(pod: Object) -> str:
    """The kind of its controller."""
    return maker(pod)[1]


def maker(pod: Object) -> tuple[str, str, str]:
    """Namespace, kind and name of what makes it again."""
    owners: list[dict[str, Any]] = pod["metadata"].get("ownerReferences") or []
    named = ((reference["kind"], reference["name"]) for reference in owners if reference.get("controller"))
    return (pod["metadata"]["namespace"], *next(named, ("", "")))


def owned_by(pod: Object) -> str:
    """Who owns it, in words."""
    space, kind, name = maker(pod)
    return f"{kind} {name}".strip() or f"whoever makes Pods in {space}"


def move(pod: Object, given: Object, scene: Scene) -> tuple[str, str]:
    """What is done with the Pod, and what keeps it."""
    strategy = strategy_of(pod, given)
    if strategy == "None" or scene.skipped:
        return ("leave" if strategy == "None" else "skip"), ""
    if is_ending(pod):
        return _ending(pod, scene, forced=strategy == "ForceDelete" and scene.silent)
    if strategy == "WaitForCompletion":
        return "wait", "WaitForCompletion: it is waited for until it ends by itself"
    if maker(pod) in scene.insistent:
        return "keep", f"{owned_by(pod)} {RETURNS}"
    if why := _kept(pod, given, scene):
        return "keep", why
    if strategy == "ForceDelete":
        return ("force", "") if scene.silent else ("keep", REPORTS)
    late = strategy == "EvictThenDelete" and scene.deletes and scene.judged
    return ("delete" if strategy == "Delete" or late else "evict"), ""


def is_timed(pod: Object) -> bool:
    """Whether its age alone may end what keeps it."""
    return KARPENTER in (pod["metadata"].get("annotations") or {})


def strategy_of(pod: Object, given: Object) -> str:
    """The strategy of the first rule that applies to it, else that of the drain."""
    labels = pod["metadata"].get("labels") or {}
    for rule in given.get("rules", ()):
        wanted = (rule.get("selector") or {}).get("matchLabels", {})
        if (
            pod["metadata"]["namespace"] in (rule.get("namespaces") or [pod["metadata"]["namespace"]])
            and owner(pod) in (rule.get("owners") or [owner(pod)])
            and all(labels.get(key) == value for key, value in wanted.items())
        ):
            return str(rule["strategy"])
    return str(given.get("strategy", "Evict"))


def _ending(pod: Object, scene: Scene, *, forced: bool) -> tuple[str, str]:
    meta = pod["metadata"]
    if meta.get("deletionGracePeriodSeconds") == 0 and meta.get("finalizers"):
        return "wait", f"finalizers keep it: {', '.join(meta['finalizers'])}"[:300]
    if forced:
        return "force", ""
    if scene.overdue <= OVERDUE_SECONDS:
        return "wait", ""
    return "wait", SILENT if scene.silent else HANGS


def _kept(pod: Object, given: Object, scene: Scene) -> str:
    if (why := why_owner_keeps(pod, scene)) or _wish(pod, scene.age)[0]:
        return why
    notes: dict[str, str] = pod["metadata"].get("annotations") or {}
    lost = [] if owner(pod) or given.get("deleteBarePods") else [BARE]
    safe = notes.get(f"{SAFE}-local-volumes", "").split(",")
    volumes = [volume["name"] for volume in part(pod, "spec").get("volumes") or () if "emptyDir" in volume]
    unsafe = [name for name in volumes if name not in safe]
    data = ", ".join([*unsafe[:5], *(["…"] if len(unsafe) > 5 else [])])
    if data and not given.get("deleteEmptyDirData"):
        lost.append(f"data in emptyDir ({data}) would be lost: {LET_GO}, or set drain.deleteEmptyDirData")
    return "; ".join(lost)


def _wish(pod: Object, age: float) -> tuple[bool, str]:
    """Whether it may go whatever is lost, and the annotation that keeps it."""
    notes: dict[str, str] = pod["metadata"].get("annotations") or {}
    if (ours := notes.get("remediator.dev/evict")) is not None:
        return ours == "true", "" if ours == "true" else "remediator.dev/evict"
    if _protects(notes.get(KARPENTER, ""), age):
        return False, KARPENTER
    return notes.get(SAFE) == "true", SAFE if notes.get(SAFE) == "false" else ""


def why_owner_keeps(pod: Object, scene: Scene) -> str:
    """Which annotation keeps it, in words."""
    _, kept = _wish(pod, scene.age)
    if not kept or scene.overrides:
        return ""
    return f"its annotation {kept} keeps it: let it end by itself, or {LET_GO}; its owner is {owned_by(pod)}"


def _protects(value: str, age: float) -> bool:
    if not re.fullmatch(r"([0-9.]+(h|ms|m|s))+", value):
        return value == "true"
    return age < sum(float(count) * SECONDS[unit] for count, unit in re.findall(r"([0-9.]+)(h|ms|m|s)", value))
