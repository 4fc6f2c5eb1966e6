"""Shipped files in a hurry: what takes minutes in production takes seconds here. Nothing else of them is changed."""

from typing import Any, NamedTuple

from remediator.kube.api import seconds

# 5 minutes of a policy are 2 seconds of the demo; how often something is tried, and windows over days, stay.
FASTER = 150.0
# What only calls a person waits until every node has had its say: detectors run every 5 seconds, not every minute.
UNHURRIED = 12.0
# Patience with a machine that plays a whole fleet: 20 minutes are 20 seconds.
PATIENT = 60.0


class Scale(NamedTuple):
    """How many times faster the waits of a policy pass; `escalation`: the tolerance of one that only escalates."""

    tolerance: float = FASTER
    escalation: float = UNHURRIED
    verify: float = FASTER
    timeout: float = PATIENT
    cooldown: float = FASTER


DEMO = Scale()


def policy(document: dict[str, Any], scale: Scale = DEMO) -> dict[str, Any]:
    """A shipped policy that acts, in a hurry; any other object as it is."""
    if document["kind"] != "RemediationPolicy":
        return document
    spec = document["spec"]
    tolerance = scale.escalation if spec.get("urgency", {}).get("mode") == "Never" else scale.tolerance
    changed: dict[str, Any] = {
        "mode": "Enforce",
        "when": [{**entry, "for": hasten(entry.get("for", "2m"), tolerance)} for entry in spec["when"]],
        "cooldown": hasten(spec.get("cooldown", "30m"), scale.cooldown),
    }
    if "verify" in spec:
        changed["verify"] = {
            "settle": hasten(spec["verify"]["settle"], scale.verify),
            "fresh": hasten(spec["verify"]["fresh"], scale.verify),
            "timeout": hasten(spec["verify"]["timeout"], scale.timeout),
        }
    return {**document, "spec": {**spec, **changed}}


def hasten(duration: str, times: float = FASTER) -> str:
    """A duration so many times shorter.

    >>> hasten("5m")
    '2000ms'
    """
    return f"{round(seconds(duration) * 1000 / times)}ms"
