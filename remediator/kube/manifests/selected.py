"""How many nodes of a cluster each policy selects."""

from collections.abc import Collection, Iterable, Iterator

from remediator.core.gpu_label import has_label
from remediator.core.node import Node
from remediator.core.policy import Policy


def counts(policies: Iterable[Policy], nodes: Collection[Node]) -> Iterator[str]:
    """A sentence for each policy that selects some."""
    for policy in policies:
        chosen = [node for node in nodes if policy.selects(node)]
        gpus = sum(has_label(node.labels) for node in chosen)
        if chosen:
            yield f"policy {policy.name} selects {len(chosen)} of {len(nodes)} nodes, {gpus} of them with GPUs"


def warnings(policies: Iterable[Policy], nodes: Collection[Node]) -> Iterator[str]:
    """A sentence for each policy that selects none; one for all where there are no nodes."""
    if not nodes:
        yield "the cluster has no nodes, so no policy and no budget could be tried on any"
        return
    for policy in policies:
        if not any(policy.selects(node) for node in nodes):
            yield (
                f"policy {policy.name} selects none of {len(nodes)} nodes; give nodes the labels that its "
                "spec.nodeSelector asks for, or change it"
            )
