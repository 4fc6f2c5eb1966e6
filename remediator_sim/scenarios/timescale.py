"""The shipped policies in seconds instead of minutes. Nothing else of them is changed."""

from typing import Any, NamedTuple

from remediator.kube.api import seconds

# 5 minutes of a policy are 2 seconds of the demo; how often something is tried, and windows over days, stay.
FASTER = 150.0
MOST_OF_A_UNIT = 1_000_000  # a number of a duration has at most six digits
# What only escalates waits until detectors have run on every node: here they run every 5 seconds, not every minute.
ESCALATION_FASTER = 12.0
# The time limit of verifying, on a machine that simulates a whole fleet: 20 minutes are 30 seconds.
LIMIT_FASTER = 40.0
# The jobs of the demo do not end: a day of waiting for them is 4 seconds.
IDLE_FASTER = 21600.0


class Scale(NamedTuple):
    """How many times faster the waits of a policy pass; `escalation`: the tolerance of one that only escalates."""

    tolerance: float = FASTER
    escalation: float = ESCALATION_FASTER
    verify: float = FASTER
    timeout: float = LIMIT_FASTER
    cooldown: float = FASTER
    idle: float = IDLE_FASTER


DEMO = Scale()


def policy(document: dict[str, Any], scale: Scale = DEMO) -> dict[str, Any]:
    """A shipped policy in mode Enforce with short times; any other object as it is."""
    if document["kind"] != "RemediationPolicy":
        return document
    spec = document["spec"]
    tolerance = scale.escalation if only_escalates(document) else scale.tolerance
    changed: dict[str, Any] = {
        "mode": "Enforce",
        "when": [{**entry, "for": shorten(entry.get("for", "2m"), tolerance)} for entry in spec["when"]],
        "cooldown": shorten(spec.get("cooldown", "30m"), scale.cooldown),
    }
    if "verify" in spec:
        changed["verify"] = {
            "settle": shorten(spec["verify"]["settle"], scale.verify),
            "fresh": shorten(spec["verify"]["fresh"], scale.verify),
            "timeout": shorten(spec["verify"]["timeout"], scale.timeout),
        }
    urgency = spec.get("urgency", {})
    if "deadline" in urgency:
        changed["urgency"] = {**urgency, "deadline": shorten(urgency["deadline"], scale.idle)}
    return {**document, "spec": {**spec, **changed}}


def only_escalates(document: dict[str, Any]) -> bool:
    """Whether a policy starts no operation."""
    return bool(document["spec"].get("urgency", {}).get("mode") == "Never")


def shorten(duration: str, times: float = FASTER) -> str:
    """A duration so many times shorter.

    >>> shorten("5m")
    '2000ms'
    >>> shorten("12h", 40)
    '1080s'
    """
    shorter = round(seconds(duration) * 1000 / times)
    return f"{shorter}ms" if shorter < MOST_OF_A_UNIT else f"{round(shorter / 1000)}s"
