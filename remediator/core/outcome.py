"""How an operation ends whose program gave no result, or did not succeed: one table, with the reason of every row."""

from dataclasses import dataclass
from enum import Enum, auto

from remediator.core.operation import OperationPhase
from remediator.core.pod import ContainerEnd, Pod
from remediator.core.reasons import Reason
from remediator.core.table import Row, Table


class PodEnd(Enum):
    """How far the Pod of an operation has come when the operation ends."""

    ABSENT = auto()
    UNPLACED = auto()  # the scheduler has found no node for it
    IMAGE = auto()  # its image could not be pulled
    CONFIG = auto()  # what its container reads, a Secret for example, is not there
    PENDING = auto()  # it has a node, and never started there
    FORGOTTEN = auto()  # its kubelet has ended it before it started, and says no more what it has waited for
    UNTAKEN = auto()  # the watchdog of the node has not taken it
    RUNNING = auto()
    EVICTED = auto()  # by a kubelet, the scheduler, the Eviction API
    DELETED = auto()  # by somebody
    TOO_LONG = auto()  # its kubelet has ended it: it ran for longer than its template allows
    LOST = auto()  # it ended without an exit code of the contract
    SAID = auto()  # with one


# What a kubelet says of a container that waits, and what that means.
_IMAGE = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
_CONFIG = frozenset({"CreateContainerConfigError"})
_EVICTED = frozenset({"Evicted", "Preempting"})  # reasons of a Pod that its kubelet has ended


def pod_end(pod: Pod | None, watchdog: bool = False) -> PodEnd:
    """How far it has come; `watchdog`: it is the order of one, which nobody places."""
    if pod is None:
        return PodEnd.ABSENT
    if pod.ended:
        return _ended(pod)
    if pod.pending and pod.waiting in _IMAGE | _CONFIG:
        return _unstarted(pod)
    if pod.deleting:
        return PodEnd.EVICTED if pod.disrupted else PodEnd.DELETED
    if pod.unplaced:
        return PodEnd.UNTAKEN if watchdog else PodEnd.UNPLACED
    return PodEnd.PENDING if pod.pending else PodEnd.RUNNING


def _unstarted(pod: Pod) -> PodEnd:
    """Of one of which no container has started."""
    if pod.waiting in _IMAGE:
        return PodEnd.IMAGE
    return PodEnd.CONFIG if pod.waiting in _CONFIG else PodEnd.PENDING


def _ended(pod: Pod) -> PodEnd:
    """Of one that has ended. A kubelet counts the time of a Pod from when it took it: also of one that never starts."""
    if pod.exit_code in (0, 1, 2):
        return PodEnd.SAID
    if pod.ran_too_long:
        return PodEnd.TOO_LONG
    if pod.expired:
        return PodEnd.FORGOTTEN if pod.container_end is ContainerEnd.FORGOTTEN else _unstarted(pod)
    if pod.disrupted or pod.reason in _EVICTED:
        return PodEnd.EVICTED
    return PodEnd.DELETED if pod.deleting else PodEnd.LOST


@dataclass(frozen=True, slots=True)
class EndObservation:
    """What is observed of an operation that ends in vain."""

    gone: bool  # its node was deleted, or is another one by now
    late: bool  # its time is over
    pod: PodEnd
    silent: bool  # the kubelet of the node that runs the Pod does not report
    criteria: bool  # its success would have to show on the node


@dataclass(frozen=True, slots=True)
class OperationOutcome:
    """The end of an operation. `then` says what becomes of the case, for the page that lists all of these."""

    phase: OperationPhase
    reason: Reason
    then: str


_COUNTS = "counts as an attempt: the rung is tried again, or the next one"
_WAITS = "counts as no attempt: the case is held with this reason, you are told, and it tries again after 10 min to 1 h"

