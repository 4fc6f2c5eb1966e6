"""What policies do by criteria that are new in a release: judged by the cache, told by an Event and the log."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

import structlog

from remediator.controller.cache import ClusterCache
from remediator.controller.effects import Create, Effect, Patch
from remediator.core import names
from remediator.core.health import Health, clause_health
from remediator.core.new_criteria import Criterion, asked
from remediator.core.node import Node, Status
from remediator.core.policy import Clause, CriterionState, NewCriterion, Policy
from remediator.core.quiet import QuietRule, judged, newly_muted
from remediator.core.quiet_hold import trust_command
from remediator.core.reasons import Reason
from remediator.kube import api
from remediator.kube.api import encode
from remediator.kube.api.builtin import EVENT

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SelectedByPolicy:
    """The nodes that a policy selects, counted in the cache; mostly only those whose Condition stands are looked at."""

    cache: ClusterCache
    policy: Policy
    now: datetime

    def selected(self) -> int:
        """As its status says, which is at most a minute old; where it says nothing, counted."""
        known = self.policy.selected
        return sum(1 for _ in self._nodes()) if known is None else known

    def showing(self, criterion: Criterion) -> int:
        """Those whose Condition stands, by evidence that counts, in the words of the criterion."""
        standing = self.cache.nodes_by.showing((criterion.condition, Status.TRUE))
        nodes = (node for name in standing if (node := self.cache.nodes.get(name)) and self.policy.selects(node))
        return sum(self._tells(node, criterion) for node in nodes)

    def unclear(self, criterion: Criterion) -> int:
        """Those whose Condition is absent, Unknown, or too old to be believed."""
        clause = Clause(criterion.condition)
        return sum(clause_health(node, clause, self.now) is Health.UNKNOWN for node in self._nodes())

    def heard_since(self, at: datetime) -> int:
        """Those with a Condition whose heartbeat is no older."""
        return sum(any(each.heartbeat >= at for each in node.conditions.values()) for node in self._nodes())

    def _tells(self, node: Node, criterion: Criterion) -> bool:
        condition = node.conditions[criterion.condition]
        by_criterion = criterion.told_by(condition.type, condition.reason, condition.message)
        return by_criterion and clause_health(node, Clause(criterion.condition), self.now) is Health.UNHEALTHY

    def _nodes(self) -> Iterator[Node]:
        return (node for node in self.cache.nodes if self.policy.selects(node))


def as_of(cache: ClusterCache, policy: Policy, rule: QuietRule, now: datetime) -> tuple[NewCriterion, ...]:
    """What a policy does by new criteria now."""
    return judged(policy, SelectedByPolicy(cache, policy, now), rule, now)


def of_policies(cache: ClusterCache, rule: QuietRule, now: datetime) -> dict[str, tuple[NewCriterion, ...]]:
    """The same of all policies that ask for new criteria and have a case that is open."""
    with_case = {case.policy for case in cache.unfinished if case.open}
    policies = (policy for policy in cache.policies if policy.name in with_case and asked(policy))
    return {policy.name: as_of(cache, policy, rule, now) for policy in policies}


def effects(policy: Policy, criteria: tuple[NewCriterion, ...], now: datetime) -> list[Effect]:
    """What is written where they have changed: an Event for each criterion that is muted now, then the status.

    The Event comes first: after a crash between them it is made again, under the same name.
    """
    log.info("what a policy does by new criteria", policy=policy.name, criteria=_words(criteria))
    events = [_told(policy, criterion, now) for criterion in newly_muted(policy.criteria, criteria)]
    body = encode.policy_criteria(policy.version, criteria)
    return [*events, Patch(api.POLICY, policy.name, body, "", "status")]


def _told(policy: Policy, criterion: str, now: datetime) -> Create:
    reason = Reason.CRITERION_MUTED.value
    why = f"too many of its nodes show {criterion}, which is new: nothing starts for it until few have for an hour"
    message = f"{why}; to let it act: {trust_command(policy, criterion)}"
    name = names.name(policy.name, reason.lower(), policy.uid, criterion, f"{now:%Y-%m-%dT%H}")
    return Create(EVENT, encode.policy_event(name, policy, reason, message, now), namespace="default")


def _words(criteria: Iterable[NewCriterion]) -> dict[str, str]:
    return {row.criterion: row.state.value for row in criteria}


def muted(policies: Iterable[Policy]) -> dict[str, bool]:
    """Of each policy that asks for new criteria, whether one of them is muted."""
    states = ((policy.name, [row.state for row in policy.criteria]) for policy in policies if policy.criteria)
    return {name: CriterionState.MUTED in of_policy for name, of_policy in states}
