"""The kinds that a kubelet and a scheduler read and write, as plain JSON objects, and how they bear refusals."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from remediator.kube.wire import errors
from remediator.kube.wire.client import Kind

Object = dict[str, Any]
NODES = Kind("", "v1", "nodes", "Node", Object)
PODS = Kind("", "v1", "pods", "Pod", Object, namespaced=True)
ACCOUNTS = Kind("", "v1", "serviceaccounts", "ServiceAccount", Object, namespaced=True)
LEASES = Kind("coordination.k8s.io", "v1", "leases", "Lease", Object, namespaced=True)
SPACES = Kind("", "v1", "namespaces", "Namespace", Object)
PDBS = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", Object, namespaced=True)

PAUSE = 0.3  # seconds between two attempts
T = TypeVar("T")
log = logging.getLogger(__name__)


def plain(kind: Kind[Any]) -> Kind[Object]:
    """The same kind, its objects as the JSON that the server sends."""
    return Kind(kind.group, kind.version, kind.plural, kind.name, Object, kind.namespaced)


def whole(item: Object) -> Object:
    """The projection of a reflector that keeps objects as they are."""
    return item


def condition(obj: Object, kind: str) -> Object | None:
    """One Condition of a node, Pod or other object that was read; None where it has none of this type."""
    conditions = obj.get("status", {}).get("conditions", ())
    return next((condition for condition in conditions if condition["type"] == kind), None)


def condition_status(obj: Object, kind: str) -> str:
    """The status of one Condition, "" where there is none."""
    return str((condition(obj, kind) or {}).get("status", ""))


def of_node(objects: Iterable[Object], node: str) -> list[Object]:
    """The cases, operations or Pods of one node."""
    return [obj for obj in objects if obj["spec"].get("nodeName") == node]


async def patiently(call: Callable[[], Awaitable[T]]) -> T:
    """The answer of `call()`, asked again for as long as the server is away, sheds load or saw a conflict."""
    while True:
        try:
            return await call()
        except (errors.Unavailable, errors.TooManyRequests, errors.Conflict) as error:
            log.info("again in %s s: %s", PAUSE, error)
        await asyncio.sleep(PAUSE)
