"""Why a node is repaired or not: the same decision as the controller's, written in sentences. Writes nothing."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial

from remediator.clock import Clock
from remediator.controller.blast_looks import look
from remediator.controller.budget_attempts import starts_under
from remediator.controller.cache import ClusterCache
from remediator.controller.case_plan import of_devices
from remediator.controller.case_view import CaseView, case_view
from remediator.controller.fleet import budgets_over, fleet_context, hosted, may_start
from remediator.controller.handlers.case import HANDLERS
from remediator.controller.idle import work_on
from remediator.controller.offer_plan import offered
from remediator.core import beliefs, guard, idle, idle_test, keep_out, lemon, names, new_node, remedy
from remediator.core.admission import Basis, StartRequest, admit
from remediator.core.blast_radius import described, verdict
from remediator.core.breaker import Breaker
from remediator.core.budget_breaker import longest
from remediator.core.case import Block, Case, Phase, release_command
from remediator.core.case_table import CaseStep, Tried, case_step
from remediator.core.confirmation import question
from remediator.core.correlation import under_repair
from remediator.core.decide import Busy, Decision, Handled, Healthy, Start, Unknown, Unselected, Wait, decide
from remediator.core.duration import in_words
from remediator.core.history import held_since
from remediator.core.ladder import Next
from remediator.core.node import Node, Status
from remediator.core.operation import Operation
from remediator.core.orders import cancelled
from remediator.core.places import SHIPPED, ApiNodes
from remediator.core.reasons import Reason
from remediator.core.rejections import PODS_REJECTED
from remediator.core.rma import bundle_place
from remediator.core.runbooks import runbook
from remediator.kube.informers import Informers, OfNode
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client

SECOND_SOURCE = frozenset({Reason.NOT_CONFIRMED, Reason.CONFIRMATION_UNKNOWN})


async def snapshot(
    client: Client, namespaces: names.Namespaces, clock: Clock, api_nodes: ApiNodes = SHIPPED
) -> ClusterCache:
    """Read everything that a decision rests on."""
    return await _read(Informers(client, clock, namespaces), api_nodes)


async def snapshot_of(
    node: str, client: Client, namespaces: names.Namespaces, clock: Clock, api_nodes: ApiNodes = SHIPPED
) -> ClusterCache:
    """Read what concerns one node. All cases only where one that is open is about boards: these may have been moved.

    Definitions of an older version know no field selectors: then everything is read.
    """
    try:
        cache = await _read(OfNode(client, clock, namespaces, node), api_nodes)
    except errors.Invalid:
        return await snapshot(client, namespaces, clock, api_nodes)
    about_boards = any(case.open and case.gpus for case in cache.cases)
    return await _read(OfNode(client, clock, namespaces, node, all_cases=True), api_nodes) if about_boards else cache


async def _read(informers: Informers, api_nodes: ApiNodes) -> ClusterCache:
    cache = ClusterCache(informers, api_nodes)
    await informers.read()
    return cache


async def look_at(cache: ClusterCache, client: Client, node: str, now: datetime) -> None:
    """Read which Pods work on a node, where a case waits for them, and what its repair would end."""
    cache.blast[node] = await look(client, node, cache.namespaces.operations, now)
    for case in cache.cases.by("node", node):
        policy = cache.policy_of(case)
        if case.open and policy is not None and idle.waits(case, policy, now, cache.absences):
            cache.working[case.uid] = await work_on(client, node, cache.namespaces.operations, now)


def explain(cache: ClusterCache, node: Node, breaker: Breaker, now: datetime) -> Iterator[str]:
    """What is decided for one node, what its cases do next, and what holds them, a line each."""
    decision = decide(
        node, cache.policies, cache.cases.by("node", node.name), now, cache.covers, partial(may_start, now)
    )
    yield f"{node.name}: {describe(decision, now)}"
    judgements = beliefs.judged(node, cache.policies, now)
    yield from (f"  {line}" for line in beliefs.believed(node, judgements, now))
    if not isinstance(decision, Unknown) and (doubted := beliefs.grouped(beliefs.doubts(judgements))):
        yield f"  not believed: {'; '.join(doubted)}"
    yield from (f"  {line}" for line in new_node.standing(node, cache.policies, cache.cases.by("node", node.name), now))
    own = cache.inventories.get(node.name)
    tests = [pod for pod in cache.pods if pod.idle_test and pod.tested == node.name]
    tested = own.tested if own is not None else None
    yield from (f"  {line}" for line in idle_test.standing(node, tested, tests, cache.policies))
    if isinstance(decision, Start):
        yield from _before_start(cache, node, decision, breaker, now)
    for case in cache.cases.by("node", node.name):
        if case.open:
            yield from _case_lines(cache, case, breaker, now)
    yield from _history(cache, node)
    rejects = node.conditions.get(PODS_REJECTED)
    if rejects is not None and rejects.status is Status.TRUE:
        yield f"  {PODS_REJECTED} since {rejects.since:%Y-%m-%d %H:%M} UTC: {rejects.message}"
    yield from (f"  {line}" for line in beliefs.standing(judgements))
    for ledger in budgets_over(cache, node, now):
        yield f"  budget {ledger}"
    at_least = "" if cache.whole else "at least "
    count = starts_counted(cache, breaker, now)
    yield f"  breaker of the fleet: {at_least}{count} of {breaker.starts} starts in {in_words(breaker.window)}"
    if cache.paused:
        yield f"  everything is paused: the namespace {cache.namespaces.system} has the annotation {names.PAUSED}"
    for case in cache.cases.by("node", node.name):
        if case.open and not (case.unreadable or case.deleting):
            yield f"  to change it: {remedy.command(case, cache.namespaces.system)}"


def describe(decision: Decision, now: datetime) -> str:
    """A decision in one sentence."""
    match decision:
        case Healthy():
            return "healthy: the conditions of every policy prove it"
        case Unselected():
            return "no policy selects it"
        case Unknown(doubts):
            return f"health is unknown: {'; '.join(beliefs.grouped(doubts))}; nothing starts, nothing ends"
        case Busy(case):
            return f"case {case} is open"
        case Handled(case, policy):
            return f"{policy} holds, but case {case} for it is over; nothing starts until the condition changes"
        case Wait(until, policy):
            return f"{policy} holds; a case opens in {max(0, int((until - now).total_seconds()))} s"
        case Start(_, policy, trigger):
            return f"{policy} holds ({trigger.condition}={trigger.status}, {trigger.reason}); a case opens now"


def starts_counted(cache: ClusterCache, breaker: Breaker, now: datetime) -> int:
    """How many count. Who does not know all cases knows those of the ledgers: a claim counts as a start, too."""
    if cache.whole:
        return len(breaker.recent((start.at for start in cache.starts(now - breaker.window)), now))
    claims = {claim.case: claim.since for ledger in cache.budgets for claim in ledger.claims}
    return len(breaker.recent(claims.values(), now))


def _before_start(cache: ClusterCache, node: Node, decision: Start, breaker: Breaker, now: datetime) -> Iterator[str]:
    """What would hold a case that is not there yet."""
    case = Case(decision.name, "", node.name, node.uid, decision.policy, decision.trigger, now)
    yield from (f"  {line}" for line in _blocks(cache, case, node, breaker, now))
    yield from _at_stake(cache, case)


def _at_stake(cache: ClusterCache, case: Case) -> Iterator[str]:
    """What the first start of a case would end now, or has ended."""
    radius = case.blast if case.attempts else cache.blast.get(case.node, case.blast)
    if radius is not None:
        when = f"its last start ended, as seen at {radius.at:%H:%M:%S}" if case.attempts else "its start would end"
        yield f"  {when}: {described(radius)}"


def _case_lines(cache: ClusterCache, case: Case, breaker: Breaker, now: datetime) -> Iterator[str]:
    if case.unreadable:
        yield f"  case {case.name} cannot be read: it counts as one that holds the node, and nothing is done to it"
        return
    view = case_view(cache, case, now)
    step = case_step(view.observation)
    yield f"  phase {case.phase.value or 'new'}, rung {case.rung + 1}, next step {step.name}: {case.message}"
    if case.deleting:
        yield f"  cancelled: {cancelled(case)}"
    yield from _next(view, step)
    yield from _fault_lines(case)
    if view.node is not None and HANDLERS[step].by_admission:
        yield from (f"  {line}" for line in _blocks(cache, case, view.node, breaker, now))
    yield from _at_stake(cache, case)
    yield from _cordon_lines(case, view.node)
    if view.observation.tried is not Tried.NONE and (devices := of_devices(view)):
        yield f"  {devices}"
    if offer := offered(case):
        yield f"  {offer}"
    elif keep_out.is_out(case):
        yield f"  taken out {keep_out.described(case, now)}; give it back with: remediator put-back {case.node}"
    elif case.phase is Phase.ESCALATED:
        yield f"  once {case.node} is repaired, give it back with: {release_command(case)}"
    if case.claimed and not HANDLERS[step].by_admission:
        yield from (f"  {_line(case, block, now)}" for block in (view.stops if cache.whole else case.blocks))
    if view.operation is not None and view.operation.finished is None:
        yield from _operation_lines(view.operation)
    yield from _history_lines(case)


def _operation_lines(operation: Operation) -> Iterator[str]:
    """What the operation that goes on waits for, where it says so."""
    if operation.blocked:
        yield f"  {operation.left} pods left on {operation.node}; in the way: {operation.blocked}"
    if operation.message:
        yield f"  {operation.template}: {operation.message}"


def _fault_lines(case: Case) -> Iterator[str]:
    """What the case was opened for."""
    condition = case.trigger.condition if case.trigger else ""
    if page := runbook(condition):
        yield f"  what to do about {condition}: {page}"
    if place := bundle_place(case.evidence):
        yield f"  bundle of its evidence: {place}"
    if case.manual:
        asked = f"{case.manual.requested_by or 'a user'} asks for {case.manual.template}"
        yield f"  {asked}: NodeOperation {case.manual.operation}"


def _cordon_lines(case: Case, node: Node | None) -> Iterator[str]:
    """What a user must know who wants the node in or out of service."""
    if node is not None and node.cordoned_by == case.uid:
        yield (
            f"  the cordon of {case.node} ends with the case, also where somebody else has cordoned it since: "
            f"to keep the node out, label it {names.EXCLUDE}=true"
        )
    if case.phase is Phase.ESCALATED and node is not None and _uncordoned(case, node):
        yield (
            f"  a user has uncordoned {case.node}: new work may come to it, though nobody has proven that it is well; "
            f"`kubectl cordon {case.node}` keeps it off"
        )


def _history_lines(case: Case) -> Iterator[str]:
    """Its attempts, and its newest events."""
    for attempt in case.attempts:
        yield f"  {attempt.template}: {attempt.outcome.value or 'running'} {attempt.message}".rstrip()
    for event in case.timeline[-5:]:
        yield f"  {event.at:%H:%M:%S} {event.reason.value}: {event.message}"


def _uncordoned(case: Case, node: Node) -> bool:
    """Whether a node that a case holds by its cordon takes new work all the same."""
    return case.claimed and not node.unschedulable and node.in_service != case.uid


def _next(view: CaseView, step: CaseStep) -> Iterator[str]:
    """What is tried once nothing holds the case, and not before when."""
    policy, following = view.policy, view.next
    if policy is None or not isinstance(following, Next) or not HANDLERS[step].by_admission:
        return
    ladder, rung = policy.ladder, following.rung
    by = f"policy {policy.name}" if policy.name else "the user who asks"
    known = [block.until for block in view.case.blocks if block.until is not None]
    waits = f", not before {max(known):%Y-%m-%d %H:%M:%S} UTC" if known else ""
    yield f"  next: {by} tries {ladder[rung].operation} (rung {rung + 1} of {len(ladder)}){waits}"


def _history(cache: ClusterCache, node: Node) -> Iterator[str]:
    """The earlier cases of the node and of the boards that its open cases are about, the newest last."""
    cases = {case.uid: case for case in cache.cases.by("node", node.name)}
    for case in [case for case in cases.values() if case.open]:
        cases |= {other.uid: other for others in cache.memory.of_gpus(case).values() for other in others}
    for past in lemon.history(case for case in cases.values() if lemon.did_something(case)):
        place = f" on {past.node}" if past.node != node.name else ""
        done = ", ".join(past.operations)
        yield f"  before: {past.ended:%Y-%m-%d %H:%M} UTC {past.policy}{place}: {done}: {past.outcome.value}"


def _blocks(cache: ClusterCache, case: Case, node: Node, breaker: Breaker, now: datetime) -> list[str]:
    """The same guard that admits, asked for this one case."""
    policy = cache.policy_of(case)
    if not cache.whole:
        return _as_told(cache, case, node, now)
    past = cache.cases.by("node", case.node)
    preconditions = guard.preconditions(case, node, policy, past, fleet_context(cache, now), now)
    limit = policy.max_blast_radius if policy else None
    blast = verdict(case, limit, cache.blast.get(case.node), now) if limit and not preconditions else None
    request = StartRequest(case, node, 0, preconditions, blast=blast)
    starts = cache.starts(now - longest(cache.budgets, breaker.window))
    ledgers = replace(cache.ledgers(), starts=starts_under(cache, starts))
    repaired = under_repair(cache.unfinished)
    basis = Basis(ledgers, [start.at for start in starts], breaker, now, under_repair=repaired)
    admission = admit([request], basis)
    lines = [_line(case, block, now) for _, blocks in admission.held for block in blocks]
    if not lines:  # only who has watched a Lease can tell that it has expired: the controller says what it knows
        lines = [_line(case, block, now) for block in case.blocks if block.reason is Reason.LEASE_RENEWED]
    if not lines and (asked := question(policy, case.node)):
        shown = [_line(case, block, now) for block in case.blocks if block.reason in SECOND_SOURCE]
        return [*shown, f"before anything is done the controller asks Prometheus: {asked.query}"]
    if not lines and policy is not None and policy.require_spare_gpus and not case.claimed:
        return ["nothing holds it but, perhaps, spare GPUs, which only the controller counts: see its status.blockedBy"]
    return lines or ["nothing holds it"]


def _as_told(cache: ClusterCache, case: Case, node: Node, now: datetime) -> list[str]:
    """What holds a case by its status, which the controller that leads keeps; what stops one that is not there yet."""
    policy = cache.policy_of(case)
    stops = guard.stops(case, node, policy, cache.paused, hosted(cache, node.name), now)
    lines = [_line(case, block, now) for block in case.blocks or stops]
    asked = question(policy, case.node)
    if asked and not any(block.reason not in SECOND_SOURCE for block in case.blocks):
        lines.append(f"before anything is done the controller asks Prometheus: {asked.query}")
    return lines or ["nothing holds it"]


def _line(case: Case, block: Block, now: datetime) -> str:
    """What holds a case, since when, where its status shows that already, and until when, where that is known."""
    times = []
    if any(shown.reason is block.reason for shown in case.blocks):
        since = held_since(case, block.reason)
        times.append(f"for {in_words(now - since)}, since {since:%Y-%m-%d %H:%M:%S} UTC")
    if block.until:
        times.append(f"until {block.until:%Y-%m-%d %H:%M:%S} UTC")
    return f"held: {block.reason.value}: {block.message}" + (f" ({'; '.join(times)})" if times else "")
