"""Which idle nodes may be tested, and who works on a node beside a test."""

from datetime import datetime

from remediator.controller.cache import ClusterCache
from remediator.controller.idle_test_results import IdleTestResults
from remediator.core import idle_test
from remediator.core.case import Case
from remediator.core.idle_test import Candidate, NodeUse
from remediator.core.node import Node
from remediator.core.policy import Policy
from remediator.core.template import Template
from remediator.kube.runtime.turns import sliced

SLICE = 200  # nodes between two turns of the loop


class IdleNodes:
    """Those that the cache knows."""

    def __init__(self, cache: ClusterCache, results: IdleTestResults) -> None:
        self._cache, self._results = cache, results

    async def candidates(
        self, policy: Policy, template: Template, opened: datetime, now: datetime
    ) -> tuple[int, list[Candidate]]:
        """How many nodes the policy selects, and those that may be tested. Each node is looked at once."""
        asking = [each for each in self._cache.policies if each.idle_test is not None]
        selected, candidates = 0, []
        async for node in sliced(list(self._cache.nodes), SLICE):
            if not policy.selects(node):
                continue
            selected += 1
            own = self._results.own(node.name)
            tested = own.tested if own is not None else None
            own_turn = idle_test.tester(node, asking) == policy.name
            free = own_turn and not self._cache.pods.by("tested", node.name)
            due = free and idle_test.is_due(tested, policy.name, opened)
            if due and not self._results.is_quiet(node.name, now) and not self.obstacle(node, template):
                candidates.append(Candidate(tested.at.timestamp() if tested else 0.0, node.name))
        return selected, candidates

    def obstacle(self, node: Node, template: Template) -> str:
        """Why a node must not be tested; "" for nothing."""
        return obstacle(self._cache, node, template)

    def holders(self, node: Node) -> list[Case]:
        """The cases that may work on the node, or have not given it back."""
        return holders(self._cache, node)


def obstacle(cache: ClusterCache, node: Node, template: Template) -> str:
    """Why a node must not be tested by this template; "" for nothing."""
    spare = cache.spare
    held = spare is None or bool(spare.held_on(node.name))
    return idle_test.obstacle(node, NodeUse(holders(cache, node), held), template)


def holders(cache: ClusterCache, node: Node) -> list[Case]:
    """The cases that may work on the node, or have not given it back: not those of policies that only watch."""
    cases = cache.cases.by("node", node.name)
    return [case for case in cases if case.claimed or not _only_watches(cache, case.policy)]


def _only_watches(cache: ClusterCache, name: str) -> bool:
    policy = cache.policies.get(name)
    return policy is not None and not policy.acts
