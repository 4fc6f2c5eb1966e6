"""NodeDisruptionBudget of theirs. Both amounts hold there; a budget here has one of them."""

from collections.abc import Iterator

from remediator.kube import api
from remediator.kube.manifests.noc import wire
from remediator.kube.manifests.noc.meta import kept
from remediator.kube.manifests.noc.remark import Remark


def budget(theirs: wire.NodeDisruptionBudget) -> Iterator[api.NodeDisruptionBudget | Remark]:
    """One budget for each amount."""
    spec, selector = theirs.spec, api.LabelSelector(match_labels=theirs.spec.selector)
    most, fewest = spec.max_unavailable, spec.min_available
    if most is None and fewest is None:
        yield Remark("spec", "is left out: it sets neither maxUnavailable nor minAvailable, and limits nothing")
        return
    if most is not None:
        limits = api.NodeDisruptionBudgetSpec(selector=selector, max_unavailable=most)
        yield api.NodeDisruptionBudget(metadata=kept(theirs.metadata), spec=limits)
    if fewest is not None:
        name = theirs.metadata.name if most is None else f"{theirs.metadata.name}-min-available"
        limits = api.NodeDisruptionBudgetSpec(selector=selector, min_available=fewest)
        yield api.NodeDisruptionBudget(metadata=kept(theirs.metadata, name), spec=limits)
    if most is not None and fewest is not None:
        yield Remark("spec.minAvailable", f"becomes a budget of its own, {name}: both hold")
    if spec.taint_targets:
        message = (
            "is left out: a node is unavailable here while a case holds it, or it is cordoned or not Ready; "
            "cordon nodes that have these taints"
        )
        yield Remark("spec.taintTargets", message)
