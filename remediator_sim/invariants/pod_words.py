"""Which Pod does what for whom, and how it ended: read from plain JSON objects, as in contract.py."""

from remediator_sim.invariants.contract import (
    COMPONENTS,
    IDLE_TEST,
    MIRROR,
    NEIGHBOUR_OF,
    OURS,
    TEMPLATE,
    Obj,
    part,
    phase,
)


def never_started(pod: Obj) -> bool:
    """Whether none of its containers has begun, though its kubelet may have ended it when its time was over."""
    return phase(pod) == "Pending" or (_expired(pod) and not _terminated(pod))


def ran_too_long(pod: Obj) -> bool:
    """Whether its kubelet has ended it when its time was over, and it had begun."""
    return _expired(pod) and _terminated(pod)


def _expired(pod: Obj) -> bool:
    return bool(part(pod, "status").get("reason") == "DeadlineExceeded")


def _terminated(pod: Obj) -> bool:
    return any(map(_ran, part(pod, "status").get("containerStatuses") or ()))


def _ran(container: Obj) -> bool:
    """Whether it has ended after it had begun: a kubelet forgets what it has lost, but for lastState."""
    end = part(container, "state", "terminated")
    forgotten = end.get("reason") in ("ContainerStatusUnknown", "Unknown") and not end.get("startedAt")
    return bool(end) and (not forgotten or bool(part(container, "lastState", "terminated")))


def static(pod: Obj | None) -> bool:
    """Whether a Pod is a static one of the control plane. kube-proxy, of the same tier, is none."""
    labels = part(pod, "metadata", "labels")
    ours = part(pod, "metadata").get("namespace") == "kube-system" and MIRROR in part(pod, "metadata", "annotations")
    return ours and labels.get("tier") == "control-plane" and labels.get("component") in COMPONENTS


def tests_for(pod: Obj | None) -> str:
    """The policy for which a Pod of ours tests an idle node, "" for any other Pod: it is of no case."""
    return tested(pod)[0]


def tested(pod: Obj | None) -> tuple[str, str, str]:
    """For which policy a Pod of ours tests which idle node in which boot, empty words for any other Pod."""
    meta = part(pod, "metadata")
    tests = meta.get("namespace") == OURS and (meta.get("labels") or {}).get(IDLE_TEST) == "true"
    words = str((meta.get("annotations") or {}).get(IDLE_TEST, "")).split("/") if tests else []
    policy, node, boot = (*words, "", "", "")[:3]
    return policy, node, boot


def neighbour_of(pod: Obj | None) -> str:
    """The uid of the operation that measures to its node, of a Pod that is only the other end; "" for any other Pod."""
    return str(part(pod, "metadata", "labels").get(NEIGHBOUR_OF, "")) if tests_for(pod) else ""


def template(pod: Obj) -> str:
    """The template that a Pod of ours was made from, "" for any other Pod."""
    mine = pod["metadata"].get("namespace") == OURS and not tests_for(pod)
    return str(part(pod, "metadata", "labels").get(TEMPLATE, "")) if mine else ""


def environment(pod: Obj) -> dict[str, str]:
    """What the program in a Pod is told."""
    container = (part(pod, "spec", "containers") or [{}])[0]
    return {entry["name"]: entry.get("value", "") for entry in container.get("env") or ()}
