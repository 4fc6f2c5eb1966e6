"""Whether Pods still work on a node, and for how long a case waits for them to end by themselves."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from remediator.core.absence import NEVER_AWAY, Absences
from remediator.core.case import Case
from remediator.core.history import pauses
from remediator.core.policy import Policy, Urgency
from remediator.core.user_pod import UserPod, at_work


@dataclass(frozen=True, slots=True)
class Work:
    """The Pods (namespace/name, sorted) that worked on the node of a case when it was looked at."""

    pods: tuple[str, ...]
    at: datetime


def working(pods: Iterable[UserPod], operations_namespace: str, now: datetime) -> tuple[str, ...]:
    """The Pods of a node that work, whatever a drain would do to them. One that is ending works until its time is over.

    DaemonSet, mirror and finished Pods, those of kube-system and those of operations do not count.
    """
    return tuple(sorted(f"{pod.namespace}/{pod.name}" for pod in pods if at_work(pod, operations_namespace, now)))


def deadline(case: Case, policy: Policy, now: datetime, absences: Absences = NEVER_AWAY) -> datetime | None:
    """Until when a case that has claimed its node waits for it to be idle; None where it waits for ever.

    Time in which nobody could act, or a user had stopped the case, does not count.
    """
    if policy.idle_deadline is None or case.started is None:
        return None
    for gap in pauses(case, now):
        absences = absences.including(gap.begin, gap.end)
    return absences.deadline(case.started, policy.idle_deadline)


def waits(case: Case, policy: Policy, now: datetime, absences: Absences = NEVER_AWAY) -> bool:
    """Whether the first try of a case may have to wait for Pods that work: once it has begun, nothing waits again."""
    if policy.urgency is not Urgency.WHEN_IDLE or not case.claimed or case.tries:
        return False
    end = deadline(case, policy, now, absences)
    return end is None or now < end
