"""The keys of the leader's work queue: what a pass is over, which passes there are, and which give way to claims."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from remediator.controller.cache import ClusterCache
from remediator.controller.marks import marked
from remediator.core.case import Case, Phase
from remediator.core.operation import Operation, OperationPhase


class Key(NamedTuple):
    """What a pass is over."""

    kind: str
    name: str = ""


ADMISSION, EXPIRED, ORPHANS = Key("admission"), Key("retention"), Key("orphans")


def _never(cache: ClusterCache, name: str) -> bool:
    return False


def _case_begins(cache: ClusterCache, name: str) -> bool:
    case = cache.cases.get(name)
    return case is not None and case.phase in BEGINNING and not (case.release or case.deleting)


def _operation_begins(cache: ClusterCache, name: str) -> bool:
    operation = cache.operations.get(name)
    return operation is not None and operation.phase in BEGINNING and not operation.deleting


# Records, diagnosis and drains of new cases give way, and Events of records to all of these; no release, time-out or
# end of what goes on, and no stop of it.
BEGINNING = (Phase.NEW, Phase.HELD, Phase.DRAINING, OperationPhase.PENDING, OperationPhase.DRAINING)
GIVES_WAY: Mapping[str, Callable[[ClusterCache, str], bool]] = {
    ADMISSION.kind: _never,  # it claims
    "node": ClusterCache.has_open_case,  # another may want one
    "case": _case_begins,
    "operation": _operation_begins,
}


def gives_way(cache: ClusterCache, key: Key) -> bool:
    """Whether a pass may wait for claims, and for what stops or ends something."""
    asks = GIVES_WAY.get(key.kind)
    return asks is None or asks(cache, key.name)


def everything(cache: ClusterCache) -> Iterator[Key | None]:
    """All that a pass may do something about; of what has ended, only what still holds something."""
    yield ADMISSION
    yield ORPHANS
    yield from (Key("policy", policy.name) for policy in cache.policies)
    yield from (Key("node", node.name) for node in cache.nodes)
    yield from (Key("case", case.name) for case in cache.unfinished)
    yield from (Key("case", case.name) for case in _on_their_nodes(cache))
    yield from (Key("operation", operation.name) for operation in cache.unfinished_operations)
    uids = {pod.case_uid: None for pod in cache.pods}
    yield from (Key("operation", operation.name) for uid in uids for operation in _with_pods(cache, uid))


def _on_their_nodes(cache: ClusterCache) -> Iterator[Case]:
    """Cases that are over, and whose marks a node still has."""
    for node in cache.marked:
        for case in (cache.case(uid) for uid in node.marks):
            over = case is not None and not (case.open or case.finalizer)
            if case is not None and over and case.node == node.name and marked(node, case):
                yield case


def _with_pods(cache: ClusterCache, case_uid: str) -> Iterator[Operation]:
    """Operations of a case that are over, and whose Pods are not."""
    with_pods = {pod.operation_uid for pod in cache.pods.by("case_uid", case_uid)}
    return (each for each in cache.operations.by("case_uid", case_uid) if each.uid in with_pods)
