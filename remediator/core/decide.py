"""What the controller does with one node now. It changes nothing; `explain` shows the same decision."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from operator import attrgetter

from remediator.core import names
from remediator.core.case import Case, Trigger
from remediator.core.correlation import common_text
from remediator.core.covers import NOTHING, Covers, covering
from remediator.core.giving_way import gives_way, held_alone, outranks, unanswered
from remediator.core.guard import cooldown_until
from remediator.core.health import Health, health_of
from remediator.core.judgement import ConditionDoubt, Judgement, judge, onsets_of
from remediator.core.ladder import Next, next_rung
from remediator.core.node import Node
from remediator.core.policy import Policy
from remediator.core.sharing import layout

# Each look-up of a member takes Python a fifth of a microsecond; these are asked for in every decision.
_UNHEALTHY = Health.UNHEALTHY
MOST_CASES, CASES_WINDOW = 6, timedelta(hours=1)  # of one node and policy


@dataclass(frozen=True, slots=True)
class Healthy:
    """The conditions of every policy that selects the node prove that it is well."""


@dataclass(frozen=True, slots=True)
class Unselected:
    """No policy selects the node."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing is proven either way, and why."""

    doubts: tuple[ConditionDoubt, ...]


@dataclass(frozen=True, slots=True)
class Busy:
    """A case is open for the node."""

    case: str


@dataclass(frozen=True, slots=True)
class Handled:
    """The fault has had its case, and that case is over: a user cancelled it, or released the node."""

    case: str
    policy: str


@dataclass(frozen=True, slots=True)
class Wait:
    """A condition holds, but not yet for its tolerance, or its policy has opened too many cases of the node."""

    until: datetime
    policy: str


@dataclass(frozen=True, slots=True)
class Start:
    """A case is to be opened under this name. Whether it may act is the guard's to say."""

    name: str
    policy: str
    trigger: Trigger


Judged = list[tuple[Policy, Judgement]]
Decision = Healthy | Unselected | Unknown | Busy | Handled | Wait | Start
MayStart = Callable[[Policy], bool]


def anything(policy: Policy) -> bool:
    """No policy makes its cases wait."""
    return True


def decide(
    node: Node,
    policies: Iterable[Policy],
    cases: Sequence[Case],
    now: datetime,
    covers: Covers = NOTHING,
    may_start: MayStart = anything,
) -> Decision:
    """Say what the node needs.

    Args:
        node: The node as last observed.
        policies: All policies, in any order.
        cases: The cases of this node, open and ended.
        now: Aware UTC, read once for the whole pass.
        covers: What each template covers.
        may_start: Whether a case of this policy could begin now, as far as the policy itself says.

    Returns:
        Start for the most severe policy that is due, on ties the one due first, then the name that sorts first; but one
        whose next operation that of another covers gives way to the other, if that may act: it would be done in vain.
        Else the earliest Wait; else Busy where a case is open; else Handled, Unknown, Healthy, Unselected. A policy has
        one open case of a node at most. Of the policies that act, only one that outranks it opens a case beside that of
        another, and only where that one has not taken the node or gives way; which of them takes it, admission says.
        One that only watches (DryRun, Paused, tickets only) holds up no other, nor does a case that holds nothing and
        whose fault does not show any more.
    """
    # One that has ended is over only when it has given the node back, which also tells what is not opened again.
    taken = [case for case in cases if (case.open or case.finalizer) and case.node_uid == node.uid]
    everyone = sorted(policies, key=attrgetter("name"))
    selecting = [policy for policy in everyone if policy.selector.matches(node.labels)]
    past = _by_policy(cases)
    mine, ahead = (selecting, []) if not taken else _free(node, selecting, everyone, taken, now)
    judged = [(policy, judge(node, policy, now)) for policy in mine]
    unhealthy = [pair for pair in judged if pair[1].health is _UNHEALTHY]
    had = {policy.name for policy, _ in unhealthy} if node.handled else past  # of these it must be asked
    fresh = [pair for pair in unhealthy if pair[0].name not in had or not _had_its_case(node, *pair, past)]
    opens = {policy.name: judgement.due or now for policy, judgement in fresh}
    opens |= {name: max(opens[name], _room_from(past[name], now)) for name in opens.keys() & past.keys()}
    due = [pair for pair in fresh if pair[1].due and opens[pair[0].name] <= now]
    first = _first(_Outlook(past, now, covers, may_start), due, ahead)
    if first:
        policy, judgement = first
        return Start(_new_name(node, policy, judgement, past), policy.name, _trigger(node, policy, judgement))
    waiting = [(until, name) for name, until in opens.items() if until > now]
    if waiting:
        return Wait(*min(waiting))
    if taken:
        return Busy(taken[0].name)
    return _quiet(node, judged, unhealthy)


