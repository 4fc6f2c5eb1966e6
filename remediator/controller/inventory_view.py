"""ClusterCache → what a case knows of the devices of its node. Pure: it only reads stores."""

from datetime import datetime

from remediator.controller.cache import ClusterCache
from remediator.core import inventory
from remediator.core.case import Case
from remediator.core.node import Node
from remediator.core.policy import Policy


def missing(cache: ClusterCache, case: Case, policy: Policy, node: Node) -> str:
    """Which devices the node lacks, with the numbers; "" for none."""
    return inventory.missing(case, policy, node, cache.cases.by("node", case.node))


def short(cache: ClusterCache, case: Case, policy: Policy, node: Node, operation: str, now: datetime) -> bool:
    """Whether the node still lacks devices now that the time to verify what was done before this operation is over."""
    before = [attempt.finished for attempt in case.counted if attempt.operation != operation and attempt.finished]
    since = max(before, default=case.started)
    if since is None or now < cache.absences.deadline(since, policy.verify.timeout):
        return False
    return bool(missing(cache, case, policy, node))
