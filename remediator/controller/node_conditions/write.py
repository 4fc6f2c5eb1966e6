"""Writes a Condition of ours on a node, beside those of others, and says it again while it stands."""

from datetime import datetime

from remediator.controller.cache import ClusterCache
from remediator.controller.effects import Done, Patch
from remediator.controller.handlers.base import seconds
from remediator.controller.perform import Performer
from remediator.core.case import Case
from remediator.core.node import Node, Status
from remediator.core.own_condition import OwnCondition, beat, due, same_word
from remediator.kube.api import encode
from remediator.kube.api.builtin import NODE
from remediator.kube.runtime.leader import LeaderQueue
from remediator.kube.wire.transport import STRATEGIC_PATCH


async def write(performer: Performer, cache: ClusterCache, node: Node, wanted: OwnCondition, now: datetime) -> float:
    """One Condition, where it says something new or was said long ago; seconds until it is to be looked at again."""
    every, before = beat(cache.cases.by("node", node.name)), node.conditions.get(wanted.type)
    condition = due(before, wanted, now, every)
    if condition is None:
        heard = before.heartbeat if before else now
        return max(1.0, (heard + every - now).total_seconds())
    body = encode.node_condition(node, condition)
    result = await performer.one(Patch(NODE, node.name, body, "", "status", STRATEGIC_PATCH))
    return every.total_seconds() if isinstance(result, Done) else seconds(result) or every.total_seconds()


def follow_cases(cache: ClusterCache, queue: LeaderQueue[str], condition: str) -> None:
    """Look at a node that has the Condition where a case of it changes: who has to prove that it is well proves it by a
    Condition that is said again.
    """

    def moved(case: Case | None) -> None:
        node = cache.nodes.get(case.node) if case is not None else None
        if node is not None and condition in node.conditions:
            queue.add(node.name)

    cache.cases.on_change(lambda _, old, new: moved(new or old))


async def say(
    performer: Performer, cache: ClusterCache, node: Node, wanted: OwnCondition | None, now: datetime
) -> float | None:
    """The same of a Condition that says of well nodes nothing: what is well, and nobody waits for, is said once.

    `wanted` None: it never stood, and nothing is to be said.
    """
    if wanted is None:
        return None
    stands = wanted.status is not Status.FALSE or cache.has_open_case(node.name)
    if not stands and same_word(node.conditions.get(wanted.type), wanted):
        return None
    return await write(performer, cache, node, wanted, now)