Past = Mapping[str, Sequence[Case]]  # the cases of the node, by policy, without those that ask for a proof of a new one


def _by_policy(cases: Iterable[Case]) -> Past:
    past: dict[str, list[Case]] = {}
    for case in (case for case in cases if case.new_node is None):
        past.setdefault(case.policy, []).append(case)
    return past


def _free(
    node: Node, selecting: Sequence[Policy], everyone: Sequence[Policy], taken: Sequence[Case], now: datetime
) -> tuple[list[Policy], list[Policy]]:
    """The policies that may open a case beside those that are open, and those whose open cases may begin at any time.

    Of those that act, only what outranks all that waits may open one, and nothing where a case has the node for good.
    """
    waiting = {case.policy: case for case in taken}
    others = [policy for policy in selecting if policy.name not in waiting]
    holding = {case.policy for case in taken if case.claimed}
    giving = {case.policy for case in taken if case.claimed and gives_way(case, case.blocks)}
    if holding - giving or giving - {policy.name for policy in everyone}:
        return [policy for policy in others if not policy.acts], []
    theirs = [policy for policy in everyone if policy.name in waiting]
    asking = [policy for policy in theirs if policy.acts and health_of(node, policy, now) is _UNHEALTHY]
    first = [policy for policy in theirs if policy in asking or policy.name in giving]
    free = [policy for policy in others if not policy.acts or all(outranks(policy, other) for other in first)]
    return free, [policy for policy in asking if policy.name not in giving and not held_alone(waiting[policy.name])]


@dataclass(frozen=True, slots=True)
class _Outlook:
    """What a new case of a policy would begin with."""

    past: Past
    now: datetime
    covers: Covers
    may_start: MayStart
    operations: dict[str, str] = field(default_factory=dict)  # by policy with a past: its first operation

    def operation(self, policy: Policy) -> str:
        """The first operation; "" where nothing is left to try."""
        name, ladder = policy.name, policy.ladder
        if name not in self.past:
            return ladder[0].operation if ladder else ""
        if name not in self.operations:
            following = next_rung(policy, _new_case(self.now), self.past[name], self.now, self.covers)
            self.operations[name] = ladder[following.rung].operation if isinstance(following, Next) else ""
        return self.operations[name]

    def in_vain(self, operation: str, policies: Iterable[Policy]) -> bool:
        """Whether a case of one of these policies may begin now with what covers this operation."""
        stronger, past = covering(self.covers, operation), self.past
        for policy in policies if stronger else ():
            if policy.name in past:
                if self._comes_to(stronger, policy, past[policy.name]):
                    return True
            elif policy.ladder and policy.ladder[0].operation in stronger and self.may_start(policy):
                return True
        return False

    def _comes_to(self, operations: Set[str], policy: Policy, before: Sequence[Case]) -> bool:
        """The same of a policy that had cases here: these may have covered its first rung, or make it rest."""
        if operations.isdisjoint([rung.operation for rung in policy.ladder]) or not self.may_start(policy):
            return False
        return self.operation(policy) in operations and not cooldown_until(policy, before, self.now)


@lru_cache(maxsize=1)
def _new_case(now: datetime) -> Case:
    """One of whichever node and policy that begins now: one object for all nodes of a pass."""
    return Case("", "", "", "", "", None, now)