OUTCOME_TABLE: Table[OperationOutcome] = Table(
    (
        Row(
            {"gone": True},
            OperationOutcome(OperationPhase.CANCELLED, Reason.NODE_GONE, "the case ends as Cancelled"),
            "Nothing can be said of a node that is not there, whatever became of its Pods: they went with it.",
        ),
        Row(
            {"late": False, "pod": PodEnd.SAID},
            OperationOutcome(OperationPhase.FAILED, Reason.PROGRAM_FAILED, _COUNTS),
            "The program itself says that it failed.",
        ),
        Row(
            {"pod": PodEnd.IMAGE},
            OperationOutcome(OperationPhase.CANCELLED, Reason.IMAGE_NOT_PULLED, _WAITS),
            "Nothing ran, and the registry or the template is to blame: a reboot would not help, and no node must be "
            "handed to a person for it. It stands above the row of a silent kubelet, since this one has spoken.",
        ),
        Row(
            {"pod": PodEnd.CONFIG},
            OperationOutcome(OperationPhase.CANCELLED, Reason.CONTAINER_NOT_CREATED, _WAITS),
            "The same where the kubelet misses a Secret or a ConfigMap that the template names.",
        ),
        Row(
            {"pod": PodEnd.FORGOTTEN},
            OperationOutcome(OperationPhase.CANCELLED, Reason.POD_START_UNKNOWN, _WAITS),
            "Nothing ran, and nobody knows any more whether the node or the registry is to blame: a kubelet forgets "
            "what a Pod has waited for a moment after it has ended it. Whoever looks in time sees the reason in a row "
            "above, or ends the operation in one below.",
        ),
        Row(
            {"pod": PodEnd.UNPLACED},
            OperationOutcome(OperationPhase.CANCELLED, Reason.POD_NOT_PLACED, _WAITS),
            "Nothing ran, since kube-scheduler has placed the Pod nowhere.",
        ),
        Row(
            {"pod": PodEnd.EVICTED},
            OperationOutcome(OperationPhase.FAILED, Reason.POD_EVICTED, _COUNTS),
            "It may have acted before it was ended, so it counts, or an attempt could be repeated without end.",
        ),
        Row(
            {"pod": PodEnd.DELETED},
            OperationOutcome(OperationPhase.FAILED, Reason.POD_DELETED, _COUNTS),
            "The same where somebody has deleted it. To stop a case, hold it.",
        ),
        Row(
            {"pod": PodEnd.TOO_LONG, "criteria": False},
            OperationOutcome(OperationPhase.FAILED, Reason.TIMED_OUT, _COUNTS),
            "Its kubelet was faster than the controller, which was away or slow: the same end as in the last row.",
        ),
        Row(
            {"pod": PodEnd.LOST, "criteria": False},
            OperationOutcome(OperationPhase.FAILED, Reason.POD_LOST, _COUNTS),
            "It ended without a result: killed, out of memory, its image has no such program. Where success shows on "
            "the node, the reboot that it asked for may have killed it: then the rows below say what was waited for.",
        ),
        Row(
            {"silent": True},
            OperationOutcome(OperationPhase.FAILED, Reason.KUBELET_SILENT, _COUNTS),
            "Nobody knows whether it runs. It stands above the row of a Pod that has not started, for that is only the "
            "last that was heard of it.",
        ),
        Row(
            {"pod": PodEnd.PENDING},
            OperationOutcome(OperationPhase.FAILED, Reason.POD_NOT_STARTED, _COUNTS),
            "The kubelet reports, and starts no Pod: that is a fault of the node, which a milder rung has not cured.",
        ),
        Row(
            {"pod": PodEnd.UNTAKEN},
            OperationOutcome(OperationPhase.FAILED, Reason.WATCHDOG_SILENT, _COUNTS),
            "No watchdog has taken the order: none runs there, its token has expired, or it does not reach the API "
            "server. It counts, since waiting would change nothing, and the next rung may need no watchdog.",
        ),
        Row(
            {},
            OperationOutcome(OperationPhase.FAILED, Reason.TIMED_OUT, _COUNTS),
            "It ran longer than the template allows, or the node did not show success in time.",
        ),
    )
)


def outcome(observation: EndObservation) -> OperationOutcome:
    """How the operation ends."""
    return OUTCOME_TABLE.result(observation)
