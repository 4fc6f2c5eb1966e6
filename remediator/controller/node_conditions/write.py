"""Writes a Condition of ours on a node, beside those of others, and says it again while it stands."""

from datetime import datetime

from remediator.controller.cache import ClusterCache
from remediator.controller.effects import Done, Patch
from remediator.controller.handlers.base import seconds
from remediator.controller.perform import Performer
from remediator.core.node import Node
from remediator.core.own_condition import OwnCondition, beat, due
from remediator.kube.api import encode
from remediator.kube.api.builtin import NODE
from remediator.kube.wire.transport import STRATEGIC_PATCH


async def write(performer: Performer, cache: ClusterCache, node: Node, finding: OwnCondition, now: datetime) -> float:
    """One Condition, where it says something new or was said long ago; seconds until it is to be looked at again."""
    every, before = beat(cache.cases.by("node", node.name)), node.conditions.get(finding.type)
    condition = due(before, finding, now, every)
    if condition is None:
        heard = before.heartbeat if before else now
        return max(1.0, (heard + every - now).total_seconds())
    body = encode.node_condition(node, condition)
    result = await performer.one(Patch(NODE, node.name, body, "", "status", STRATEGIC_PATCH))
    return every.total_seconds() if isinstance(result, Done) else seconds(result) or every.total_seconds()