def _first(outlook: _Outlook, due: Judged, ahead: Sequence[Policy]) -> tuple[Policy, Judgement] | None:
    """The most severe one whose first operation that of another does not cover: a case has the node for itself.

    One that may not begin now covers nothing. `ahead`: policies whose cases are open already.
    """
    if len(due) + len(ahead) < 2 or not outlook.covers:
        return min(due, key=_order) if due else None
    acting = [policy for policy, _ in due if policy.acts]
    acting += ahead
    vain: dict[str, bool] = {}
    for policy, judgement in sorted(due, key=_order):
        if not policy.acts:
            return policy, judgement
        operation = outlook.operation(policy)
        if operation not in vain:
            vain[operation] = outlook.in_vain(operation, acting)
        if not vain[operation]:
            return policy, judgement
    return None


def _order(pair: tuple[Policy, Judgement]) -> tuple[int, datetime | None]:
    """Of two that are equal the first one stays first: they come by name."""
    return pair[0].severity.rank, pair[1].due


def _had_its_case(node: Node, policy: Policy, judgement: Judgement, past: Past) -> bool:
    """Whether the fault had its case, which nobody wants again. A name says of which policy it is."""
    first = case_name(node, policy, judgement)
    if first in node.handled:
        return True
    before = past.get(policy.name, ())
    known = [case.name for case in before]
    if first not in known:  # none was left unanswered, and so there is no other name
        return False
    name = _after_unanswered(first, node, policy, judgement, before)
    return name in node.handled or name in known


def _new_name(node: Node, policy: Policy, judgement: Judgement, past: Past) -> str:
    """The name of the next case for this onset."""
    return _after_unanswered(case_name(node, policy, judgement), node, policy, judgement, past.get(policy.name, ()))


def _after_unanswered(name: str, node: Node, policy: Policy, judgement: Judgement, before: Sequence[Case]) -> str:
    """The name, or another one after each case of this onset that gave way, or was over before it had taken the node.

    The same onset shows again where a policy was edited and edited back, or deleted and made again, or where a
    Condition has changed its reason and not its status.
    """
    number = 0
    while [case for case in before if case.name == name and unanswered(case)]:
        number += 1
        name = name_of_onset(node, policy, judgement.since, number)
    return name


def _room_from(before: Sequence[Case], now: datetime) -> datetime:
    """From when one more case of a policy may be opened: a node says by itself when its conditions change."""
    if len(before) < MOST_CASES:
        return now
    opened = sorted(min(case.created, now) for case in before)
    return max(now, opened[-MOST_CASES] + CASES_WINDOW)


def _quiet(node: Node, judged: Judged, unhealthy: Judged) -> Decision:
    """The decisions that open nothing."""
    if unhealthy:
        return Handled(case_name(node, *unhealthy[0]), unhealthy[0][0].name)
    doubts = frozenset(doubt for _, judgement in judged for doubt in judgement.doubts)
    if doubts:
        return _unknown(doubts)
    return Healthy() if judged else Unselected()


@lru_cache(maxsize=256)
def _unknown(doubts: frozenset[ConditionDoubt]) -> Unknown:
    """One object for all nodes of which the same is not known."""
    return Unknown(tuple(sorted(doubts, key=_in_order)))


_in_order = attrgetter("condition", "why", "holds")


def case_name(node: Node, policy: Policy, judgement: Judgement) -> str:
    """The name of the case for this onset: the same from every replica, and after every crash."""
    return name_of_onset(node, policy, judgement.since)


def name_of_onset(node: Node, policy: Policy, since: datetime | None, unanswered: int = 0) -> str:
    """The name of the case of this policy for what holds since then, after so many that left it unanswered."""
    onset = since.isoformat() if since else ""
    again = (str(unanswered),) if unanswered else ()
    return names.name(node.name, policy.name, node.uid, policy.name, onset, *again)


def onsets(node: Node, policies: Iterable[Policy]) -> list[str]:
    """The names of the cases for all that these policies find on the node now."""
    return [name_of_onset(node, policy, since) for policy in policies for since in onsets_of(node, policy)]


def _trigger(node: Node, policy: Policy, judgement: Judgement) -> Trigger:
    """What the case remembers of the condition that it was opened for."""
    condition = judgement.condition
    if condition is None or judgement.since is None:
        raise ValueError("a trigger needs a condition that holds")
    status, reason, message = condition.status.value, condition.reason, condition.message
    text = common_text(policy, reason, message, node) if policy.correlation else ""
    cause = "" if text == message else text
    return Trigger(condition.type, status, reason, message, judgement.since, cause, node.devices, layout(node))
