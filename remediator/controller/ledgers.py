"""The ledgers of the budgets: which case holds which node. Only the admission pass writes them."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import structlog

from remediator.controller import marks
from remediator.controller.budget_attempts import BudgetAttempts
from remediator.controller.cache import ClusterCache
from remediator.controller.effects import Create, Done, EffectResult, GaveUp, Patch, Retry
from remediator.controller.gone import GoneCases
from remediator.controller.perform import Performer
from remediator.core import account, budget, budget_breaker, names
from remediator.core.budget import Budget, Claim
from remediator.core.case import Case, Phase
from remediator.core.census import BudgetSnapshot
from remediator.core.policy import FailureBreaker
from remediator.kube import api
from remediator.kube.api import encode
from remediator.kube.runtime.turns import sliced
from remediator.kube.wire.errors import ApiError
from remediator.metrics import Contained

log = structlog.get_logger()
SLICE = 25  # ledgers, or cases, between two turns of the loop


class Ledgers:
    """Keeps the ledgers up to date. `monotonic`: seconds of the monotonic clock."""

    def __init__(self, cache: ClusterCache, performer: Performer, monotonic: Callable[[], float]) -> None:
        self.cache, self.performer = cache, performer
        self._gone_cases = GoneCases(performer, monotonic)
        self.unused: set[str] = set()  # uids of cases that were entered and then stopped before their node was marked
        self._attempts = BudgetAttempts(cache)

    def clear(self) -> None:
        """Another leader may use now what was left here."""
        self.unused.clear()
        self._attempts.clear()

    def as_of(self, now: datetime) -> BudgetSnapshot:
        """All ledgers, with the breakers on failures as they are, also where that could not be written yet."""
        ledgers = self.cache.ledgers()
        asking = [each for each in ledgers.budgets.values() if each.breaker is not None]
        moved = {each.name: replace(each, failing=self._failing(each, now)) for each in asking}
        return replace(ledgers, budgets={**ledgers.budgets, **moved}) if moved else ledgers

    def _failing(self, ledger: Budget, now: datetime) -> FailureBreaker:
        return budget_breaker.state(ledger, self._attempts.of(ledger.name), now)

    async def update(self, now: datetime) -> tuple[Mapping[str, Retry | GaveUp], float | None]:
        """Create the default budget, enter the claims that hold, drop those of ended cases, show the numbers.

        Returns the budgets that are not as they should be, and why; the others are. And after how many seconds the
        API server may be asked again about entries of cases that nobody knows.
        """
        created = await self._create_default()
        results: dict[str, EffectResult] = {names.DEFAULT_BUDGET: created}
        readable = sorted(
            (ledger for ledger in self.cache.budgets if not ledger.unreadable), key=lambda ledger: ledger.name
        )
        await self.cache.nodes_by.refresh()
        await self._attempts.refresh(now)
        orphans, ask_again = await self._orphans()
        over, holding = self._released() | self._unused() | orphans, await self._holding()
        async for ledger in sliced(readable, SLICE):
            results[ledger.name] = await self._updated(ledger, holding.get(ledger.name, ()), over, now)
        closing = [when for ledger in readable if (when := budget_breaker.closes_in(ledger, now)) is not None]
        ask_again = min([*closing, *([] if ask_again is None else [ask_again])], default=None)
        return {name: result for name, result in results.items() if not isinstance(result, Done)}, ask_again

    async def _updated(
        self, ledger: Budget, holding: Sequence[str], over: frozenset[str], now: datetime
    ) -> EffectResult:
        """One ledger; what fails here concerns no other."""
        with Contained("budget", ledger.name):
            current = self.cache.budgets.get(ledger.name) or ledger
            standing = budget.regrouped(current, self._groups(current))
            claimed = current_claims(standing, self._claims(current, holding, now), over)
            return await self._write(current, replace(claimed, failing=self._failing(current, now)))
        return GaveUp("it cannot be counted; the controller's log says why")

    async def _write(self, before: Budget, after: Budget) -> EffectResult:
        if after.failing.opened and not before.failing.opened:
            log.warning("the breaker on failures opens", budget=after.name, because=after.failing.message, once=True)
        return await self.write(before, after)

    async def _create_default(self) -> EffectResult:
        ledgers = {ledger.name: ledger for ledger in self.cache.budgets}
        if names.DEFAULT_BUDGET in ledgers or any(ledger.fallback for ledger in ledgers.values()):
            return Done()
        return await self.performer.all([Create(api.BUDGET, encode.default_budget())])

    def _released(self) -> frozenset[str]:
        """Cases whose entries may go: ended, and off their node."""
        entered = (self.cache.case(uid) for uid in self.cache.entries)
        return frozenset(case.uid for case in entered if case is not None and self._is_over(case))

    def _unused(self) -> frozenset[str]:
        """Cases that were stopped after they had been entered; nothing is under way that could mark their nodes."""
        self.unused.intersection_update(self.cache.entries)
        cases = (self.cache.case(uid) for uid in self.unused)
        return frozenset(case.uid for case in cases if case is not None and not case.claimed and not self._marked(case))

    def _marked(self, case: Case) -> bool:
        node = self.cache.nodes.get(case.node)
        return node is not None and case.uid in node.marks

    def _is_over(self, case: Case) -> bool:
        node = self.cache.nodes.get(case.node)
        return case.ended is not None and (node is None or not marks.marked(node, case))

    async def _orphans(self) -> tuple[frozenset[str], float | None]:
        """Entries of cases that somebody removed by force: unknown here, off every node, and unknown to the server."""
        unknown = {uid for uid in self.cache.entries if self.cache.case(uid) is None}
        marked = {uid for node in self.cache.marked for uid in node.marks} if unknown else set[str]()
        return await self._gone_cases.among(unknown - marked)

    async def _holding(self) -> Mapping[str, Sequence[str]]:
        """The names of the cases that hold a node, by budget over it: budget and labels may have changed."""
        by_budget: defaultdict[str, list[str]] = defaultdict(list)
        index = self.cache.nodes_by.index
        async for case in sliced(self.cache.unfinished, SLICE):
            node = self.cache.nodes.get(case.node)
            if node is not None and self._holds(case):
                for name in index.over(node):
                    by_budget[name].append(case.name)
        return by_budget

    def _claims(self, ledger: Budget, holding: Sequence[str], now: datetime) -> list[Claim]:
        """A claim for each of these cases that still holds its node."""
        cases = (case for name in holding if (case := self.cache.cases.get(name)) and self._holds(case))
        with_nodes = ((case, node) for case in cases if (node := self.cache.nodes.get(case.node)))
        return [
            Claim(case.node, case.uid, case.started or now, case.phase is Phase.ESCALATED, ledger.group(node))
            for case, node in with_nodes
        ]

    def _groups(self, ledger: Budget) -> Mapping[str, str]:
        """The groups in which the nodes of its claims are now."""
        nodes = (node for claim in ledger.claims if (node := self.cache.nodes.get(claim.node)))
        return {node.name: ledger.group(node) for node in nodes}

    def _holds(self, case: Case) -> bool:
        """One that cannot be read may have ended: an entry is made for it only where its node says so."""
        return case.open and case.claimed and case.takes_capacity and (not case.unreadable or self._marked(case))

    async def write(self, before: Budget, after: Budget) -> EffectResult:
        """Write a ledger and its numbers where they differ from what is there; a conflict reads the newest version."""
        counts = account.counts(after, self.cache.nodes_by.members().get(after.name, account.NOBODY))
        same = (after.claims, after.failing) == (before.claims, before.failing)
        if before.adopted and same and counts == before.shown:
            return Done()
        effect = Patch(api.BUDGET, after.name, encode.ledger(after, counts), "", "status")
        result = await self.performer.all([effect])
        if isinstance(result, Retry):
            await self._read(after.name)
        return result

    async def _read(self, name: str) -> None:
        try:
            await self.performer.read(api.BUDGET, name)
        except ApiError as error:
            log.warning("budget not read", budget=name, answer=str(error))


def current_claims(ledger: Budget, claims: Sequence[Claim], gone: frozenset[str]) -> Budget:
    """The ledger with the claims that hold and without those of cases that are gone."""
    return budget.without_claims(budget.with_claims(ledger, claims), gone)
