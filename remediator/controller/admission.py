"""One pass over all cases that want to start: checks budgets, breaker and guards, writes ledgers in batches.

Only this pass admits cases, and only one of it runs at a time, so each admission sees the admissions before it. If two
replicas believe that they lead, the resourceVersions of the ledgers let only one of them write. What else is to be
written of a claim, or of a case that is held, is left to `records`.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from remediator import metrics
from remediator.controller.cache import ClusterCache
from remediator.controller.case_view import CaseView, case_view, ledgers_of
from remediator.controller.effects import Done, EffectResult, GaveUp, Plan, Retry, SaveCase
from remediator.controller.fleet import causes, correlated, fleet_context
from remediator.controller.gone import GoneCases
from remediator.controller.handlers.case import HANDLERS
from remediator.controller.ledgers import Ledgers
from remediator.controller.perform import PAUSE_SECONDS, Performer
from remediator.controller.records import Records, considered
from remediator.controller.withdrawals import withdrawn
from remediator.core import budget, guard
from remediator.core.breaker import Breaker
from remediator.core.case import Block, Case
from remediator.core.case_table import Step, case_step
from remediator.core.census import BudgetIndex
from remediator.core.correlation import Burst, Causes, SharedCause
from remediator.core.guard import Admission, AdmissionFold, FleetContext, Request
from remediator.core.reasons import Reason
from remediator.kube import api
from remediator.kube.runtime.turns import sliced
from remediator.kube.wire.errors import ApiError
from remediator.metrics import Contained

AT_ONCE = 16
SLICE = 25  # cases between two turns of the loop
# Holds that end without any event of the case itself, and how many seconds later they are looked at again.
WITHOUT_EVENT = frozenset({Reason.HEALTH_UNKNOWN, Reason.PAUSED, Reason.SHARED_CAUSE})
LOOK_AGAIN = 30.0
FAILED = Retry(60.0, "it failed; the controller's log says why")
STOPPED = Retry(0.2, "it was stopped after it had been admitted")
Read = Callable[[str], Awaitable[object]]
Failed = Mapping[str, Retry | GaveUp]  # ledgers that could not be written, by name


@dataclass(frozen=True, slots=True)
class PendingAdmission:
    """One request with the view and the step it was made from."""

    request: Request
    view: CaseView
    step: Step


class Admissions:
    """The admission pass."""

    def __init__(
        self, cache: ClusterCache, performer: Performer, breaker: Breaker, monotonic: Callable[[], float]
    ) -> None:
        self.cache, self.performer, self.breaker = cache, performer, breaker
        self._gone_cases = GoneCases(performer, monotonic)
        self.ledgers = Ledgers(cache, performer, monotonic)
        self.records = Records()
        self._at_once = asyncio.Semaphore(AT_ONCE)

    def clear(self) -> None:
        """Forget what was left to be written, and which claims were not used: another leader may use them now."""
        self.records.clear()
        self.ledgers.unused.clear()

    async def run(self, now: datetime) -> float | None:
        """Admit what may start; returns seconds until something may change by itself.

        A ledger that cannot be written holds the nodes that it counts, and no others.
        """
        failed, ask_again = await self.ledgers.update(now)
        waits = [*_waits(failed.values()), *await self._admit(failed, now)]
        return min(waits if ask_again is None else [*waits, ask_again], default=None)

    async def _admit(self, failed: Failed, now: datetime) -> list[float]:
        """Admit beside the ledgers that failed; seconds until things that may change.

        Cases are looked at in slices, others run in between. What each decision rests on is compared again at the
        moment of the decision, and all are decided on one snapshot of the ledgers, under whose versions they are
        written.
        """
        waiting = await self._waiting(now)
        seen = {view.case.name: considered(view.case, view.node) async for view, _ in sliced(waiting, SLICE)}
        self.records.consider(seen, self.cache)
        if not waiting:
            self.records.hold(())
            return []
        read, unread = await self._read_partly_claimed(waiting)
        if read:
            waiting = [(view, step) for view, step in await self._waiting(now) if view.case.uid not in unread]
        fleet = fleet_context(self.cache, now, await self._causes(now))
        gone, ask_again = await self._gone_cases.among(self._unknown(waiting, fleet, now))
        fleet = replace(fleet, gone=gone)
        waiting = [(replace(view, gone=gone), step) async for view, step in sliced(waiting, SLICE)]
        asking = await self._all_pending(waiting, fleet, now)
        await self.cache.nodes_by.refresh()
        ledgers = self.cache.ledgers()
        since = now - self.breaker.window
        starts = [*self.cache.starts(since), *self.records.starts(self.cache, since)]
        fold = AdmissionFold(ledgers, starts, self.breaker, now)
        pending = await self._decide(fold, asking, fleet, failed, now)
        admission = fold.admission()
        if admission.admitted and await self.performer.paused():
            return [PAUSE_SECONDS]  # whose watch has not told of it yet: nothing is entered and no node marked
        refused = await self._enter(ledgers.budgets, admission)
        admission = _entered(admission, ledgers.index, refused)
        self.records.hold([(request.case, blocks) for request, blocks in admission.held])
        results = await self._carry_out(pending, admission, fleet, now)
        back = await withdrawn(admission.held, fold.entered.keys() - self.ledgers.unused, self.cache, self.performer)
        self.ledgers.unused |= back | _stopped(admission, results) - fold.entered.keys()
        waits = [*_waits((*unread.values(), *refused.values(), *results)), *_until_holds_end(admission, now)]
        waits += [STOPPED.after] if back else []
        return waits if ask_again is None else [*waits, ask_again]

    async def _causes(self, now: datetime) -> Causes:
        bursts: dict[SharedCause, tuple[Burst, ...]] = {}
        async for policy in sliced(correlated(self.cache), 1):
            bursts |= causes(self.cache, policy, now)
        return bursts

    async def _all_pending(
        self, waiting: Sequence[tuple[CaseView, Step]], fleet: FleetContext, now: datetime
    ) -> list[PendingAdmission]:
        """The requests, in the order in which they are decided."""
        pending: list[PendingAdmission] = []
        async for view, step in sliced(waiting, SLICE):
            with Contained("admission", view.case.name):
                pending.append(self._pending(view, step, fleet, now))
        return sorted(pending, key=lambda pending: pending.request.order)

    async def _decide(
        self,
        fold: AdmissionFold,
        waiting: Sequence[PendingAdmission],
        fleet: FleetContext,
        failed: Failed,
        now: datetime,
    ) -> dict[str, PendingAdmission]:
        """Decide one request after the other. Left out are those that no longer ask, and those whose ledger changes."""
        decided: dict[str, PendingAdmission] = {}
        async for pending in sliced(waiting, SLICE):
            with Contained("admission", pending.request.case.name):
                asking = self._as_it_is_now(pending, fleet, now)
                unwritten = _unwritten(asking.request, fold.ledgers.index, failed) if asking else {}
                if asking is None or _moves(unwritten):
                    continue
                blocks = (*asking.request.blocks, *_refusals(unwritten))
                fold.decide(replace(asking.request, blocks=blocks))
                decided[asking.request.case.uid] = asking
        return decided

    def _as_it_is_now(self, pending: PendingAdmission, fleet: FleetContext, now: datetime) -> PendingAdmission | None:
        """The request, made again where case, node, policy or pause have moved since; None where it asks no more."""
        view = pending.view
        case = self.cache.cases.get(view.case.name)
        node, policy = self.cache.nodes.get(view.case.node), self.cache.policies.get(view.case.policy)
        if (case, node, policy) == (view.case, view.node, view.policy) and self.cache.paused == fleet.paused:
            return pending
        if case is None or case.uid != view.case.uid or not _asks(case):
            return None
        newer = replace(case_view(self.cache, case, now), gone=view.gone)
        step = case_step(newer.observation)
        if newer.node is None or not HANDLERS[step].by_admission:
            return None
        return self._pending(newer, step, replace(fleet, paused=self.cache.paused), now)

    async def _enter(self, budgets: Mapping[str, budget.Budget], admission: Admission) -> Failed:
        """Write what each ledger gains; those that could not be written."""
        results = {
            name: await self.ledgers.write(budgets[name], budget.with_claims(budgets[name], admission.claims[name]))
            for name in sorted(admission.claims)
        }
        return {name: result for name, result in results.items() if not isinstance(result, Done)}

    async def _waiting(self, now: datetime) -> list[tuple[CaseView, Step]]:
        """The open cases that request admission, our finalizer on them. One that fails stops no other."""
        waiting: list[tuple[CaseView, Step]] = []
        async for case in sliced(self.cache.unfinished, SLICE):
            if _asks(case) and not self.records.has_claim(case):
                with Contained("admission", case.name):
                    view = case_view(self.cache, case, now)
                    waiting.append((view, case_step(view.observation)))
        return [(view, step) for view, step in waiting if HANDLERS[step].by_admission and view.node is not None]

    async def _read_partly_claimed(self, waiting: Sequence[tuple[CaseView, Step]]) -> tuple[bool, dict[str, Retry]]:
        """A claim that was cut short is completed only after node, case, policy and ledgers were read live, in order.

        Returns whether anything was read, and the cases, by uid, of which that failed.
        """
        nodes, cases, policies, ledgers = (defaultdict[str, list[str]](list) for _ in range(4))
        for case in (view.case for view, step in waiting if step is Step.CLAIM and self._partly_claimed(view)):
            nodes[case.node].append(case.uid)
            cases[case.name].append(case.uid)
            policies[case.policy].append(case.uid)
            for name in ledgers_of(self.cache, case):
                ledgers[name].append(case.uid)
        unread = await self._read_all(self.performer.node, nodes)
        unread |= await self._read_all(partial(self.performer.read, api.CASE), cases)
        unread |= await self._read_all(self.performer.policy, policies)
        unread |= await self._read_all(partial(self.performer.read, api.BUDGET), ledgers)
        return bool(cases), unread

    def _partly_claimed(self, view: CaseView) -> bool:
        """Whether something was written of a claim that the case does not say yet."""
        tainted = view.node is not None and view.node.case_uid == view.case.uid
        return tainted or bool(self.cache.entries.of(view.case.uid))

    def _unknown(self, waiting: Sequence[tuple[CaseView, Step]], fleet: FleetContext, now: datetime) -> set[str]:
        """Uids on nodes that are to be claimed, of cases that the cache does not know, where nothing else holds."""
        unknown: set[str] = set()
        for view, step in waiting:
            marks = view.node.marks if view.node and step is Step.CLAIM else ()
            uids = {uid for uid in marks if self.cache.case(uid) is None}
            if uids:
                with Contained("admission", view.case.name):
                    free = self._pending(view, step, replace(fleet, gone=frozenset(uids)), now)
                    unknown |= set() if free.request.blocks else uids
        return unknown

    async def _read_all(self, read: Read, needed: Mapping[str, Iterable[str]]) -> dict[str, Retry]:
        """Read what has these names, some at once. Those that need something that cannot be read, by uid."""
        results = await asyncio.gather(*(self._read(read, name) for name in needed))
        failed = ((uids, result) for uids, result in zip(needed.values(), results, strict=True) if result is not None)
        return {uid: result for uids, result in failed for uid in uids}

    async def _read(self, read: Read, name: str) -> Retry | None:
        async with self._at_once:
            with Contained("admission", name):
                try:
                    await read(name)
                except ApiError as error:
                    return Retry(error.retry_after or 2.0, str(error))
                return None
        return FAILED

    def _pending(self, view: CaseView, step: Step, fleet: FleetContext, now: datetime) -> PendingAdmission:
        case, node, policy = view.case, view.node, view.policy
        if node is None:
            raise ValueError(f"case {case.name} requests admission without a node")
        past = self.cache.cases.by("node", case.node)
        blocks = guard.preconditions(case, node, policy, past, fleet, now)
        severity = policy.severity.rank if policy else 0
        return PendingAdmission(Request(case, node, severity, blocks), view, step)

    async def _carry_out(
        self, pending: Mapping[str, PendingAdmission], admission: Admission, fleet: FleetContext, now: datetime
    ) -> list[EffectResult]:
        """Start what was admitted, some at once. One that fails is tried again; the others go on."""
        starts = [self._bounded(pending[request.case.uid], fleet, now) for request in admission.admitted]
        results = await asyncio.gather(*starts, return_exceptions=True)
        return [FAILED if isinstance(result, BaseException) else result for result in results]

    async def _bounded(self, pending: PendingAdmission, fleet: FleetContext, now: datetime) -> EffectResult:
        """Start it when its turn comes, unless it would be held by then: until its turn, a user may have stopped it."""
        async with self._at_once:
            with Contained("admission", pending.request.case.name):
                asking = self._as_it_is_now(pending, fleet, now)
                if asking is None or asking.request.blocks:
                    return STOPPED
                self.ledgers.unused.discard(pending.request.case.uid)
                return await self._start(pending, now)
        return FAILED

    async def _start(self, pending: PendingAdmission, now: datetime) -> EffectResult:
        """An admitted case claims its node, or starts its next attempt."""
        plan = HANDLERS[pending.step].plan(pending.view, now)
        if pending.step is not Step.CLAIM:
            return await self.performer.all(plan)
        result = await self.performer.all(effect for effect in plan if not isinstance(effect, SaveCase))
        if isinstance(result, Done):
            self._claimed(plan, pending.request.case, now)
        return result

    def _claimed(self, plan: Plan, case: Case, now: datetime) -> None:
        """The marks are on the node: that the case holds it is recorded when no claim waits."""
        for effect in plan:
            if isinstance(effect, SaveCase):
                self.records.claim(effect, now)
        if case.trigger:
            metrics.CLAIM_SECONDS.observe(max(0.0, (now - case.trigger.since).total_seconds()))


def _asks(case: Case) -> bool:
    """Whether the case may request admission: what holds a node must not vanish."""
    return case.open and case.finalizer and not case.unreadable


def _unwritten(request: Request, index: BudgetIndex, failed: Failed) -> Failed:
    """The ledgers that the case needs and that failed; one that holds its node needs none."""
    if request.case.claimed or not failed:
        return {}
    return {name: failed[name] for name in index.over(request.node) if name in failed}


def _moves(unwritten: Failed) -> bool:
    """Whether a ledger changes at this moment: nothing is worth telling of that."""
    return any(isinstance(result, Retry) for result in unwritten.values())


def _refusals(unwritten: Failed) -> tuple[Block, ...]:
    return tuple(
        guard.block(Reason.BUDGET_REFUSED, f"budget {name}: {result.why}") for name, result in unwritten.items()
    )


def _entered(admission: Admission, index: BudgetIndex, refused: Failed) -> Admission:
    """What is left of an admission where some ledgers could not be written: who needs a refused one is held."""
    admitted: list[Request] = []
    held = list(admission.held)
    for request in admission.admitted:
        unwritten = _unwritten(request, index, refused)
        if not unwritten:
            admitted.append(request)
        elif not _moves(unwritten):
            held.append((request, _refusals(unwritten)))
    return replace(admission, admitted=tuple(admitted), held=tuple(held))


def _stopped(admission: Admission, results: Sequence[EffectResult]) -> set[str]:
    """The uids of cases of which nothing was sent to the API server but entries."""
    return {request.case.uid for request, result in zip(admission.admitted, results, strict=True) if result is STOPPED}


def _waits(results: Iterable[EffectResult]) -> list[float]:
    """Seconds until what was not done is tried again."""
    return [result.after for result in results if not isinstance(result, Done)]


def _until_holds_end(admission: Admission, now: datetime) -> list[float]:
    """Seconds until each hold that ends by itself."""
    blocks = [block for _, blocks in admission.held for block in blocks]
    timed = [max(1.0, (block.until - now).total_seconds()) for block in blocks if block.until]
    return [*timed, *(LOOK_AGAIN for block in blocks if block.reason in WITHOUT_EVENT)]
