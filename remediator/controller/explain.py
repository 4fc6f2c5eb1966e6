"""Why a node is repaired or not: the same decision as the controller's, written in sentences. Writes nothing."""

from collections.abc import Iterator
from datetime import datetime

from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.controller.case_view import case_view
from remediator.controller.fleet import budgets_over, fleet_context
from remediator.controller.handlers.case import HANDLERS
from remediator.core import evidence, guard, names
from remediator.core.breaker import Breaker
from remediator.core.case import Block, Case
from remediator.core.case_table import case_step
from remediator.core.decide import Busy, Decision, Handled, Healthy, Start, Unknown, Unselected, Wait, decide
from remediator.core.guard import Request
from remediator.core.node import Node
from remediator.kube.informers import Informers
from remediator.kube.wire.client import Client


async def snapshot(client: Client, namespaces: names.Namespaces, clock: Clock) -> ClusterCache:
    """Read everything that a decision rests on."""
    informers = Informers(client, clock, namespaces)
    cache = ClusterCache(informers)
    await informers.read()
    return cache


def explain(cache: ClusterCache, node: Node, breaker: Breaker, now: datetime) -> Iterator[str]:
    """What is decided for one node, what its cases do next, and what holds them, a line each."""
    decision = decide(node, cache.policies, cache.cases.by("node", node.name), now)
    yield f"{node.name}: {describe(decision, now)}"
    if isinstance(decision, Start):
        yield from _before_start(cache, node, decision, breaker, now)
    for case in cache.cases.by("node", node.name):
        if case.open:
            yield from _case_lines(cache, case, breaker, now)
    for policy in sorted(cache.policies, key=lambda policy: policy.name):
        if policy.selects(node):
            health = evidence.judge(node, policy, now).health
            yield f"  policy {policy.name} ({policy.mode.value}), health: {health.name.capitalize()}"
    for ledger in budgets_over(cache, node):
        yield f"  budget {ledger}"
    recent = breaker.recent(cache.starts(now - breaker.window), now)
    yield f"  breaker of the fleet: {len(recent)} of {breaker.starts} starts in {breaker.window}"


def describe(decision: Decision, now: datetime) -> str:
    """A decision in one sentence."""
    match decision:
        case Healthy():
            return "healthy: the conditions of every policy prove it"
        case Unselected():
            return "no policy selects it"
        case Unknown(doubts):
            return f"health is unknown: {'; '.join(map(str, doubts))}; nothing starts, nothing ends"
        case Busy(case):
            return f"case {case} is open"
        case Handled(case, policy):
            return f"{policy} holds, but case {case} for it is over; nothing starts until the condition changes"
        case Wait(until, policy):
            return f"{policy} holds; a case opens in {max(0, int((until - now).total_seconds()))} s"
        case Start(_, policy, trigger):
            return f"{policy} holds ({trigger.condition}={trigger.status}, {trigger.reason}); a case opens now"


def _before_start(cache: ClusterCache, node: Node, decision: Start, breaker: Breaker, now: datetime) -> Iterator[str]:
    """What would hold a case that is not there yet."""
    case = Case(decision.name, "", node.name, node.uid, decision.policy, decision.trigger, now)
    yield from (f"  {line}" for line in _blocks(cache, case, node, breaker, now))


def _case_lines(cache: ClusterCache, case: Case, breaker: Breaker, now: datetime) -> Iterator[str]:
    if case.unreadable:
        yield f"  case {case.name} cannot be read: it counts as one that holds the node, and nothing is done to it"
        return
    view = case_view(cache, case, now)
    step = case_step(view.observation)
    yield f"  phase {case.phase.value or 'new'}, rung {case.rung + 1}, next step {step.name}: {case.message}"
    if view.node is not None and HANDLERS[step].by_admission:
        yield from (f"  {line}" for line in _blocks(cache, case, view.node, breaker, now))
    if view.node is not None and view.node.cordoned_by == case.uid:
        yield (
            f"  the cordon of {case.node} ends with the case, also where somebody else has cordoned it since: "
            f"to keep the node out, label it {names.EXCLUDE}=true"
        )
    if case.claimed and not HANDLERS[step].by_admission:
        yield from (f"  {_line(block)}" for block in view.stops)
    for attempt in case.attempts:
        yield f"  {attempt.template}: {attempt.outcome.value or 'running'} {attempt.message}".rstrip()
    for event in case.timeline[-5:]:
        yield f"  {event.at:%H:%M:%S} {event.reason.value}: {event.message}"


def _blocks(cache: ClusterCache, case: Case, node: Node, breaker: Breaker, now: datetime) -> list[str]:
    """The same guard that admits, asked for this one case."""
    policy = cache.policies.get(case.policy)
    past = cache.cases.by("node", case.node)
    preconditions = guard.preconditions(case, node, policy, past, fleet_context(cache, now), now)
    request = Request(case, node, 0, preconditions)
    admission = guard.admit([request], cache.ledgers(), cache.starts(now - breaker.window), breaker, now)
    lines = [_line(block) for _, blocks in admission.held for block in blocks]
    return lines or ["nothing holds it"]


def _line(block: Block) -> str:
    until = f" (until {block.until:%H:%M:%S} UTC)" if block.until else ""
    return f"held: {block.reason.value}: {block.message}{until}"
