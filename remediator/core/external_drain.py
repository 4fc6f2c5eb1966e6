"""A drain that another system does: what it is asked by, and whether it has answered. Pure."""

from datetime import datetime

from remediator.core.clocks import AHEAD
from remediator.core.node import Node, Status
from remediator.core.operation import Operation
from remediator.core.operation_table import DrainState
from remediator.core.template import Template


def state(operation: Operation, template: Template, node: Node | None, now: datetime) -> DrainState:
    """How it stands: ABSENT until the node shows this request, SUCCEEDED once the condition answers it."""
    asked = operation.drain_started
    if node is None or asked is None or node.drain_requested != asked.replace(microsecond=0):
        return DrainState.ABSENT
    return DrainState.SUCCEEDED if answered(operation, template, node, now) else DrainState.RUNNING


def answered(operation: Operation, template: Template, node: Node | None, now: datetime) -> bool:
    """Whether the condition is True, and was found so since the request; what was True before is no answer to it.

    A time that lies further ahead than clocks may differ proves nothing.
    """
    condition = node.conditions.get(template.drain_condition) if node else None
    if condition is None or condition.status is not Status.TRUE or operation.drain_started is None:
        return False
    asked, seen = operation.drain_started.replace(microsecond=0), max(condition.since, condition.heartbeat)
    return asked <= seen <= now + AHEAD


def standing(template: Template, node: Node | None) -> str:
    """What the condition says now, in words."""
    condition = node.conditions.get(template.drain_condition) if node else None
    if condition is None:
        return f"no system has set the condition {template.drain_condition}"
    return f"the condition {condition.type} is {condition.status}{f', {condition.reason}' if condition.reason else ''}"
