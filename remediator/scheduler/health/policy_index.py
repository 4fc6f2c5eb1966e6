"""The policies, and what they ask of each node: found out once, not at each change of a node. Pure."""

from collections.abc import Iterable

from remediator.core.node import Node
from remediator.core.policy import Mode, Policy, Urgency
from remediator.core.quiet_hold import only_shows

MOST_SELECTIONS = 1024  # that are remembered: nodes are of few kinds, unless a policy selects them by name


class PolicyIndex:
    """The policies of a cluster, as they are now: another policy makes another index.

    `repairing`: the names of those that repair nodes; `only_scoring`: of those that keep no Pod off;
    `own_ages`: those that believe a condition for another time than all others.
    """

    def __init__(self, policies: Iterable[Policy]) -> None:
        self.policies = tuple(policies)
        self.repairing = frozenset(policy.name for policy in self.policies if repairs(policy))
        self.only_scoring = frozenset(policy.name for policy in self.policies if only_scores(policy))
        self.own_ages = tuple(policy for policy in self.policies if _has_own_age(policy))
        rows = (row for policy in self.policies for row in policy.selector.requirements)
        self._labels = tuple(dict.fromkeys(row.key for row in rows))
        self._selections: dict[tuple[str | None, ...], tuple[Policy, ...]] = {}

    def selecting(self, node: Node) -> tuple[Policy, ...]:
        """The policies that apply to the node. What no selector asks for makes no difference."""
        asked = tuple(map(node.labels.get, self._labels))
        known = self._selections.get(asked)
        if known is None:
            if len(self._selections) >= MOST_SELECTIONS:
                self._selections.clear()
            known = self._selections[asked] = tuple(policy for policy in self.policies if policy.selects(node))
        return known


def only_scores(policy: Policy) -> bool:
    """Whether the policy only watches, since a user says so or since all that it asks for is new in a release."""
    return policy.mode is Mode.DRY_RUN or only_shows(policy)


def repairs(policy: Policy) -> bool:
    """Whether something is done to a node that the policy finds, now or later."""
    return policy.urgency is not Urgency.NEVER


def _has_own_age(policy: Policy) -> bool:
    return any(clause.stale_after for when in policy.when for clause in when.clauses)
