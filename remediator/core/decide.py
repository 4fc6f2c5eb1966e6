"""What the controller does with one node now. It changes nothing; `explain` shows the same decision."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from remediator.core import evidence, names
from remediator.core.case import Case, Trigger
from remediator.core.correlation import common_text
from remediator.core.evidence import Doubt, Health, Judgement
from remediator.core.node import Node
from remediator.core.policy import Policy

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

    doubts: tuple[Doubt, ...]


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


def decide(node: Node, policies: Iterable[Policy], cases: Sequence[Case], now: datetime) -> Decision:
    """Say what the node needs.

    Args:
        node: The node as last observed.
        policies: All policies, in any order.
        cases: The cases of this node, open and ended.
        now: Aware UTC, read once for the whole pass.

    Returns:
        Start for the most severe policy that is due, on ties the one due first, then the name that sorts first; else
        the earliest Wait; else Busy where a case is open; else Handled, Unknown, Healthy, Unselected. A policy has one
        open case of a node at most, and so have all policies that act together; one that only watches (DryRun, Paused,
        tickets only) holds up no other, nor does a case that holds nothing and whose fault does not show any more.
    """
    policies = list(policies)
    # One that has ended is over only when it has given the node back, which also tells what is not opened again.
    taken = [case for case in cases if (case.open or case.finalizer) and case.node_uid == node.uid]
    mine = sorted(
        (policy for policy in _free(node, policies, taken, now) if policy.selects(node)), key=lambda policy: policy.name
    )
    judged = [(policy, evidence.judge(node, policy, now)) for policy in mine]
    unhealthy = [(policy, judgement) for policy, judgement in judged if judgement.health is Health.UNHEALTHY]
    known = {case.name for case in cases} | set(node.handled)
    fresh = [(policy, judgement) for policy, judgement in unhealthy if case_name(node, policy, judgement) not in known]
    opens = {policy.name: max(judgement.due or now, _room_from(policy, cases, now)) for policy, judgement in fresh}
    due = [(policy, judgement) for policy, judgement in fresh if judgement.due and opens[policy.name] <= now]
    if due:
        policy, judgement = min(due, key=lambda pair: (pair[0].severity.rank, pair[1].due, pair[0].name))
        return Start(case_name(node, policy, judgement), policy.name, _trigger(node, policy, judgement))
    if fresh:
        until, policy_name = min((until, name) for name, until in opens.items())
        return Wait(until, policy_name)
    if taken:
        return Busy(taken[0].name)
    return _quiet(node, judged, unhealthy)


def _room_from(policy: Policy, cases: Sequence[Case], now: datetime) -> datetime:
    """From when one more case of the policy may be opened: a node says by itself when its conditions change."""
    opened = sorted(min(case.created, now) for case in cases if case.policy == policy.name)
    return max(now, opened[-MOST_CASES] + CASES_WINDOW) if len(opened) >= MOST_CASES else now


def _free(node: Node, policies: Sequence[Policy], taken: Sequence[Case], now: datetime) -> Iterable[Policy]:
    """The policies that may open a case beside those that are open."""
    own = {case.policy for case in taken}
    about_to_act = (policy for policy in policies if policy.acts and policy.name in own)
    asking = any(evidence.judge(node, policy, now).health is Health.UNHEALTHY for policy in about_to_act)
    busy = asking or any(case.claimed for case in taken)
    return (policy for policy in policies if policy.name not in own and not (busy and policy.acts))


def _quiet(node: Node, judged: Judged, unhealthy: Judged) -> Decision:
    """The decisions that open nothing."""
    if unhealthy:
        return Handled(case_name(node, *unhealthy[0]), unhealthy[0][0].name)
    doubts = tuple(sorted({doubt for _, judgement in judged for doubt in judgement.doubts}))
    if doubts:
        return Unknown(doubts)
    return Healthy() if judged else Unselected()


def case_name(node: Node, policy: Policy, judgement: Judgement) -> str:
    """The name of the case for this onset: the same from every replica, and after every crash."""
    return name_of_onset(node, policy, judgement.since)


def name_of_onset(node: Node, policy: Policy, since: datetime | None) -> str:
    """The name of the case of this policy for what holds since then."""
    onset = since.isoformat() if since else ""
    return names.name(node.name, policy.name, node.uid, policy.name, onset)


def onsets(node: Node, policies: Iterable[Policy]) -> list[str]:
    """The names of the cases for all that these policies find on the node now."""
    return [name_of_onset(node, policy, since) for policy in policies for since in evidence.onsets(node, policy)]


def _trigger(node: Node, policy: Policy, judgement: Judgement) -> Trigger:
    """What the case remembers of the condition that it was opened for."""
    condition = judgement.condition
    if condition is None or judgement.since is None:
        raise ValueError("a trigger needs a condition that holds")
    status, reason, message = condition.status.value, condition.reason, condition.message
    text = common_text(policy, reason, message, node.labels) if policy.correlation else ""
    return Trigger(condition.type, status, reason, message, judgement.since, "" if text == message else text)
