"""Whether a node rejects the Pods that are placed on it although it says that it is ready. Pure.

A kubelet that cannot give a device away rejects each Pod, the scheduler sees free GPUs, and the next Pod goes there.
Pods that a node has rejected are kept as Failed; they are all that the count rests on.

* Few owners prove little: one bad Pod template is rejected wherever it goes. So OWNERS distinct owners must have been
  rejected, or PODS Pods of fewer. An owner whose Pods MANY_NODES nodes have rejected within a day counts for none of
  them: Pods that have failed are kept for months, and an owner that lives as long must not be deaf for ever.
* Whoever may make Pods can have any node reject some: by `spec.nodeName`, or with a command that does not exist. So
  what the Pods of one namespace alone show ends no work of another: while Pods of others work there, none counts.
* What has lasted is not forgotten at once: a node that gets no work rejects none. So it counts as rejecting for STAYS.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from remediator.core.node import NodeCondition, Status
from remediator.core.own_condition import OwnCondition, due

PODS_REJECTED = "PodsRejected"  # the Condition
WINDOW = timedelta(minutes=10)  # Pods that were rejected longer ago do not count
OWNERS, PODS, MANY_NODES = 3, 10, 3
BLAMED = timedelta(days=1)  # how long a rejection by another node speaks against the Pod
STAYS = timedelta(minutes=30)  # that the Condition is True, at least
BEATS = timedelta(minutes=2)  # between two heartbeats of a Condition that somebody waits for
NEVER = timedelta.max
OUT_OF_RESOURCES, NONE = "OutOfResources", "NoPodsRejected"
ONE_NAMESPACE = "OnlyPodsOfOneNamespace"  # the reason of a Condition that is False
WORK_ON = "while Pods of others work here: look at their status, and drain the node yourself where it is at fault"
# What a kubelet says of a Pod that it does not take, and of a container that it cannot start.
ADMISSION = frozenset({"UnexpectedAdmissionError", "TopologyAffinityError"})
START = frozenset({"CreateContainerError", "RunContainerError"})


@dataclass(frozen=True, slots=True)
class Rejection:
    """One Pod that a node did not take, or could not start.

    `owner`: its namespace, and the uid of its controller, or its own. Nobody checks which uid a Pod calls that of its
    controller: without the namespace it could be that of another user.
    """

    node: str = ""
    owner: str = ""
    reason: str = ""
    at: datetime | None = None
    namespace: str = ""

    @property
    def version(self) -> str:
        """None: no write of ours is ever awaited."""
        return ""


NO_REJECTION = Rejection()  # of all other Pods


class JudgedRejections(NamedTuple):
    """What the Condition should say, and when that may change by itself."""

    status: Status
    reason: str
    message: str
    until: datetime | None = None


def rejection_reason(status_reason: str, waiting: Iterable[str]) -> str:
    """Why a node did not take a Pod, in one word; "" where it did, or where the Pod is at fault.

    >>> [rejection_reason(word, ()) for word in ("UnexpectedAdmissionError", "OutOfcpu", "Evicted")]
    ['UnexpectedAdmissionError', 'OutOfResources', '']
    """
    if status_reason in ADMISSION:
        return status_reason
    if status_reason.startswith("OutOf"):
        return OUT_OF_RESOURCES
    return next((word for word in waiting if word in START), "")


def judge(
    rejections: Iterable[Rejection],
    nodes_of: Callable[[str], int],
    before: NodeCondition | None,
    now: datetime,
    others_work: Callable[[str], bool] = lambda namespace: False,
) -> JudgedRejections:
    """What a node's Pods prove now. `nodes_of`: how many nodes lately rejected Pods of an owner. `before`: what stands.

    `others_work`: whether Pods of other namespaces than this one work on the node.
    A clock of a node that is ahead must not make a rejection count for ever: what lies ahead does not count.
    """
    lately = [each for each in rejections if each.at is not None and timedelta(0) <= now - each.at < WINDOW]
    counted = [each for each in lately if nodes_of(each.owner) < MANY_NODES]
    owners, namespaces = Counter(each.owner for each in counted), {each.namespace for each in counted}
    enough = len(owners) >= OWNERS or len(counted) >= PODS
    alone = next(iter(namespaces)) if len(namespaces) == 1 else ""
    if enough and not (alone and others_work(alone)):
        ((reason, _),) = Counter(sorted(each.reason for each in counted)).most_common(1)
        message = f"rejected {len(counted)} Pods of {len(owners)} owners within {WINDOW.total_seconds() / 60:g} minutes"
        return JudgedRejections(Status.TRUE, reason, f"{message}, most of them: {reason}", _next(counted))
    if before is not None and before.status is Status.TRUE and timedelta(0) <= now - before.since < STAYS:
        return JudgedRejections(Status.TRUE, before.reason, before.message, before.since + STAYS)
    if enough:
        return JudgedRejections(Status.FALSE, ONE_NAMESPACE, f"only Pods of namespace {alone} were rejected, {WORK_ON}")
    return JudgedRejections(Status.FALSE, NONE, "no more Pods were rejected lately than single Pods can cause")


def _next(counted: Iterable[Rejection]) -> datetime | None:
    """When the oldest does not count any more."""
    return min((each.at + WINDOW for each in counted if each.at is not None), default=None)


def to_write(
    judged: JudgedRejections, before: NodeCondition | None, awaited: bool, now: datetime
) -> NodeCondition | None:
    """The Condition to write; None where nothing is. `awaited`: a case of the node waits for what it says.

    While the status stays, so does all but the heartbeat: nobody wants a number that changes with each Pod. That one
    namespace's Pods are rejected is told once.
    """
    if before is None and judged.reason == NONE:
        return None
    known = before is not None and (before.reason == ONE_NAMESPACE or judged.reason != ONE_NAMESPACE)
    words = before if before is not None and before.status is judged.status and known else judged
    every = BEATS if judged.status is Status.TRUE or awaited else NEVER
    return due(before, OwnCondition(PODS_REJECTED, judged.status, words.reason, words.message), now, every)
