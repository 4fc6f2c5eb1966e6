"""Compares the nodes for Pods with rights in the API, on which their tokens lie, with those that policies select."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from remediator.core.node import Node
from remediator.core.places import ApiNodes
from remediator.core.policy import Policy, Urgency
from remediator.core.selector import may_overlap
from remediator.kube import api
from remediator.kube.api import decode

REMEDY = (
    "give --api-pods-node-selector labels that only nodes without GPUs have, unless all nodes have GPUs and these are "
    "chosen for it"
)


def policies(documents: Iterable[tuple[str, dict[str, Any]]]) -> list[Policy]:
    """The policies among documents that may disturb a node, in their order; what cannot be read is passed over."""
    readable = []
    for _, document in documents:
        if document.get("kind") == api.POLICY.name:
            try:
                readable.append(decode.remediation_policy(msgspec.convert(document, api.RemediationPolicy)))
            except (msgspec.ValidationError, ValueError):
                continue
    return [policy for policy in readable if policy.urgency is not Urgency.NEVER]


def warnings(policies: Iterable[Policy], chosen: ApiNodes, nodes: Iterable[Node] | None = None) -> Iterator[str]:
    """What to look at, a sentence each. `nodes`: those of a cluster; None where only the selectors are known."""
    known = None if nodes is None else list(nodes)
    if known is not None and not any(chosen.taints(node) is not None for node in known):
        yield f"no node is Ready, schedulable and chosen by {chosen.text!r}: cases whose operations need one are held"
    for policy in policies:
        both = None if known is None else sorted(node.name for node in known if _both(node, policy, chosen))
        if both or (both is None and may_overlap(policy.selector, chosen.selector)):
            named = f": {', '.join(both[:5])}" if both else ""
            where = f"on which {chosen.text!r} lets Pods with rights in the API run{named}"
            yield f"policy {policy.name} {'may select' if both is None else 'selects'} nodes {where}; {REMEDY}"


def _both(node: Node, policy: Policy, chosen: ApiNodes) -> bool:
    return policy.selects(node) and chosen.selector.matches(node.labels)
