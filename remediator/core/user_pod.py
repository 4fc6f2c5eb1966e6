"""The Pods on a node as they matter to a drain of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from remediator.core import names
from remediator.core.template import Strategy, Template


@dataclass(frozen=True, slots=True)
class UserPod:
    """One Pod. `owner`: the kind of its controller, "" for a bare one."""

    name: str
    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)
    owner: str = ""
    mirror: bool = False
    ended: bool = False
    deletion: datetime | None = None  # when it should have ended, its grace included; None: nobody deleted it


def works(pod: UserPod, operations_namespace: str) -> bool:
    """Whether a Pod of a user goes on by itself: no mirror, DaemonSet or finished one, none of the cluster."""
    goes_on = not (pod.mirror or pod.ended or pod.owner == "DaemonSet")
    return goes_on and pod.namespace not in (names.CONTROL_PLANE_NAMESPACE, operations_namespace)


def at_work(pod: UserPod, operations_namespace: str, now: datetime) -> bool:
    """Whether a Pod still has work to lose: one that should be gone by now, its grace included, has none.

    Such a Pod stays in the API where its kubelet does not report, or a finalizer holds it.
    """
    return works(pod, operations_namespace) and not (pod.deletion is not None and pod.deletion < now)


def pods_to_drain(
    pods: Iterable[UserPod], operations_namespace: str, template: Template, now: datetime
) -> list[UserPod]:
    """The pods of a node that a drain by this template must see gone: those of users that go on by themselves.

    All but mirror, DaemonSet and finished ones, those of kube-system, those of operations, those whose strategy is
    None, and those that the template does not wait for since their end is overdue.
    """
    skip = template.skip_wait_for_delete
    return [
        pod
        for pod in pods
        if works(pod, operations_namespace)
        and template.strategy_of(pod.namespace, pod.labels, pod.owner) is not Strategy.NONE
        and not (skip is not None and pod.deletion is not None and now - pod.deletion > skip)
    ]
