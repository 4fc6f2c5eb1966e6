"""What comes next for the Pods of one DaemonSet on one node. Pure.

A taint that the DaemonSet does not tolerate keeps its new Pod off the node: that is thought of before anything is
deleted. What a case puts on its node, a cordon and a taint PreferNoSchedule, keeps none off.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from nodelib.contract.operation import Refused
from nodelib.k8s.taints import Taint

Object = dict[str, Any]


class Delete(NamedTuple):
    """This Pod is older than the attempt and must go."""

    pod: Object


class Wait(NamedTuple):
    """Nothing to do now; why it is not over. `made`: the new Pod is there."""

    why: str
    made: bool = False


class Done(NamedTuple):
    """A Ready Pod is there that is younger than the attempt."""

    pod: Object


def key(item: Object) -> str:
    """namespace/name, as kubectl shows it."""
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def owner(pod: Object) -> str:
    """The uid of the DaemonSet that a Pod belongs to; "" for a Pod of nobody or of something else."""
    controllers = [owner for owner in pod["metadata"].get("ownerReferences") or [] if owner.get("controller")]
    return next((owner["uid"] for owner in controllers if owner.get("kind") == "DaemonSet"), "")


def is_ending(pod: Object) -> bool:
    """Tell whether somebody has deleted this Pod already."""
    return pod["metadata"].get("deletionTimestamp") is not None


def is_ready(pod: Object) -> bool:
    """Tell whether its kubelet says that the Pod is Ready."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)


def trouble(pod: Object) -> str:
    """Say in words why a Pod is not Ready, as far as its containers tell."""
    status = pod.get("status") or {}
    containers = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    waiting = [(container["name"], (container.get("state") or {}).get("waiting") or {}) for container in containers]
    reasons = [f"{name} {state['reason']}" for name, state in waiting if state.get("reason")]
    return ", ".join(reasons) or status.get("phase") or "nothing is said of it"


def move(pods: Sequence[Object], since: str, deleted: Collection[str]) -> Delete | Wait | Done:
    """Say what comes next for the Pods of one DaemonSet on one node.

    `since` is when the attempt was made, to the second: a Pod of that very second is young, or a quick restart would be
    done twice. `deleted` has the uids that this start has deleted: any other came after.
    """
    live = [pod for pod in pods if not is_ending(pod)]
    old = [pod for pod in live if not deleted and pod["metadata"]["creationTimestamp"] < since]
    if old:
        return Delete(min(old, key=lambda pod: str(pod["metadata"]["creationTimestamp"])))
    young = [pod for pod in live if pod["metadata"]["uid"] not in deleted]
    if any(is_ready(pod) for pod in young):
        return Done(next(pod for pod in young if is_ready(pod)))
    if young:
        return Wait(f"the new Pod {key(young[0])} is not Ready: {trouble(young[0])}", made=True)
    if pods:
        return Wait(f"Pod {key(pods[0])} is still ending")
    return Wait("there is no new Pod")


def foresee(step: Delete | Wait, off: Sequence[Taint], begun: bool) -> Delete | Wait:
    """Heed the taints `off` that keep a new Pod off the node. Raises Refused.

    `begun`: the old one was deleted already.
    """
    if begun or not off or (isinstance(step, Wait) and step.made):
        return step
    taints = " and ".join(f"{taint.key}:{taint.effect}" for taint in off)
    raise Refused(
        f"the DaemonSet does not tolerate {taints}, so no new Pod would come: "
        "add that toleration to it (operator: Exists), or take the taint away if it is yours"
    )
