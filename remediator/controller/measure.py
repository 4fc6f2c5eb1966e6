"""What the metrics of the controller show of its cache: gauges as they are now, durations once they are known."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from prometheus_client import Gauge

from remediator import metrics
from remediator.controller import criteria
from remediator.controller.cache import ClusterCache
from remediator.core import account, budget, keep_out
from remediator.core.breaker import Breaker
from remediator.core.case import Case, Phase
from remediator.core.history import drained_for, held_since, last_fault, phase_since
from remediator.core.node import Node, Status
from remediator.core.rejections import PODS_REJECTED
from remediator.kube.runtime.turns import sliced

SLICE = 100  # budgets between two turns of the loop


async def gauges(cache: ClusterCache, breaker: Breaker, now: datetime) -> None:
    """Bring the gauges up to date; others run in between."""
    cases = [case for case in cache.unfinished if case.open]
    show(metrics.CASES, Counter(case.phase.value or "New" for case in cases))
    show(metrics.HELD, Counter(block.reason.value for case in cases for block in case.blocks))
    show(metrics.REPORTED, Counter(block.reason.value for case in cases for block in case.blocks if block.reported))
    show(metrics.OLDEST_HOLD, _oldest_holds(cases, now))
    show(metrics.TAKEN_OUT, _taken_out(cases, now))
    begun = [start.at for start in cache.starts(now - breaker.window)]
    metrics.BREAKER_OPEN.set(breaker.opens(begun, now) is not None)
    metrics.BREAKER_STARTS.set(len(breaker.recent(begun, now)))
    show(metrics.IDLE_TESTS_RUNNING, _running_tests(cache))
    metrics.REJECTING.set(sum(_rejects(node) for node in cache.nodes))
    show(metrics.FAILING, {policy.name: bool(policy.breaker.opened) for policy in cache.policies})
    show(metrics.CRITERION_MUTED, criteria.muted(cache.policies))
    show(metrics.BUDGET_FAILING, {each.name: bool(each.failing.opened) for each in cache.budgets if each.breaker})
    metrics.BUDGET.rows = await _budgets(cache)


def _running_tests(cache: ClusterCache) -> Counter[str]:
    """How many tests of idle nodes each policy has; who only is the other end of a measurement tests nothing."""
    return Counter(pod.idle_test for pod in cache.pods if pod.idle_test and not pod.neighbour_of)


def _taken_out(cases: Iterable[Case], now: datetime) -> dict[str, int]:
    """How many nodes users have for longer than they said, and how many they have within that time."""
    late = [keep_out.overdue(case.keep_out, now) for case in cases if case.keep_out and keep_out.is_out(case)]
    return {"true": late.count(True), "false": late.count(False)}


def _rejects(node: Node) -> bool:
    condition = node.conditions.get(PODS_REJECTED)
    return condition is not None and condition.status is Status.TRUE


async def _budgets(cache: ClusterCache) -> dict[str, tuple[int, ...]]:
    ledgers = cache.ledgers()
    numbers = {}
    async for name, ledger in sliced(ledgers.budgets.items(), SLICE):
        numbers[name] = _numbers(ledger, ledgers.members.get(name, account.NOBODY))
    return numbers


def _numbers(ledger: budget.Budget, counted: account.Members) -> tuple[int, ...]:
    shown, (most, most_quarantined) = account.counts(ledger, counted), account.limits(ledger, counted)
    used = (shown.total, most, shown.unavailable, len(ledger.claims), shown.quarantined, most_quarantined)
    return (*used, shown.groups_full, shown.ungrouped)


def show(gauge: Gauge, values: Mapping[str, float]) -> None:
    """These values by label, and no others."""
    gauge.clear()
    for label, value in values.items():
        gauge.labels(label).set(value)


def _oldest_holds(cases: list[Case], now: datetime) -> dict[str, float]:
    oldest: dict[str, float] = {}
    for case in cases:
        for block in case.blocks:
            age = max(0.0, (now - held_since(case, block.reason)).total_seconds())
            oldest[block.reason.value] = max(age, oldest.get(block.reason.value, 0.0))
    return oldest


def saved(cache: ClusterCache, before: Case, after: Case) -> None:
    """A case was written: how long was its last phase, and, where it has recovered, all of it?"""
    begun = len(after.attempts) > len(before.attempts) and not (after.attempts[-1].follows or after.attempts[-1].probe)
    if begun and after.blast is not None and not after.blast.unknown:
        metrics.BLAST_RADIUS.observe(after.blast.gpu_hours)
    if not after.timeline or after.phase is before.phase:
        return
    now, shown = after.ended or after.timeline[-1].at, metrics.of_case(after.name)
    metrics.PHASE_SECONDS.labels(before.phase.value or "New").observe(_seconds(phase_since(before), now), shown)
    if after.phase is Phase.RECOVERED and after.tries and not after.manual:
        drained = drained_for(cache.operations.by("case_uid", after.uid)).total_seconds()
        whole = _seconds(after.created, now)
        metrics.RECOVERY_SECONDS.labels("included").observe(whole, shown)
        metrics.RECOVERY_SECONDS.labels("excluded").observe(max(0.0, whole - drained), shown)


def opened(before: Iterable[Case], node: Node, now: datetime) -> None:
    """A case of the node was opened beside those that it had before: how long ago did the last of these end?"""
    last = last_fault(before, node.uid)
    if last is not None:
        metrics.BETWEEN_FAULTS_SECONDS.observe(_seconds(last, now))


def _seconds(since: datetime, now: datetime) -> float:
    return max(0.0, (now - since).total_seconds())
