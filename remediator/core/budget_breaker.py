"""The breaker of a budget: by how many attempts start on its nodes in a time, and by how many of them were in vain.

The first closes by itself when the window is over. The second stays open until a user closes it; what it rests on is
kept in the status of the budget, so that neither a restart nor the end of a case forgets it.
"""

from bisect import insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from remediator.core.account import NOBODY, Members
from remediator.core.breaker import Breaker
from remediator.core.budget import Budget
from remediator.core.case import Case
from remediator.core.duration import in_words
from remediator.core.failures import FAR, closing, counted, in_vain_of, merged
from remediator.core.policy import AttemptRecord, FailureBreaker
from remediator.core.reasons import Reason


def rate(budget: Budget, total: int) -> Breaker | None:
    """How many attempts may start on the nodes of a budget, of which there are `total`; None where it does not say.

    A percentage rounds down, but never below one; with a count, the smaller of the two holds.
    """
    rule = budget.breaker
    if rule is None or not rule.by_rate:
        return None
    share = None if rule.percent is None else max(1, total * rule.percent // 100)
    return Breaker(min(limit for limit in (rule.starts, share) if limit is not None), rule.window)


def longest(budgets: Iterable[Budget], at_least: timedelta) -> timedelta:
    """The longest window in which any of these counts starts."""
    rules = (budget.breaker for budget in budgets)
    return max([at_least, *(rule.window for rule in rules if rule is not None and rule.by_rate)])


def opened(budget: Budget, records: Iterable[AttemptRecord], now: datetime) -> str:
    """Why the breaker of a budget is open by failures; "" where it is closed. Once open it stays so until a user closes
    it, or the budget has none any more.
    """
    rule = budget.breaker
    if rule is None or rule.most is None:
        return ""
    if budget.failing.stays_open(budget.closed_at, now):
        return budget.failing.message
    newest = counted(records, budget.closed_at, now)[-rule.of :]
    in_vain = in_vain_of(newest)
    if in_vain < rule.most:
        return ""
    return f"{in_vain} of the last {len(newest)} attempts under budget {budget.name} were in vain"


def state(budget: Budget, records: Iterable[AttemptRecord], now: datetime) -> FailureBreaker:
    """What the status of a budget should say."""
    if budget.breaker is None or budget.breaker.most is None:
        return FailureBreaker()
    kept = merged(budget.failing.records, records)
    message = opened(budget, kept, now)
    if not message:
        return FailureBreaker(records=kept)
    stays = budget.failing.opened is not None and budget.failing.message == message
    return replace(budget.failing if stays else FailureBreaker(now, message), records=kept)


def why(budget: Budget, now: datetime) -> str:
    """Why nothing may start under a budget, and what a user does about it; "" where attempts may start."""
    message = opened(budget, budget.failing.records, now)
    return f"{message}; {closing(f'budget/{budget.name}', budget.closed_at, now)}" if message else ""


def closes_in(budget: Budget, now: datetime) -> float | None:
    """Seconds until the time comes at which a user closes it; None where there is no such time soon."""
    if budget.failing.opened is None or budget.closed_at is None or not now < budget.closed_at <= now + FAR:
        return None
    return (budget.closed_at - now).total_seconds()


def shown(budget: Budget, total: int, starts: Iterable[datetime], now: datetime) -> str:
    """The breaker of a budget in a phrase; "" where it has none."""
    limit, message = rate(budget, total), why(budget, now)
    count = f"{len(limit.recent(starts, now))} of {limit.starts} starts in {in_words(limit.window)}" if limit else ""
    return ", ".join(words for words in (count, f"breaker open: {message}" if message else "") if words)


class Refusal(NamedTuple):
    """Why a budget lets nothing start now."""

    reason: Reason
    message: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Rate:
    breaker: Breaker
    recent: list[datetime]


class BudgetBreakers:
    """The breakers of all budgets in one admission pass, each start seen by the requests after it."""

    def __init__(
        self,
        budgets: Mapping[str, Budget],
        members: Mapping[str, Members],
        starts: Mapping[str, Iterable[datetime]],
        now: datetime,
    ) -> None:
        self._now = now
        self._rates: dict[str, _Rate] = {}
        self._failing: dict[str, str] = {}
        for name, budget in budgets.items():
            if budget.breaker is None:
                continue
            if breaker := rate(budget, members.get(name, NOBODY).total):
                self._rates[name] = _Rate(breaker, breaker.recent(starts.get(name, ()), now))
            if message := why(budget, now):
                self._failing[name] = message

    def __bool__(self) -> bool:
        """Whether any budget has one."""
        return bool(self._rates or self._failing)

    def refusals(self, over: Iterable[str], counts: Callable[[Breaker], bool]) -> Iterable[Refusal]:
        """Why these budgets let an attempt not start; `counts`: whether it is one of the starts already."""
        for name in over:
            if name in self._failing:
                yield Refusal(Reason.BUDGET_FAILING, self._failing[name])
            known = self._rates.get(name)
            until = known.breaker.opened(known.recent) if known and not counts(known.breaker) else None
            if known and until:
                words = f"budget {name}: {known.breaker.starts} starts in {in_words(known.breaker.window)}"
                yield Refusal(Reason.BREAKER_OPEN, words, until)

    def started(self, over: Iterable[str], counts: Callable[[Breaker], bool]) -> None:
        """Enter a start under these budgets."""
        for known in (self._rates[name] for name in over if name in self._rates):
            if not counts(known.breaker):
                insort(known.recent, self._now)


def counted_by(breaker: Breaker, case: Case, entered: datetime | None, now: datetime) -> bool:
    """Whether a case is one of the starts already: by its claim, or by its entries while no claim is recorded."""
    if case.claimed:
        return breaker.admitted(case, now)
    return entered is not None and entered > now - breaker.window
