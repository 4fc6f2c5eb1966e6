"""Which taints of a node keep a DaemonSet from making a Pod there, as the DaemonSet controller judges it. Pure."""

from collections.abc import Iterable
from typing import Any, NamedTuple

Object = dict[str, Any]


class Taint(NamedTuple):
    """What of a taint counts here."""

    key: str
    value: str
    effect: str


# What the DaemonSet controller itself lets every Pod of a DaemonSet tolerate; the last one only on the node's network.
GIVEN = (
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/pid-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/network-unavailable", "operator": "Exists", "effect": "NoSchedule"},
)


def kept_off(node: Object, sets: Iterable[Object]) -> list[Taint]:
    """Return the taints of `node` for which none of the DaemonSets `sets` gets a new Pod there, in the node's order."""
    taints = [_taint(taint) for taint in (node.get("spec") or {}).get("taints") or []]
    accepted = [_tolerations(tolerations) for tolerations in sets]
    return [
        taint
        for taint in taints
        if taint.effect in ("NoSchedule", "NoExecute")
        and not any(_tolerates(toleration, taint) for tolerations in accepted for toleration in tolerations)
    ]


def _taint(taint: Object) -> Taint:
    return Taint(taint.get("key") or "", taint.get("value") or "", taint.get("effect") or "")


def _tolerations(daemon_set: Object) -> list[Object]:
    pod = ((daemon_set.get("spec") or {}).get("template") or {}).get("spec") or {}
    return [*(pod.get("tolerations") or []), *(GIVEN if pod.get("hostNetwork") else GIVEN[:-1])]


def _tolerates(toleration: Object, taint: Taint) -> bool:
    """An operator that is not known here (some compare numbers) tolerates nothing: then nothing is deleted."""
    operator = toleration.get("operator") or "Equal"
    return (
        toleration.get("effect") in (None, "", taint.effect)
        and toleration.get("key") in (None, "", taint.key)
        and (operator == "Exists" or (operator == "Equal" and (toleration.get("value") or "") == taint.value))
    )
