"""What a program that works through the API may rely on: its operation goes on, its node is the one that was meant.

Looked up before every disruption, never assumed.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from nodelib.contract.operation import Environment, Failed, Refused
from nodelib.k8s.api import Api, Unreachable
from nodelib.k8s.claims import ENDED, OURS, require_claim

PAUSE_FIRST, PAUSE_MOST = 0.2, 5.0  # seconds between two questions

T = TypeVar("T")


class OperationAndNode(NamedTuple):
    """The NodeOperation that this program was started for, and its node, as the API server has them."""

    operation: dict[str, Any]
    node: dict[str, Any]

    @property
    def ready(self) -> str:
        """What the node's Ready says: True, False or Unknown; "" when it says nothing."""
        conditions = (self.node.get("status") or {}).get("conditions") or []
        return next((condition["status"] for condition in conditions if condition.get("type") == "Ready"), "")

    @property
    def info(self) -> dict[str, Any]:
        """The node's own facts: bootID, systemUUID."""
        return (self.node.get("status") or {}).get("nodeInfo") or {}


def look(api: Api, environment: Environment) -> OperationAndNode:
    """Return operation and node. Raises Refused when either is not what this attempt was for, Unreachable."""
    case_uid = environment.parameters.get("caseUID", "")
    if not environment.attempt:
        raise Refused("ATTEMPT_ID is empty; it must name the NodeOperation")
    operation = api.get_object(f"{OURS}/nodeoperations/{environment.attempt}")
    spec, phase = operation.get("spec") or {}, (operation.get("status") or {}).get("phase")
    if operation["metadata"].get("deletionTimestamp"):
        raise Refused(f"operation {environment.attempt} is being deleted")
    if phase in ENDED:
        raise Refused(f"operation {environment.attempt} has ended: {phase}")
    if (spec.get("nodeName"), spec.get("caseUID")) != (environment.node, case_uid):
        raise Refused(f"operation {environment.attempt} is not for node {environment.node} and case {case_uid}")
    node = api.get_object(f"/api/v1/nodes/{environment.node}")
    if node["metadata"].get("uid") != spec.get("nodeUID"):
        raise Refused(f"node {environment.node} is another one than was meant: its uid has changed")
    require_claim(node, case_uid)
    return OperationAndNode(operation, node)


def patiently(ask: Callable[[], T], seconds: float) -> T:
    """Return what `ask` returns, asking again while the API server does not answer. Raises Failed after `seconds`."""
    until, pause = time.monotonic() + seconds, PAUSE_FIRST
    while True:
        try:
            return ask()
        except Unreachable as error:
            if time.monotonic() >= until:
                raise Failed(f"the API server does not answer: {error}") from error
        time.sleep(pause)
        pause = min(pause * 2, PAUSE_MOST)
