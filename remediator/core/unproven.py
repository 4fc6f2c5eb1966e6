"""What a node that has not proven its health lacks, as the person reads it who is called because of that."""

from datetime import datetime

from remediator.core.case import Case
from remediator.core.health import Health
from remediator.core.node import Node, Status
from remediator.core.policy import Clause, Policy
from remediator.core.proof import looks_well, watched
from remediator.core.trust import mistrust


def lacking(case: Case, node: Node, policy: Policy, health: Health, now: datetime) -> str:
    """Which Conditions keep the node from proving its health; "" where all say that it is well."""
    groups = [group for group in watched(node, policy) if not any(looks_well(node, wanted, now) for wanted in group)]
    missing = {wanted.condition: wanted for group in groups for wanted in group}
    if not missing:
        return ""
    opened = case.trigger.condition if case.trigger else ""
    gone = f"{_status(node, opened)}, but " if opened in node.conditions and opened not in missing else ""
    unknown = ", so nobody can tell" if health is Health.UNKNOWN else ""
    return f"{gone}{' and '.join(_says(node, wanted, now) for wanted in missing.values())}{unknown}"


def _says(node: Node, wanted: Clause, now: datetime) -> str:
    name = wanted.condition
    condition = node.conditions.get(name)
    if condition is None:
        return f"{name} is absent"
    if name == "Ready" and condition.status is Status.UNKNOWN:
        return f"{_status(node, name)} (its kubelet does not report)"
    return f"{name} {mistrust(node, wanted, now)}" if condition.status is wanted.status else _status(node, name)


def _status(node: Node, name: str) -> str:
    return f"{name} is {node.conditions[name].status.value}"
