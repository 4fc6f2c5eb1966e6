"""Finds operations that the nodes of a policy cannot carry out, by what these run on: a Pod of it would refuse."""

from collections.abc import Collection, Iterable, Iterator

from remediator.core.hosts import HOSTS, HostKind, refusals
from remediator.core.node import Node
from remediator.core.policy import Policy
from remediator.kube.manifests import schema
from remediator.kube.manifests.budgets import some
from remediator.kube.manifests.decoded import Object, disturbing


def wrong(document: Object, platforms: Collection[HostKind], nodes: Iterable[Node] = ()) -> Iterator[schema.Violation]:
    """What is refused, a sentence each. `platforms`: those that were named; `nodes`: those of a cluster."""
    for policy in disturbing([("", document)]):
        selected = [node for node in nodes if policy.selects(node)]
        shown = {kind for node in selected for kind in node.hosts}
        for kind in (kind for kind in HostKind if kind in platforms or kind in shown):
            of = some([node.name for node in selected if kind in node.hosts]) if kind in shown else ""
            for place, refusal in refusals(kind, _operations(policy)):
                where = f"{HOSTS[kind].title}{f' ({of})' if of else ''}"
                yield schema.Violation(place, f"is refused on {where}: {refusal}")


def _operations(policy: Policy) -> dict[str, str]:
    rungs = {f"spec.ladder[{index}].operation": rung.operation for index, rung in enumerate(policy.ladder)}
    return rungs | ({"spec.verify.probe": policy.verify.probe} if policy.verify.probe else {})
