"""One pass over all cases that want to start: checks budgets, breaker and guards, writes ledgers in batches.

Only this pass admits cases, and only one of it runs at a time, so each admission sees the admissions before it. If two
replicas believe that they lead, the resourceVersions of the ledgers let only one of them write.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from remediator import metrics
from remediator.controller.cache import ClusterCache
from remediator.controller.case_view import CaseView, case_view, ledgers_of
from remediator.controller.effects import Done, EffectResult, Retry
from remediator.controller.fleet import fleet_context
from remediator.controller.handlers.case import HANDLERS
from remediator.controller.hold import hold
from remediator.controller.ledgers import Ledgers
from remediator.controller.perform import Performer
from remediator.core import budget, guard
from remediator.core.breaker import Breaker, starts
from remediator.core.case import Block, Case
from remediator.core.case_table import Step, case_step
from remediator.core.guard import Admission, FleetContext, Request
from remediator.core.reasons import Reason
from remediator.kube import api

AT_ONCE = 16
# Holds that end without any event of the case itself, and how many seconds later they are looked at again.
WITHOUT_EVENT = frozenset({Reason.HEALTH_UNKNOWN, Reason.PAUSED, Reason.SHARED_CAUSE})
LOOK_AGAIN = 30.0


@dataclass(frozen=True, slots=True)
class PendingAdmission:
    """One request with the view and the step it was made from."""

    request: Request
    view: CaseView
    step: Step


class Admissions:
    """The admission pass."""

    def __init__(self, cache: ClusterCache, performer: Performer, breaker: Breaker) -> None:
        self.cache, self.performer, self.breaker = cache, performer, breaker
        self.ledgers = Ledgers(cache, performer)
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._written: dict[str, datetime] = {}  # when status.blockedBy was written last, by the uid of the case

    async def run(self, now: datetime) -> float | None:
        """Admit what may start; returns seconds until something may change by itself."""
        result = await self.ledgers.update(now)
        again = None
        if isinstance(result, Done):
            result, again = await self._admit(now)
        if isinstance(result, Done):
            return again
        return result.after

    async def _admit(self, now: datetime) -> tuple[EffectResult, float | None]:
        waiting = self._waiting(now)
        self._written = {view.case.uid: at for view, _ in waiting if (at := self._written.get(view.case.uid))}
        if not waiting:
            return Done(), None
        if await self._read_partly_claimed(waiting):
            waiting = self._waiting(now)
        gone = await self._gone(waiting)
        fleet = replace(fleet_context(self.cache, now), gone=gone)
        waiting = [(replace(view, gone=gone), step) for view, step in waiting]
        pending = {view.case.uid: self._pending(view, step, fleet, now) for view, step in waiting}
        budgets = {ledger.name: ledger for ledger in self.cache.budgets}
        requests = [admission.request for admission in pending.values()]
        admission = guard.admit(requests, budgets, self.cache.counted(), self._starts(now), self.breaker, now)
        for name in sorted(admission.claims):
            result = await self.ledgers.write(budgets[name], budget.with_claims(budgets[name], admission.claims[name]))
            if not isinstance(result, Done):
                return result, None
        results = await self._carry_out(pending, admission, now)
        waits = [result.after for result in results if isinstance(result, Retry)]
        return Done(), min([*waits, *_until_holds_end(admission, now)], default=None)

    def _waiting(self, now: datetime) -> list[tuple[CaseView, Step]]:
        """The open cases that request admission, our finalizer on them."""
        cases = [case for case in self.cache.cases if case.open and case.finalizer and not case.unreadable]
        views = [case_view(self.cache, case, now) for case in cases]
        steps = [(view, case_step(view.observation)) for view in views]
        return [(view, step) for view, step in steps if HANDLERS[step].by_admission and view.node is not None]

    async def _read_partly_claimed(self, waiting: Sequence[tuple[CaseView, Step]]) -> bool:
        """A claim that was cut short is completed only after node, case and ledgers were read live, in this order.

        True where anything was read.
        """
        read = False
        for view, step in waiting:
            ledgers = ledgers_of(self.cache, view.case)
            tainted = view.node is not None and view.node.case_uid == view.case.uid
            if step is Step.CLAIM and (tainted or ledgers):
                read = True
                await self._read_live(view.case, ledgers)
        return read

    async def _gone(self, waiting: Sequence[tuple[CaseView, Step]]) -> frozenset[str]:
        """Cases that nodes which are to be claimed name, and that nobody knows: those that a live list has not."""
        marks = {uid for view, step in waiting if view.node and step is Step.CLAIM for uid in view.node.marks}
        return await self.performer.gone({uid for uid in marks if self.cache.case(uid) is None})

    async def _read_live(self, case: Case, ledgers: Iterable[str]) -> None:
        client, note = self.performer.client, self.performer.note
        await self.performer.node(case.node)
        await self.performer.policy(case.policy)
        note(api.CASE, await client.get(api.CASE, case.name))
        for name in ledgers:
            note(api.BUDGET, await client.get(api.BUDGET, name))

    def _pending(self, view: CaseView, step: Step, fleet: FleetContext, now: datetime) -> PendingAdmission:
        case, node, policy = view.case, view.node, view.policy
        if node is None:
            raise ValueError(f"case {case.name} requests admission without a node")
        past = self.cache.cases.by("node", case.node)
        blocks = guard.preconditions(case, node, policy, past, fleet, now)
        severity = policy.severity.rank if policy else 0
        return PendingAdmission(Request(case, node, severity, blocks), view, step)

    def _starts(self, now: datetime) -> list[datetime]:
        """Disruptive starts so far.

        A claim whose first attempt is still to come may start any moment, however long ago the claim was: that attempt
        will not be asked about again.
        """
        coming = [now for case in self.cache.cases if case.claimed and not case.attempts and not case.unreadable]
        return [*starts(self.cache.cases), *coming]

    async def _carry_out(
        self, pending: Mapping[str, PendingAdmission], admission: Admission, now: datetime
    ) -> list[EffectResult]:
        """Start what was admitted and show the holds, some at once. When one raises, the others are cancelled."""
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._bounded(self._start, pending[request.case.uid], now))
                for request in admission.admitted
            ]
            tasks += [
                group.create_task(self._bounded(self._hold, request.case, blocks, now))
                for request, blocks in admission.held
            ]
        return [task.result() for task in tasks]

    async def _bounded(self, write: Callable[..., Awaitable[EffectResult]], *arguments: object) -> EffectResult:
        async with self._at_once:
            return await write(*arguments)

    async def _start(self, pending: PendingAdmission, now: datetime) -> EffectResult:
        """An admitted case claims its node, or starts its next attempt."""
        case = pending.request.case
        result = await self.performer.all(HANDLERS[pending.step].plan(pending.view, now))
        if pending.step is Step.CLAIM and isinstance(result, Done) and case.trigger:
            metrics.CLAIM_SECONDS.observe(max(0.0, (now - case.trigger.since).total_seconds()))
        return result

    async def _hold(self, case: Case, blocks: tuple[Block, ...], now: datetime) -> EffectResult:
        """Show why a case may not start."""
        held = hold(case, blocks, self._written.get(case.uid), now)
        result = await self.performer.all(held.effects)
        if isinstance(result, Done) and held.saved:
            self._written[case.uid] = now
        if isinstance(result, Done) and held.rewrite_at:
            return Retry(max(1.0, (held.rewrite_at - now).total_seconds()), "a newer text waits to be written")
        return result


def _until_holds_end(admission: Admission, now: datetime) -> list[float]:
    """Seconds until each hold that ends by itself."""
    blocks = [block for _, blocks in admission.held for block in blocks]
    timed = [max(1.0, (block.until - now).total_seconds()) for block in blocks if block.until]
    return [*timed, *(LOOK_AGAIN for block in blocks if block.reason in WITHOUT_EVENT)]
