"""The objects of our kinds among documents, as the controller reads them; what cannot be read is passed over."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from remediator.core.budget import Budget
from remediator.core.node_inventory import Inventory
from remediator.core.policy import Policy, Urgency
from remediator.core.template import Template
from remediator.kube import api
from remediator.kube.api import decode

Object = dict[str, Any]
Documents = Iterable[tuple[str, Object]]  # where each stands, and what it says
Wire = TypeVar("Wire")
Noun = TypeVar("Noun")


def policies(documents: Documents) -> list[Policy]:
    """The policies, in their order."""
    return list(_each(documents, api.RemediationPolicy, decode.remediation_policy))


def disturbing(documents: Documents) -> list[Policy]:
    """The policies that may disturb a node."""
    return [policy for policy in policies(documents) if policy.urgency is not Urgency.NEVER]


def templates(documents: Documents) -> dict[str, Template]:
    """The templates, by name."""
    return {template.name: template for template in _each(documents, api.NodeOperationTemplate, decode.template)}


def budgets(documents: Documents) -> dict[str, Budget]:
    """The budgets, by name."""
    return {budget.name: budget for budget in _each(documents, api.NodeDisruptionBudget, decode.disruption_budget)}


def inventories(documents: Documents) -> list[Inventory]:
    """The inventories, in their order."""
    return list(_each(documents, api.NodeInventory, decode.node_inventory))


def _each(documents: Documents, wire: type[Wire], decoded: Callable[[Wire], Noun]) -> Iterator[Noun]:
    for _, document in documents:
        if document.get("kind") == wire.__name__:
            with suppress(msgspec.ValidationError, ValueError):
                yield decoded(msgspec.convert(document, wire))
