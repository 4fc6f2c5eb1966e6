"""Compares the nodes for Pods with rights in the API, on which their tokens lie, with those that policies select.

A policy that leaves the control plane out by name means all workers, those without GPUs, too: of these only nodes with
GPUs must not be chosen.
"""

from collections.abc import Iterable, Iterator

from remediator.core.gpu_label import DISCOVERED
from remediator.core.names import GPU_PRESENT
from remediator.core.node import Node
from remediator.core.places import ApiNodes
from remediator.core.policy import Policy
from remediator.core.selector import Operator, Requirement, Selector, may_overlap

REMEDY = (
    "give --api-pods-node-selector labels that only nodes without GPUs have, unless all nodes have GPUs and these are "
    "chosen for it"
)


_OF_WORKERS = Requirement("node-role.kubernetes.io/control-plane", Operator.DOES_NOT_EXIST)
_GPU_LABELS = (DISCOVERED, GPU_PRESENT)


def warnings(policies: Iterable[Policy], chosen: ApiNodes, nodes: Iterable[Node] | None = None) -> Iterator[str]:
    """What to look at, a sentence each. `nodes`: those of a cluster; None where only the selectors are known."""
    known = None if nodes is None else list(nodes)
    if known is not None and not any(chosen.taints(node) is not None for node in known):
        yield f"no node is Ready, schedulable and chosen by {chosen.text!r}: cases whose operations need one are held"
    for policy in policies:
        both = None if known is None else sorted(node.name for node in known if _both(node, policy, chosen))
        if both or (both is None and any(may_overlap(each, chosen.selector) for each in _kept_apart(policy))):
            named = f": {', '.join(both[:5])}" if both else ""
            where = f"on which {chosen.text!r} lets Pods with rights in the API run{named}"
            yield f"policy {policy.name} {'may select' if both is None else 'selects'} nodes {where}; {REMEDY}"


def _both(node: Node, policy: Policy, chosen: ApiNodes) -> bool:
    apart = any(selector.matches(node.labels) for selector in _kept_apart(policy))
    return apart and chosen.selector.matches(node.labels)


def _kept_apart(policy: Policy) -> Iterator[Selector]:
    """What selects the nodes of a policy that must not be chosen for Pods with rights in the API."""
    asked = policy.selector.requirements
    if _OF_WORKERS not in asked:
        yield policy.selector
        return
    yield from (Selector((*asked, Requirement(label, Operator.IN, ("true",)))) for label in _GPU_LABELS)
