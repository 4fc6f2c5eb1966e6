"""How many nodes each policy selects: a number on its status, and an Event where it is none."""

from datetime import datetime, timedelta

from remediator.controller.cache import ClusterCache
from remediator.controller.effects import Create, Effect, Patch
from remediator.core import names
from remediator.core.policy import Policy
from remediator.kube import api
from remediator.kube.api import encode
from remediator.kube.api.builtin import EVENT

SELECTS_NO_NODE = "SelectsNoNode"
AGAIN = timedelta(minutes=1)  # nodes come and go: they are counted no more often


class SelectedNodes:
    """Counts the nodes of a policy when it is new or edited, and then at most once a minute."""

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache
        self._counted: dict[str, tuple[int, datetime]] = {}  # by policy: its generation, and when

    def effects(self, policy: Policy, now: datetime) -> list[Effect]:
        """What is to be written; nothing where the status says so already."""
        generation, at = self._counted.get(policy.name, (0, now))
        if policy.generation == generation and now - at < AGAIN:
            return []
        self._counted[policy.name] = policy.generation, now
        count = sum(policy.selects(node) for node in self._cache.nodes)
        if count == policy.selected:
            return []
        events = [_told(policy, now)] if not count and any(True for _ in self._cache.nodes) else []
        return [Patch(api.POLICY, policy.name, encode.policy_selected(count), "", "status"), *events]


def _told(policy: Policy, now: datetime) -> Create:
    why = (
        "selects no node, so it finds nothing: give nodes the labels that its spec.nodeSelector asks for, or change "
        "it; remediator lint FILE --kubeconfig FILE tries it before it is applied"
    )
    name = names.name(policy.name, SELECTS_NO_NODE.lower(), policy.uid, why, f"{now:%Y-%m-%dT%H}")
    return Create(EVENT, encode.policy_event(name, policy, SELECTS_NO_NODE, why, now), namespace="default")
