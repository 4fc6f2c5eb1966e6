"""Why a node is, or is not, being repaired: the decision itself, said to a person. Writes nothing."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from remediator.controller import observe
from remediator.controller.cache import ClusterCache, Store
from remediator.core import evidence, guard, names
from remediator.core.breaker import Breaker, starts
from remediator.core.case import Block, Case
from remediator.core.decide import Busy, Decision, Handled, Healthy, Start, Unknown, Unselected, Wait, decide
from remediator.core.guard import Request
from remediator.core.lifecycle import Step, case_step
from remediator.core.node import Node
from remediator.kube import api
from remediator.kube.api import decode as codec
from remediator.kube.api.builtin import NAMESPACE, NODE, POD
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind


async def snapshot(client: Client, namespaces: names.Namespaces) -> ClusterCache:
    """Read everything that a decision rests on."""
    cache = ClusterCache(lambda: 0.0, namespaces)
    reads: tuple[tuple[Store[Any], Kind[Any], Callable[[Any], Any]], ...] = (
        (cache.nodes, NODE, codec.node),
        (cache.policies, api.POLICY, codec.remediation_policy),
        (cache.templates, api.TEMPLATE, codec.template),
        (cache.budgets, api.BUDGET, codec.disruption_budget),
        (cache.cases, api.CASE, codec.remediation_case),
        (cache.operations, api.OPERATION, codec.operation),
    )
    for store, kind, read in reads:
        await _fill(client, store, kind, read)
    replicas = await client.list_all(POD, namespace=namespaces.system, labels=names.CONTROLLER_LABELS)
    cache.replicas.attach({found.metadata.name: codec.operation_pod(found) for found in replicas})
    cache.paused = await _paused(client, namespaces.system)
    return cache


async def _fill(client: Client, store: Store[Any], kind: Kind[Any], read: Callable[[Any], Any]) -> None:
    found = {wire.metadata.name: read(wire) for wire in await client.list_all(kind)}
    store.attach(found)
    for name, fact in found.items():
        store.changed(name, None, fact)


async def _paused(client: Client, namespace: str) -> bool:
    try:
        return codec.paused(await client.get(NAMESPACE, namespace))
    except errors.NotFound:
        return False


def explain(cache: ClusterCache, node: Node, breaker: Breaker, now: datetime) -> Iterator[str]:
    """The story of one node, a line each: what was decided, what its case does, what stands in the way."""
    decision = decide(node, cache.policies, cache.cases.by("node", node.name), now)
    yield f"{node.name}: {describe(decision, now)}"
    if isinstance(decision, Start):
        yield from _ahead(cache, node, decision, breaker, now)
    for case in cache.cases.by("node", node.name):
        if case.open:
            yield from _story(cache, case, breaker, now)
    for policy in sorted(cache.policies, key=lambda policy: policy.name):
        if policy.selects(node):
            yield f"  policy {policy.name} ({policy.mode.value}) sees {evidence.judge(node, policy, now).health.name}"
    for ledger in observe.budgets_over(cache, node):
        yield f"  budget {ledger}"


def describe(decision: Decision, now: datetime) -> str:
    """A decision in one sentence."""
    match decision:
        case Healthy():
            return "healthy: every policy sees clearly that it is well"
        case Unselected():
            return "no policy selects it"
        case Unknown(doubts):
            return f"cannot tell: {'; '.join(map(str, doubts))}; nothing starts, nothing ends"
        case Busy(case):
            return f"case {case} is open"
        case Handled(case, policy):
            return f"{policy} holds, but case {case} for it is over; nothing starts until the condition changes"
        case Wait(until, policy):
            return f"{policy} holds; a case opens in {max(0, int((until - now).total_seconds()))} s"
        case Start(_, policy, trigger):
            return f"{policy} holds ({trigger.condition}={trigger.status}, {trigger.reason}); a case opens now"


def _ahead(cache: ClusterCache, node: Node, decision: Start, breaker: Breaker, now: datetime) -> Iterator[str]:
    """What would stand against a case that is not there yet."""
    case = Case(decision.name, "", node.name, node.uid, decision.policy, decision.trigger, now)
    yield from (f"  {line}" for line in _blocks(cache, case, node, breaker, now))


def _story(cache: ClusterCache, case: Case, breaker: Breaker, now: datetime) -> Iterator[str]:
    view = observe.case_view(cache, case, now)
    step = case_step(view.observation)
    yield f"  phase {case.phase.value or 'new'}, rung {case.rung + 1}, next step {step.name}: {case.message}"
    if view.node is not None and step in (Step.CLAIM, Step.START):
        yield from (f"  {line}" for line in _blocks(cache, case, view.node, breaker, now))
    for attempt in case.attempts:
        yield f"  {attempt.template}: {attempt.outcome.value or 'running'} {attempt.message}".rstrip()
    for moment in case.timeline[-5:]:
        yield f"  {moment.at:%H:%M:%S} {moment.reason.value}: {moment.message}"


def _blocks(cache: ClusterCache, case: Case, node: Node, breaker: Breaker, now: datetime) -> list[str]:
    """The same guard that admits, asked for this one case."""
    policy = cache.policies.get(case.policy)
    past = cache.cases.by("node", case.node)
    alone = guard.preconditions(case, node, policy, past, observe.fleet_context(cache, now), now)
    request = Request(case, node, 0, alone)
    ledgers = {ledger.name: ledger for ledger in cache.budgets}
    admission = guard.admit([request], ledgers, cache.counted(), starts(cache.cases), breaker, now)
    held = [found for _, blocks in admission.held for found in blocks]
    return [_said(found) for found in held] or ["nothing stands in the way"]


def _said(found: Block) -> str:
    until = f" (until {found.until:%H:%M:%S} UTC)" if found.until else ""
    return f"held: {found.reason.value}: {found.message}{until}"
