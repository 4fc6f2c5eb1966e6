"""ClusterCache → the inputs of the decision table of a user's operation. Pure: it only reads stores."""

from dataclasses import dataclass

from remediator.controller.cache import ClusterCache
from remediator.core import manual
from remediator.core.case import Case, Phase
from remediator.core.node import Node
from remediator.core.operation import Operation
from remediator.core.pod import Pod
from remediator.core.request_table import Carried, RequestObservation


@dataclass(frozen=True, slots=True)
class RequestView:
    """An operation that a user has made, with its case, what that case does now, its Pods and its node."""

    observation: RequestObservation
    operation: Operation
    case: Case | None
    current: Operation | None
    pods: tuple[Pod, ...] = ()
    node: Node | None = None


def request_view(cache: ClusterCache, operation: Operation) -> RequestView:
    """What is observed of a user's operation."""
    case = cache.cases.get(manual.case_name(operation))
    current = cache.operations.get(case.attempt.operation) if case and case.attempt else None
    node = cache.nodes.get(operation.node)
    observation = RequestObservation(
        ended=operation.finished is not None,
        case=carried(operation, case),
        deleting=operation.deleting,
        node=is_meant(operation, node),
    )
    pods = tuple(cache.pods.by("case_uid", case.uid)) if case else ()
    return RequestView(observation, operation, case, current, pods, node)


def carried(operation: Operation, case: Case | None) -> Carried:
    """How its case stands; one that cannot be read goes on."""
    if case is None:
        return Carried.GONE if operation.case_name else Carried.ABSENT
    return Carried.OVER if case.ended is not None or case.phase is Phase.ESCALATED else Carried.OPEN


def is_meant(operation: Operation, node: Node | None) -> bool:
    """Whether this is the node that the user has named."""
    return node is not None and node.uid == operation.node_uid
