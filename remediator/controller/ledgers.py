"""The ledgers of the budgets: which case holds which node. Only the admission pass writes them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

import structlog

from remediator.controller import marks
from remediator.controller.cache import ClusterCache
from remediator.controller.effects import Create, Done, EffectResult, GaveUp, Patch, Retry
from remediator.controller.gone import GoneCases
from remediator.controller.perform import Performer
from remediator.core import budget, names
from remediator.core.budget import Budget, Claim
from remediator.core.case import Case, Phase
from remediator.kube import api
from remediator.kube.api import encode
from remediator.kube.wire.errors import ApiError
from remediator.metrics import Contained

log = structlog.get_logger()


class Ledgers:
    """Keeps the ledgers up to date. `monotonic`: seconds of the monotonic clock."""

    def __init__(self, cache: ClusterCache, performer: Performer, monotonic: Callable[[], float]) -> None:
        self.cache, self.performer = cache, performer
        self._gone_cases = GoneCases(performer, monotonic)

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
        orphans, ask_again = await self._orphans(readable)
        over = self._released() | orphans
        for ledger in readable:
            results[ledger.name] = await self._updated(ledger, over, now)
        return {name: result for name, result in results.items() if not isinstance(result, Done)}, ask_again

    async def _updated(self, ledger: Budget, over: frozenset[str], now: datetime) -> EffectResult:
        """One ledger; what fails here concerns no other."""
        with Contained("budget", ledger.name):
            return await self.write(ledger, current_claims(ledger, self._claims(ledger, now), over))
        return GaveUp("it cannot be counted; the controller's log says why")

    async def _create_default(self) -> EffectResult:
        ledgers = {ledger.name: ledger for ledger in self.cache.budgets}
        if names.DEFAULT_BUDGET in ledgers or any(ledger.fallback for ledger in ledgers.values()):
            return Done()
        return await self.performer.all([Create(api.BUDGET, encode.default_budget())])

    def _released(self) -> frozenset[str]:
        """Cases whose entries may go: ended, and off their node."""
        return frozenset(case.uid for case in self.cache.cases if case.ended is not None and not self._on_node(case))

    def _on_node(self, case: Case) -> bool:
        node = self.cache.nodes.get(case.node)
        return node is not None and marks.marked(node, case)

    async def _orphans(self, ledgers: Iterable[Budget]) -> tuple[frozenset[str], float | None]:
        """Entries of cases that somebody removed by force: unknown here, and unknown to the server as well."""
        entered = {claim.case for ledger in ledgers for claim in ledger.claims}
        return await self._gone_cases.among({uid for uid in entered if self.cache.case(uid) is None})

    def _claims(self, ledger: Budget, now: datetime) -> list[Claim]:
        """A claim for each case that holds a node of this budget: budget and labels may have changed."""
        budgets = {other.name: other for other in self.cache.budgets}
        holding = [(case, self.cache.nodes.get(case.node)) for case in self.cache.cases if self._holds(case)]
        counted = [case for case, node in holding if node is not None and ledger in budget.over(node, budgets)]
        return [Claim(case.node, case.uid, case.started or now, case.phase is Phase.ESCALATED) for case in counted]

    def _holds(self, case: Case) -> bool:
        """One that cannot be read may have ended: an entry is made for it only where its node says so."""
        node = self.cache.nodes.get(case.node)
        return case.open and case.claimed and (not case.unreadable or (node is not None and case.uid in node.marks))

    async def write(self, before: Budget, after: Budget) -> EffectResult:
        """Write a ledger and its numbers where they differ from what is there; a conflict reads the newest version."""
        account = budget.account(after, self.cache.counted()[after.name])
        if before.adopted and after.claims == before.claims and account.counts == before.shown:
            return Done()
        effect = Patch(api.BUDGET, after.name, encode.ledger(after, account), "", "status")
        result = await self.performer.all([effect])
        if isinstance(result, Retry):
            await self._read(after.name)
        return result

    async def _read(self, name: str) -> None:
        try:
            self.performer.note(api.BUDGET, await self.performer.client.get(api.BUDGET, name))
        except ApiError as error:
            log.warning("budget not read", budget=name, answer=str(error))


def current_claims(ledger: Budget, claims: Sequence[Claim], gone: frozenset[str]) -> Budget:
    """The ledger with the claims that hold and without those of cases that are gone."""
    return budget.without_claims(budget.with_claims(ledger, claims), gone)
