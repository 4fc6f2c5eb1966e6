"""All that is legal in manifests and should be looked at, by what is known of the cluster that they are for."""

from collections.abc import Iterator, Set
from typing import NamedTuple

from remediator.core.budget import Budget
from remediator.core.node import Node
from remediator.core.places import ApiNodes
from remediator.core.policy import Policy
from remediator.core.template import Template
from remediator.kube.manifests import (
    always_open,
    api_pods,
    budgets,
    covers,
    dead_nodes,
    decoded,
    fleet_wide,
    inventories,
    never_starts,
    new_nodes,
    probes,
    quiet_events,
    rivals,
    selected,
    times,
    trusted,
)


class Cluster(NamedTuple):
    """What a cluster has already. `budgets`: None where nobody may read them."""

    nodes: tuple[Node, ...]
    policies: tuple[Policy, ...] = ()
    budgets: tuple[Budget, ...] | None = ()
    templates: tuple[Template, ...] = ()


def counts(documents: decoded.Documents, cluster: Cluster | None) -> Iterator[str]:
    """How many nodes each policy selects, where there is a cluster."""
    return iter(()) if cluster is None else selected.counts(decoded.policies(documents), cluster.nodes)


def warnings(
    documents: list[tuple[str, decoded.Object]], chosen: ApiNodes, known: Set[str], cluster: Cluster | None
) -> Iterator[str]:
    """What may be meant so, a sentence each: no reason to refuse anything.

    Args:
        documents: Of all files.
        chosen: The nodes for Pods with rights in the API.
        known: Templates that are in the cluster besides those in the documents.
        cluster: None where none is asked.
    """
    disturbing = decoded.disturbing(documents)
    yield from selected.warnings(decoded.policies(documents), cluster.nodes) if cluster else ()
    yield from inventories.warnings(documents, cluster.nodes if cluster else ())
    yield from api_pods.warnings(disturbing, chosen, cluster.nodes if cluster else None)
    yield from probes.warnings(documents, cluster.nodes if cluster else None)
    yield from always_open.warnings(disturbing)
    yield from trusted.warnings(decoded.policies(documents))
    yield from dead_nodes.warnings(disturbing)
    yield from fleet_wide.warnings(disturbing)
    yield from covers.warnings(documents, known)
    yield from never_starts.warnings(documents)
    yield from new_nodes.warnings(decoded.policies(documents))
    yield from quiet_events.warnings(decoded.policies(documents))
    yield from times.warnings(documents)
    yield from _beside_others(documents, disturbing, cluster)


def _beside_others(documents: decoded.Documents, disturbing: list[Policy], cluster: Cluster | None) -> Iterator[str]:
    """What is unwise beside other policies and budgets. What a document says outranks what the cluster has."""
    there = cluster or Cluster(())
    nodes = cluster.nodes if cluster else None
    templates = {template.name: template for template in there.templates} | decoded.templates(documents)
    named = {policy.name for policy in decoded.policies(documents)}
    others = [policy for policy in there.policies if policy.acts and policy.name not in named]
    yield from rivals.warnings(disturbing, others, templates, nodes)
    mine = decoded.budgets(documents)
    every = {budget.name: budget for budget in there.budgets or ()} | mine
    yield from budgets.closed(every, nodes, mine.keys())
    if there.budgets is not None:
        yield from budgets.unguarded(disturbing, every.values(), there.nodes)
