"""One pass over all cases that want to start: checks budgets, breaker and guards, writes ledgers in batches.

Only this pass admits cases, and only one of it runs at a time, so each admission sees the admissions before it. If two
replicas believe that they lead, the resourceVersions of the ledgers let only one of them write. What else is to be
written of a claim, or of a case that is held, is left to `records`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from remediator import metrics
from remediator.controller import blast_looks
from remediator.controller.blast_looks import Looks, NobodyLooks
from remediator.controller.budget_attempts import starts_under
from remediator.controller.cache import ClusterCache
from remediator.controller.case_view import CaseView
from remediator.controller.confirmations import UNANSWERED, Confirmations
from remediator.controller.criteria import of_policies
from remediator.controller.effects import Done, EffectResult, Plan, Retry, SaveCase
from remediator.controller.fleet import causes, correlated, fleet_context, recent_cases
from remediator.controller.gone import GoneCases
from remediator.controller.handlers.case import HANDLERS
from remediator.controller.idle import IdleLooks
from remediator.controller.kubelet_leases import KubeletLeases
from remediator.controller.ledgers import Ledgers
from remediator.controller.live_reads import FAILED, LiveReads, unread
from remediator.controller.node_leases import NodeLeases
from remediator.controller.pending import SLICE, PendingAdmission, PendingAdmissions
from remediator.controller.perform import PAUSE_SECONDS, Performer
from remediator.controller.records import Records, considered
from remediator.controller.unwritten import Failed, entered, moves, refusals, unwritten
from remediator.controller.waits import until_holds_end, waits_of
from remediator.controller.withdrawals import withdrawn
from remediator.core import budget
from remediator.core.admission import Admission, AdmissionFold, Basis
from remediator.core.breaker import Breaker
from remediator.core.budget_breaker import longest
from remediator.core.case import Case
from remediator.core.case_table import CaseStep
from remediator.core.correlation import Burst, Causes, SharedCause, under_repair
from remediator.core.guard import FleetContext
from remediator.core.quiet import QuietRule
from remediator.core.spare import leaving_nodes
from remediator.kube.api.builtin import NAMESPACE
from remediator.kube.runtime.turns import both, sliced
from remediator.kube.wire.errors import ApiError
from remediator.metrics import Contained

AT_ONCE = 16
STOPPED = Retry(0.2, "it was stopped after it had been admitted")


class _Read(NamedTuple):
    """What a pass has read. `failed`: what could not be read; `again`: seconds until things are to be read again."""

    asking: Sequence[PendingAdmission]
    fleet: FleetContext
    failed: Sequence[Retry]
    again: Sequence[float]


class _Written(NamedTuple):
    """What a pass has written. `refused`: what no ledger took; `stop`: why no node is marked now."""

    admission: Admission
    refused: Failed
    stop: Retry | None


class Admissions:
    """The admission pass."""

    def __init__(
        self,
        cache: ClusterCache,
        performer: Performer,
        breaker: Breaker,
        monotonic: Callable[[], float],
        confirmations: Confirmations | None = None,
        leases: KubeletLeases | None = None,
        looks: Looks | None = None,
        node_leases: NodeLeases | None = None,
        quiet: QuietRule | None = None,
    ) -> None:
        """`confirmations`: what the second sources of policies say; None where nobody can be asked. `looks`: at what
        starts would end; without, nobody can tell. `node_leases`: what other systems know us by; None without any.
        `quiet`: how long criteria that are new are only shown.
        """
        self.leases = leases or KubeletLeases(performer.client, monotonic)
        self.cache, self.performer, self.breaker = cache, performer, breaker
        self._node_leases, self._quiet = node_leases, quiet or QuietRule()
        self.confirmations = confirmations or Confirmations()
        self._gone_cases = GoneCases(performer, monotonic)
        self.ledgers = Ledgers(cache, performer, monotonic)
        self.records = Records()
        self.looks = looks or NobodyLooks()
        self._idle = IdleLooks(cache, performer.client)
        self.pending = PendingAdmissions(cache, self.records, self.looks)
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._reads = LiveReads(cache, performer, self._at_once)
        self._pause_unread = False  # the pause could not be read live

    def clear(self) -> None:
        """Forget what was left to be written, which claims were not used (another leader may use them), and Leases."""
        self.records.clear()
        self.ledgers.clear()
        self.leases.clear()

    async def run(self, now: datetime) -> float | None:
        """Admit what may start; returns seconds until something may change by itself.

        A ledger that cannot be written holds the nodes that it counts, and no others.
        """
        failed, ask_again = await self.ledgers.update(now)
        waits = [*waits_of(failed.values()), *await self._admit(failed, now)]
        return min(waits if ask_again is None else [*waits, ask_again], default=None)

    async def _admit(self, failed: Failed, now: datetime) -> list[float]:
        """Admit beside the ledgers that failed; seconds until things that may change.

        Cases are looked at in slices, others run in between. What each decision rests on is compared again at the
        moment of the decision, and all are decided on one snapshot of the ledgers, under whose versions they are
        written.
        """
        waiting = await self.pending.waiting(now)
        seen = {view.case.name: considered(view.case, view.node) async for view, _ in sliced(waiting, SLICE)}
        self.records.consider(seen, self.cache)
        if not waiting:
            return self._nobody_waits()
        read = await self._read(waiting, now)
        basis = self._basis(read.asking, read.fleet, now)
        fold = AdmissionFold(basis)
        pending = await self._decide(fold, read.asking, read.fleet, failed, now)
        self.confirmations.want(fold.questions)
        self.looks.want(request.case.node for request in fold.unseen)
        written = await self._write(basis, fold.admission())
        results = await self._carry_out(written, pending, read.fleet, now)
        back = await self._take_back(written.admission, fold.ledgers.entered.keys(), results)
        tried = (*read.failed, *written.refused.values(), *results, written.stop or Done())
        return [*read.again, *waits_of(tried), *until_holds_end(written.admission, now), *_soon(fold, back)]

    async def _write(self, basis: Basis, admission: Admission) -> _Written:
        """Enter who is admitted in the ledgers, and remember who is held."""
        if admission.admitted and self._pause_unread:  # nothing more is entered before that has an answer, or raises
            await self.performer.paused()
            self._pause_unread = False
        refused, stop = await both(self._enter(basis.ledgers.budgets, admission), self._stop(admission))
        admission = entered(admission, basis.ledgers.index, refused)
        self.records.hold([(request.case, blocks) for request, blocks in admission.held], blast_looks.shown(admission))
        return _Written(admission, refused, stop)

    async def _take_back(self, admission: Admission, entries: Set[str], results: Sequence[EffectResult]) -> set[str]:
        """The uids of cases whose entries are taken back, since they were held after they had been entered."""
        back = await withdrawn(admission.held, entries - self.ledgers.unused, self.cache, self.performer)
        self.ledgers.unused |= back | _stopped(admission, results) - entries
        return back

    async def _read(self, waiting: Sequence[tuple[CaseView, CaseStep]], now: datetime) -> _Read:
        """What the decisions rest on, budgets apart: live where a watch may not have told of it yet."""
        read, not_read = await self._reads.partly_claimed(waiting)
        if read:
            waiting = [(view, step) for view, step in await self.pending.waiting(now) if view.case.uid not in not_read]
        self.looks.give_up_late()
        look_again = await self._idle.look((view for view, step in waiting if step is CaseStep.START), now)
        fleet, ask_again = await self._fleet(waiting, now)
        if fleet.gone:
            waiting = [(replace(view, gone=fleet.gone), step) async for view, step in sliced(waiting, SLICE)]
        asking = await self.pending.all(waiting, fleet, now)
        await self.cache.nodes_by.refresh()
        again = [seconds for seconds in (look_again, ask_again) if seconds is not None]
        return _Read(asking, fleet, [*not_read.values()], again)

    def _nobody_waits(self) -> list[float]:
        """Forget what the last pass has left for those that waited."""
        self.records.hold(())
        self.confirmations.want(())
        self.looks.want(())
        return []

    async def _fleet(
        self, waiting: Sequence[tuple[CaseView, CaseStep]], now: datetime
    ) -> tuple[FleetContext, float | None]:
        """What is known of the fleet, of cases that are gone and of Leases; seconds until such cases are read again."""
        fleet = fleet_context(self.cache, now, await self._causes(now))
        fleet = replace(fleet, criteria=of_policies(self.cache, self._quiet, now))
        gone, ask_again = await self._gone_cases.among(self.pending.unknown(waiting, fleet, now))
        fleet = replace(fleet, gone=gone)
        leases = await self.leases.among(self.pending.silent(waiting, fleet, now))
        return replace(fleet, dead=replace(fleet.dead, leases=leases)), ask_again

    def _basis(self, asking: Sequence[PendingAdmission], fleet: FleetContext, now: datetime) -> Basis:
        """What all who ask are judged by: one snapshot, so nothing is awaited in it."""
        since = now - longest(self.cache.budgets, self.breaker.window)
        starts = [*self.cache.starts(since), *self.records.starts(self.cache, since)]
        cases = self.records.as_claimed(self.cache.unfinished)
        return Basis(
            replace(self.ledgers.as_of(now), starts=starts_under(self.cache, starts)),
            [start.at for start in starts],
            self.breaker,
            now,
            fleet.places,
            self.confirmations.answers(pending.request.question for pending in asking),
            under_repair(cases),
            self.cache.spare,
            [node for name in leaving_nodes(cases) if (node := self.cache.nodes.get(name))],
        )

    async def _causes(self, now: datetime) -> Causes:
        bursts: dict[SharedCause, tuple[Burst, ...]] = {}
        recent = recent_cases(self.cache, now)
        async for policy in sliced(correlated(self.cache), 1):
            bursts |= causes(self.cache, policy, recent, now)
        return bursts

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
                asking = self.pending.as_it_is_now(pending, fleet, now)
                missing = unwritten(asking.request, fold.ledgers.index, failed) if asking else {}
                if asking is None or moves(missing):
                    continue
                request = asking.request
                if missing:
                    request = replace(request, blocks=(*request.blocks, *refusals(missing)))
                fold.decide(request)
                decided[asking.request.case.uid] = asking
        return decided

    async def _enter(self, budgets: Mapping[str, budget.Budget], admission: Admission) -> Failed:
        """Write what each ledger gains; those that could not be written."""
        results = {
            name: await self.ledgers.write(budgets[name], budget.with_claims(budgets[name], admission.claims[name]))
            for name in sorted(admission.claims)
        }
        return {name: result for name, result in results.items() if not isinstance(result, Done)}

    async def _stop(self, admission: Admission) -> Retry | None:
        """Why no node is marked now, read live: a pause whose watch has not told of it yet, or nobody can tell.

        It is read beside the ledgers, since only nodes wait for it: entries that come of it go with the next pass,
        whose cache knows of the pause.
        """
        try:
            if not admission.admitted or not await self.performer.paused():
                return None
            await self.performer.read(NAMESPACE, self.cache.namespaces.system)
        except ApiError as error:
            self._pause_unread = True
            return Retry(error.retry_after or 2.0, str(error))
        return Retry(PAUSE_SECONDS, "all new work is paused")

    async def _carry_out(
        self, written: _Written, pending: Mapping[str, PendingAdmission], fleet: FleetContext, now: datetime
    ) -> list[EffectResult]:
        """Start what was admitted, some at once. One that fails is tried again; the others go on."""
        if written.stop is not None:
            return [STOPPED for _ in written.admission.admitted]
        starts = [self._bounded(pending[request.case.uid], fleet, now) for request in written.admission.admitted]
        results = await asyncio.gather(*starts, return_exceptions=True)
        return [FAILED if isinstance(result, BaseException) else result for result in results]

    async def _bounded(self, pending: PendingAdmission, fleet: FleetContext, now: datetime) -> EffectResult:
        """Start it when its turn comes, unless it would be held by then: until its turn, a user may have stopped it.

        What a node shows is read before an attempt begins: its watch may be silent when the fault goes.
        """
        async with self._at_once:
            with Contained("admission", pending.request.case.name):
                if pending.step is CaseStep.START:  # a claim reads its node by itself
                    failed = await unread(self.performer.node, pending.request.node.name)
                    if failed is not None:
                        return failed
                asking = self.pending.as_it_is_now(pending, fleet, now)
                if asking is None or asking.request.blocks or await self._leased(asking):
                    return STOPPED
                self.ledgers.unused.discard(pending.request.case.uid)
                return await self._start(pending, now)
        return FAILED

    async def _leased(self, pending: PendingAdmission) -> bool:
        """Whether the Lease of the node is not ours: another system was faster, or nobody can tell."""
        case, node = pending.request.case, pending.request.node
        return self._node_leases is not None and await self._node_leases.take(case, node) is not None

    async def _start(self, pending: PendingAdmission, now: datetime) -> EffectResult:
        """An admitted case claims its node, or starts its next attempt."""
        plan = HANDLERS[pending.step].plan(pending.view, now)
        if pending.step is not CaseStep.CLAIM:
            return await self.performer.all(plan)
        result = await self.performer.all(effect for effect in plan if not isinstance(effect, SaveCase))
        self.looks.forget(pending.request.node.name)
        if isinstance(result, Done):
            self._claimed(plan, pending.request.case, now)
        return result

    def _claimed(self, plan: Plan, case: Case, now: datetime) -> None:
        """The marks are on the node: that the case holds it is recorded when no claim waits."""
        for effect in plan:
            if isinstance(effect, SaveCase):
                self.records.claim(effect, now)
        if case.trigger:
            waited = max(0.0, (now - case.trigger.since).total_seconds())
            metrics.CLAIM_SECONDS.observe(waited, metrics.of_case(case.name))


def _soon(fold: AdmissionFold, back: Set[str]) -> list[float]:
    """Seconds until what was asked may be answered, and until entries that were taken back are free."""
    soon = (
        (bool(back), STOPPED.after),
        (bool(fold.questions), UNANSWERED),
        (bool(fold.unseen), blast_looks.UNSEEN),
    )
    return [seconds for waits, seconds in soon if waits]


def _stopped(admission: Admission, results: Sequence[EffectResult]) -> set[str]:
    """The uids of cases of which nothing was sent to the API server but entries."""
    return {request.case.uid for request, result in zip(admission.admitted, results, strict=True) if result is STOPPED}
