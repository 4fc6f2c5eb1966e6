"""What steps wait for, as the objects of a kind say it: read anew only once one of them has changed."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from remediator_sim.apiserver.status import Obj
from remediator_sim.apiserver.store import Collection, Store
from remediator_sim.invariants.contract import (
    DRAINS,
    OURS,
    ended,
    finished,
    part,
    phase,
)
from remediator_sim.invariants.pod_words import environment, template, tested, tests_for

T = TypeVar("T")


class Looks:
    """Remembers of one store what was read of a kind, for as long as that stands."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[tuple[str, Callable[..., Any]], tuple[Collection, int, Any]] = {}

    def of(self, storage: str, read: Callable[[Iterator[Obj]], T]) -> T:
        """What `read` makes of all objects of a kind. Nobody may change it."""
        collection, key = self._store.collection(storage), (storage, read)
        known = self._known.get(key)
        if known is None or known[0] is not collection or known[1] != collection.states:
            made = read(entry.obj for entry in collection.entries.values())
            known = self._known[key] = (collection, collection.states, made)
        value: T = known[2]
        return value


def open_cases(cases: Iterator[Obj]) -> dict[str, list[str]]:
    """The names of the open cases, by node."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    for case in cases:
        if not ended(case):
            names[case["spec"]["nodeName"]].append(case["metadata"]["name"])
    return names


def case_phases(cases: Iterator[Obj]) -> list[tuple[str, str]]:
    """The node and the phase of every case."""
    return [(case["spec"]["nodeName"], phase(case)) for case in cases]


def open_operations(operations: Iterator[Obj]) -> dict[str, list[str]]:
    """The names of the operations that have not ended, by node."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    for operation in operations:
        if not finished(operation):
            names[operation["spec"]["nodeName"]].append(operation["metadata"]["name"])
    return names


def blocked_drains(operations: Iterator[Obj]) -> dict[str, list[Obj]]:
    """The Pods that are in the way of a drain, by the name of its operation."""
    drains = {operation["metadata"]["name"]: part(operation, "status", "drain") for operation in operations}
    return {name: drain["blocked"] for name, drain in drains.items() if drain.get("blocked")}


def running_pods(pods: Iterator[Obj]) -> list[tuple[str, str, str]]:
    """Our Pods that run: the node that each works for, its template and its name."""
    ours = (pod for pod in pods if pod["metadata"].get("namespace") == OURS and template(pod))
    running = (pod for pod in ours if pod["status"].get("phase") == "Running")
    return [(environment(pod).get("NODE_NAME", ""), template(pod), pod["metadata"]["name"]) for pod in running]


def running_tests(pods: Iterator[Obj]) -> list[tuple[str, str]]:
    """The tests of idle nodes that run: the node of each, and its name."""
    running = (pod for pod in pods if pod["status"].get("phase") == "Running" and tests_for(pod))
    return [(tested(pod)[1], pod["metadata"]["name"]) for pod in running]


def running_drains(pods: Iterator[Obj]) -> list[str]:
    """The names of the drain Pods that run."""
    drains = (pod for pod in pods if template(pod) == DRAINS)
    return [pod["metadata"]["name"] for pod in drains if pod["status"].get("phase") == "Running"]
