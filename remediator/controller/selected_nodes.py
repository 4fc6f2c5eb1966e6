"""How many nodes each policy selects: a number on its status, and an Event where it is none."""

from datetime import datetime, timedelta
from typing import NamedTuple

from remediator.controller.cache import ClusterCache
from remediator.controller.effects import Create, Effect, Patch
from remediator.core import names
from remediator.core.node import Node
from remediator.core.policy import Policy
from remediator.kube import api
from remediator.kube.api import encode
from remediator.kube.api.builtin import EVENT

SELECTS_NO_NODE = "SelectsNoNode"
AGAIN = timedelta(minutes=1)  # nodes come and go: they are counted no more often


class SelectedNodes:
    """Counts the nodes of a policy when it is new or edited, and at most once a minute where labels have changed."""

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache
        self._moves = 0  # of labels, nodes that come and go among them
        self._counted: dict[str, _Count] = {}  # by policy
        cache.nodes.on_view(self._on_node)

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        self._moves += old is None or new is None or old.labels != new.labels

    def effects(self, policy: Policy, now: datetime) -> list[Effect]:
        """What is to be written; nothing where the status says so already."""
        known = self._counted.get(policy.name)
        if known is not None and known.edition == _edition(policy) and now - known.at < AGAIN:
            return []
        count = self._count(policy, known)
        self._counted[policy.name] = _Count(_edition(policy), now, self._moves, count)
        if count == policy.selected:
            return []
        events = [_told(policy, now)] if not count and any(True for _ in self._cache.nodes) else []
        return [Patch(api.POLICY, policy.name, encode.policy_selected(count), "", "status"), *events]

    def _count(self, policy: Policy, known: "_Count | None") -> int:
        if known is not None and (known.edition, known.moves) == (_edition(policy), self._moves):
            return known.nodes
        return sum(policy.selects(node) for node in self._cache.nodes)


class _Count(NamedTuple):
    """How many nodes a policy selected, which edition of it, when, and after how many moves of labels."""

    edition: tuple[str, int]
    at: datetime
    moves: int
    nodes: int


def _edition(policy: Policy) -> tuple[str, int]:
    """One that is deleted and made again begins with the same generation."""
    return policy.uid, policy.generation


def _told(policy: Policy, now: datetime) -> Create:
    why = (
        "selects no node, so it finds nothing: give nodes the labels that its spec.nodeSelector asks for, or change "
        "it; remediator lint FILE --kubeconfig FILE tries it before it is applied"
    )
    name = names.name(policy.name, SELECTS_NO_NODE.lower(), policy.uid, why, f"{now:%Y-%m-%dT%H}")
    return Create(EVENT, encode.policy_event(name, policy, SELECTS_NO_NODE, why, now), namespace="default")
