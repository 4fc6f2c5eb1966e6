"""Quiet beginnings: what is new in a release is shown for a while before a policy acts on it. Pure.

What stands in the status of a policy is the memory: since when it knows a criterion, and whether it acts on it. What is
not written there yet starts nothing.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from remediator.core.clocks import AHEAD
from remediator.core.new_criteria import Criterion, asked
from remediator.core.policy import CriterionState, NewCriterion, Policy

FEWEST = 3  # nodes that show a criterion: fewer are no share of a fleet
CLEAR = timedelta(hours=1)  # so long the share must be small again
REFRESH = timedelta(minutes=10)  # so long after its time was written a share is looked at again
MEANT = timedelta(minutes=10)  # a policy that is no older when its criteria are first seen was written for them
CLOCK_SLACK = timedelta(hours=1)  # how far behind ours the clocks of nodes may be


@dataclass(frozen=True, slots=True)
class QuietRule:
    """For how long policies older than a criterion only show it (0: they act at once, and nothing mutes it), and on
    more than how many percent of its nodes a policy believes no new criterion.
    """

    period: timedelta = timedelta(days=7)
    share: int = 10


class CountedNodes(Protocol):
    """The nodes that a policy selects, counted where that is asked."""

    def selected(self) -> int:
        """How many there are."""

    def showing(self, criterion: Criterion) -> int:
        """How many show it by evidence that counts."""

    def unclear(self, criterion: Criterion) -> int:
        """Of how many nobody can tell."""

    def heard_since(self, at: datetime) -> int:
        """How many have told of themselves after this time, by their own clocks."""


def judged(policy: Policy, nodes: CountedNodes, rule: QuietRule, now: datetime) -> tuple[NewCriterion, ...]:
    """What the status of a policy should say of the new criteria that it asks for."""
    known = {row.criterion: row for row in policy.criteria}
    moment = now.replace(microsecond=0)
    return tuple(_judged(policy, each, known.get(each.name), nodes, rule, moment) for each in asked(policy))


def _judged(
    policy: Policy, criterion: Criterion, row: NewCriterion | None, nodes: CountedNodes, rule: QuietRule, now: datetime
) -> NewCriterion:
    first = _begun(policy, criterion, row, now)
    row = replace(first, until=first.since + rule.period)
    if not rule.period or criterion.name in policy.trusts:
        return replace(row, state=CriterionState.ACTS, shared=None)
    if row.state is CriterionState.MUTED:
        return _of_muted(policy, row, criterion, nodes, rule, now)
    if row.state is CriterionState.ACTS and now >= row.until:
        return row
    if _many(nodes.showing(criterion), nodes, rule):
        return replace(row, state=CriterionState.MUTED, shared=now)
    over = row.state is CriterionState.QUIET and _over(row, nodes, now)
    return replace(row, state=CriterionState.ACTS) if over else row


def _begun(policy: Policy, criterion: Criterion, row: NewCriterion | None, now: datetime) -> NewCriterion:
    """The row as it was written, or a new one; times that lie ahead count as now."""
    if row is None:
        return NewCriterion(criterion.name, _first(policy, now), now, now)
    shared = min(row.shared, now) if row.shared else None
    return replace(row, since=now if row.since > now + AHEAD else row.since, shared=shared)


def _first(policy: Policy, since: datetime) -> CriterionState:
    """A policy that was written while we knew the criterion names it on purpose; nobody can tell of a time ahead."""
    meant = policy.created is not None and -AHEAD <= since - policy.created <= MEANT
    return CriterionState.ACTS if meant else CriterionState.QUIET


def _of_muted(
    policy: Policy, row: NewCriterion, criterion: Criterion, nodes: CountedNodes, rule: QuietRule, now: datetime
) -> NewCriterion:
    """Nodes of which nobody can tell may still show it: they end no mute."""
    if row.shared is None:
        return replace(row, shared=now)
    age = now - row.shared
    if age < REFRESH:
        return row
    if _many(nodes.showing(criterion) + nodes.unclear(criterion), nodes, rule):
        return replace(row, shared=now)
    if age < CLEAR:
        return row
    state = CriterionState.ACTS if _over(row, nodes, now) else _first(policy, row.since)
    return replace(row, state=state, shared=None)


def _many(showing: int, nodes: CountedNodes, rule: QuietRule) -> bool:
    return showing >= FEWEST and showing * 100 > rule.share * nodes.selected()


def _over(row: NewCriterion, nodes: CountedNodes, now: datetime) -> bool:
    """Whether the period is over by our clock, and by those of most nodes: ours may have jumped."""
    return now >= row.until and 2 * nodes.heard_since(row.until - CLOCK_SLACK) >= nodes.selected()


def newly_muted(before: tuple[NewCriterion, ...], after: tuple[NewCriterion, ...]) -> list[str]:
    """The criteria that were not muted before."""
    was = {row.criterion for row in before if row.state is CriterionState.MUTED}
    return [row.criterion for row in after if row.state is CriterionState.MUTED and row.criterion not in was]
