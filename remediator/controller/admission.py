"""One pass over all cases that want to start: budgets, breaker and guards judged together, ledgers written in batches.

Only this pass admits, and only one of it runs at a time, so each admission sees what the one before it was given. Two
leaders are kept apart by the ledgers' resourceVersions.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from remediator import metrics
from remediator.controller import case_plan, marks, observe
from remediator.controller.cache import ClusterCache
from remediator.controller.effects import ChangeNode, Create, Done, Outcome, Patch, Retry, SaveCase
from remediator.controller.observe import CaseView
from remediator.controller.perform import Performer
from remediator.core import budget as budgets_
from remediator.core import guard, names
from remediator.core.breaker import Breaker, starts
from remediator.core.budget import Budget, Claim
from remediator.core.case import Block, Case, Phase, advance
from remediator.core.guard import Admission, FleetContext, Request
from remediator.core.ladder import Next
from remediator.core.lifecycle import Step, case_step
from remediator.core.reasons import Reason
from remediator.kube import api
from remediator.kube.api import encode as bodies
from remediator.kube.api.builtin import CASE_HEAD

log = structlog.get_logger()
AT_ONCE = 16
# Holds that end without anything happening to the case itself.
LOOKED_AT_AGAIN = frozenset({Reason.HEALTH_UNKNOWN, Reason.PAUSED, Reason.SHARED_CAUSE})


@dataclass(frozen=True, slots=True)
class Asking:
    """One request with the view it was made from."""

    request: Request
    view: CaseView
    step: Step


class Admissions:
    """The admission pass."""

    def __init__(self, cache: ClusterCache, performer: Performer, breaker: Breaker) -> None:
        self.cache, self.performer, self.breaker = cache, performer, breaker
        self._at_once = asyncio.Semaphore(AT_ONCE)

    async def run(self, now: datetime) -> float | None:
        """Admit what may start; returns seconds until something may change by itself."""
        outcome = await self._keep_ledgers(now)
        if isinstance(outcome, Done):
            outcome, again = await self._admit(now)
            if isinstance(outcome, Done):
                return again
        return outcome.after if isinstance(outcome, Retry) else 60.0

    # --- ledgers -----------------------------------------------------------------------------------------------------

    async def _keep_ledgers(self, now: datetime) -> Outcome:
        """Make the default budget, enter the claims that stand, drop those of ended cases, show the numbers."""
        ledgers = {ledger.name: ledger for ledger in self.cache.budgets}
        if names.DEFAULT_BUDGET not in ledgers and not any(ledger.fallback for ledger in ledgers.values()):
            made = await self.performer.all([Create(api.BUDGET, bodies.default_budget())])
            if not isinstance(made, Done):
                return made
        for ledger in sorted(self.cache.budgets, key=lambda ledger: ledger.name):
            over = self._over() | await self._orphans(ledger)
            kept = await self._write(ledger, kept_claims(ledger, self._standing(ledger, now), over))
            if not isinstance(kept, Done):
                return kept
        return Done()

    def _over(self) -> frozenset[str]:
        """Cases whose entries may go: ended, and off their node."""
        return frozenset(case.uid for case in self.cache.cases if case.ended is not None and not self._on_node(case))

    async def _orphans(self, ledger: Budget) -> frozenset[str]:
        """Entries of cases that somebody removed by force: unknown here, and unknown to the server as well."""
        unknown = {claim.case for claim in ledger.claims if self.cache.case(claim.case) is None}
        if not unknown:
            return frozenset()
        known = {found.metadata.uid for found in await self.performer.client.list_all(CASE_HEAD)}
        return frozenset(unknown - known)

    def _on_node(self, case: Case) -> bool:
        node = self.cache.nodes.get(case.node)
        return node is not None and observe.marked(node, case)

    def _standing(self, ledger: Budget, now: datetime) -> list[Claim]:
        """A claim for each case that holds a node under this budget: it is new, was edited, or the node relabelled."""
        budgets = {found.name: found for found in self.cache.budgets}
        held = [(case, self.cache.nodes.get(case.node)) for case in self.cache.cases if case.open and case.claimed]
        under = [case for case, node in held if node is not None and ledger in budgets_.over(node, budgets)]
        return [Claim(case.node, case.uid, case.started or now) for case in under]

    async def _write(self, before: Budget, after: Budget) -> Outcome:
        """Write a ledger and its numbers where they differ from what is there; a conflict brings the newest version."""
        account = budgets_.account(after, self.cache.counted()[after.name])
        shown = (account.total, len(account.unavailable), account.allowed)
        if before.adopted and after.claims == before.claims and shown == before.numbers:
            return Done()
        outcome = await self.performer.all([Patch(api.BUDGET, after.name, bodies.ledger(after, account), "", "status")])
        if isinstance(outcome, Retry):
            self.performer.note(api.BUDGET, await self.performer.client.get(api.BUDGET, after.name))
        return outcome

    # --- admission ---------------------------------------------------------------------------------------------------

    async def _admit(self, now: datetime) -> tuple[Outcome, float | None]:
        waiting = self._waiting(now)
        if not waiting:
            return Done(), None
        if await self._refresh(waiting):
            waiting = self._waiting(now)
        around = observe.fleet_context(self.cache, now)
        asking = {view.case.uid: self._asking(view, step, around, now) for view, step in waiting}
        budgets = {ledger.name: ledger for ledger in self.cache.budgets}
        admission = guard.admit(
            [found.request for found in asking.values()],
            budgets,
            self.cache.counted(),
            self._starts(now),
            self.breaker,
            now,
        )
        for name in sorted(admission.claims):
            outcome = await self._write(budgets[name], budgets_.with_claims(budgets[name], admission.claims[name]))
            if not isinstance(outcome, Done):
                return outcome, None
        outcomes = await asyncio.gather(*self._effects(asking, admission, now))
        waits = [outcome.after for outcome in outcomes if isinstance(outcome, Retry)]
        return Done(), min([*waits, *_untils(admission, now)], default=None)

    def _waiting(self, now: datetime) -> list[tuple[CaseView, Step]]:
        """The open cases that ask to claim or to start, our finalizer on them."""
        views = [observe.case_view(self.cache, case, now) for case in self.cache.cases if case.open and case.finalizer]
        found = [(view, case_step(view.observation)) for view in views]
        return [(view, step) for view, step in found if step in (Step.CLAIM, Step.START) and view.node is not None]

    async def _refresh(self, waiting: Sequence[tuple[CaseView, Step]]) -> bool:
        """Our own uid found before the claim is complete: go on after reading node, case and ledgers live, in order.

        True where anything was read.
        """
        partly_claimed = []
        for view, step in waiting:
            partly = view.node is not None and view.node.case_uid == view.case.uid
            ledgers = observe.ledgers(self.cache, view.case)
            if step is Step.CLAIM and (partly or ledgers):
                partly_claimed.append(view.case.name)
                await self._read_live(view.case, ledgers)
        return bool(partly_claimed)

    async def _read_live(self, case: Case, ledgers: Iterable[str]) -> None:
        client, note = self.performer.client, self.performer.note
        node = await self.performer.node(case.node)
        if node is not None:
            self.cache.nodes.note(node.name, node)
        note(api.CASE, await client.get(api.CASE, case.name))
        for name in ledgers:
            note(api.BUDGET, await client.get(api.BUDGET, name))

    def _asking(self, view: CaseView, step: Step, around: FleetContext, now: datetime) -> Asking:
        case, node, policy = view.case, view.node, view.policy
        if node is None:
            raise ValueError(f"case {case.name} asks without a node")
        past = self.cache.cases.by("node", case.node)
        blocks = guard.preconditions(case, node, policy, past, around, now)
        severity = policy.severity.rank if policy else 0
        return Asking(Request(case, node, severity, blocks), view, step)

    def _starts(self, now: datetime) -> list[datetime]:
        """Disruptive starts so far.

        A claim whose first attempt is still to come may start any moment, however long ago the claim was: that attempt
        will not be asked about again.
        """
        coming = [now for case in self.cache.cases if case.claimed and not case.attempts]
        return [*starts(self.cache.cases), *coming]

    def _effects(self, asking: dict[str, Asking], admission: Admission, now: datetime) -> list["asyncio.Task[Outcome]"]:
        work = [self._go(asking[request.case.uid], now) for request in admission.admitted]
        work += [self._hold(request.case, blocks, now) for request, blocks in admission.held]
        return [asyncio.ensure_future(self._bounded(one)) for one in work]

    async def _bounded(self, work: Coroutine[None, None, Outcome]) -> Outcome:
        async with self._at_once:
            return await work

    async def _go(self, asking: Asking, now: datetime) -> Outcome:
        """An admitted case marks its node, or starts its next attempt."""
        case, view = asking.request.case, asking.view
        if asking.step is Step.START:
            if not isinstance(view.next, Next) or view.policy is None:
                return Done()
            rung = view.policy.ladder[view.next.rung]
            return await self.performer.all(case_plan.start(case, view.next, rung.operation, now))
        cordon = self._cordons(view)
        outcome = await self.performer.all([ChangeNode(case.node, marks.claim(case, cordon))])
        if not isinstance(outcome, Done):
            return outcome
        if case.trigger:
            metrics.CLAIM_SECONDS.observe(max(0.0, (now - case.trigger.since).total_seconds()))
        said = f"{case.node} is ours for {case.policy}"
        after = replace(advance(case, Reason.CLAIMED, said, now, Phase.DRAINING), started=now, blocks=())
        return await self.performer.all([SaveCase(case, after)])

    def _cordons(self, view: CaseView) -> bool:
        """Whether any operation of the ladder wants the node cordoned."""
        rungs = view.policy.ladder if view.policy else ()
        found = (self.cache.templates.get(rung.operation) for rung in rungs)
        return any(template is not None and template.cordon for template in found)

    async def _hold(self, case: Case, blocks: tuple[Block, ...], now: datetime) -> Outcome:
        """Say why nothing starts, once for each set of reasons; ask new work away from a node that only waits."""
        phase = case.phase if case.claimed else Phase.HELD
        after = replace(case, phase=phase, blocks=blocks)
        if [found.reason for found in blocks] != [found.reason for found in case.blocks] or case.phase is not phase:
            known = {found.reason for found in case.blocks}
            new = next((found for found in blocks if found.reason not in known), blocks[0])
            told = advance(after, new.reason, new.message, now)
            saved = await self.performer.all([SaveCase(case, told)])
            if not isinstance(saved, Done):
                return saved
        if guard.waits_in_queue(blocks):
            return await self.performer.all([ChangeNode(case.node, marks.degrade(case))])
        return Done()


def kept_claims(ledger: Budget, standing: Sequence[Claim], over: frozenset[str]) -> Budget:
    """The ledger with the claims that stand and without those that are over."""
    return budgets_.without_claims(budgets_.with_claims(ledger, standing), over)


def _untils(admission: Admission, now: datetime) -> list[float]:
    """Seconds until each hold that ends by itself; unclear evidence has no time of its own and is looked at again."""
    blocks = [found for _, held in admission.held for found in held]
    timed = [max(1.0, (found.until - now).total_seconds()) for found in blocks if found.until]
    looks = [30.0 for found in blocks if found.reason in LOOKED_AT_AGAIN]
    return [*timed, *looks]
