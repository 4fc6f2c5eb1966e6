"""Fences of the controller: ledgers, versions, uids, boots, attempts, stops, budgets, breakers, evidence, absence."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from remediator.controller import (
    admission,
    cache,
    case_view,
    deleted_starts,
    fleet,
    hold,
    kubelet_leases,
    ledgers,
    marks,
    operation_view,
    orphans,
    perform,
    pods,
    presence,
)
from remediator.controller.handlers import operation as operation_handlers
from remediator.core import (
    absence,
    account,
    breaker,
    budget,
    budget_breaker,
    case,
    external_drain,
    failures,
    guard,
    ladder,
    ledger_fold,
    node,
    places,
    trust,
)
from remediator.core import admission as core_admission
from remediator.core import health as core_health
from remediator.core.health import Health
from remediator.core.judgement import Judgement
from remediator.core.operation_table import Move
from remediator.kube.api import encode
from remediator.kube.runtime import elector, informer, leader, reading, skew, versions
from remediator.prometheus import reading as answer_reading
from tests.simulation.mutations.patch import (
    Patch,
    Patches,
    answers,
    as_it_is,
    everywhere,
    handler,
    never,
    nothing,
    sets,
    wraps,
)

LONG_AGO, FAR_OFF = datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
MANY = 10**6


# --- stops -----------------------------------------------------------------------------------------------------------


def _without_block(reason: str, *, claimed: bool = False) -> Patches:
    """A hold that holds nothing, or, `claimed`, nothing in the middle of a case."""

    def fewer(before: Any, held: Any, *asked: Any, **named: Any) -> Any:
        blocks = before(held, *asked, **named)
        if claimed and not held.claimed:
            return blocks
        return tuple(block for block in blocks if block.reason.value != reason)

    parts = [wraps(guard, name, fewer) for name in ("preconditions", "stops")]
    return lambda: [patch for part in parts for patch in part()]


def _stops_nothing_claimed(before: Any, held: Any, *asked: Any, **named: Any) -> Any:
    return () if held.claimed else before(held, *asked, **named)


HOLDS = ("Paused", "PolicyPaused", "DryRun", "HeldByUser", "OptedOut", "CordonedByUser", "UncordonedByUser", "NodeBusy")
HOLDS += ("ControlPlane", "HealthUnknown", "PolicyFailing", "SharedCause", "TicketOnly", "Cooldown", "PolicyUnreadable")
HOLDS += ("ApprovalNeeded", "OutsideWindow", "WaitingForIdle", "UnderMaintenance")


def _holds() -> Iterator[tuple[str, Patches]]:
    for word in HOLDS:
        yield f"{word} holds nothing", _without_block(word)
    for word in ("HeldByUser", "OptedOut", "ControlPlane", "DryRun"):
        yield f"{word} holds nothing in the middle of a case", _without_block(word, claimed=True)
    yield "no stop stops the middle of a case", wraps(guard, "stops", _stops_nothing_claimed)
    yield (
        "no second look at what stops before a Pod",
        sets(operation_handlers, "_still_wanted", as_it_is),
    )
    unread = sets(perform.Performer, "paused", never)
    yield "a pause is not read live", unread
    # Alone, the live read before each claim and each Pod finds every pause.
    yield "Paused holds nothing and is not read live", lambda: [*_without_block("Paused")(), *unread()]
    yield (
        "a hold that lasts is told to nobody",
        sets(hold, "_reported", lambda case, blocks, now: (tuple(blocks), None)),
    )
    yield "static Pods of the control plane are not seen", lambda: everywhere(fleet.static_pod, lambda seen: "")
    yield "labels of the control plane are not seen", answers(node.Node, "control_plane", False)
    yield "a user's cordon is not seen", answers(node.Node, "cordoned_by_user", False)
    yield "an excluded node is not seen", answers(node.Node, "opted_out", False)
    yield (
        "the Lease of a silent kubelet is not watched",
        sets(kubelet_leases.KubeletLeases, "_verdict", lambda self, node: ""),
    )
    yield "a node that runs again stays out of service", answers(node.Node, "back_in_service", False)


# --- ledgers, versions and marks -------------------------------------------------------------------------------------


def _unfenced(*plurals: str) -> Patches:
    """Writes of these kinds that do not name the version that they were decided on."""

    async def patch(before: Any, self: Any, kind: Any, name: str, body: Any, **where: Any) -> None:
        if kind.plural in plurals:
            head = {word: value for word, value in body.get("metadata", {}).items() if word != "resourceVersion"}
            body = {**body, "metadata": head}
        await before(self, kind, name, body, **where)

    return wraps(perform.Performer, "_patch", patch)


async def _refuses_no_ledger(self: Any, budgets: Any, wanted: Any) -> Any:
    return {}


def _as_admitted(allowed: Any, budgets: Any, refused: Any) -> Any:
    return allowed


def _claim_over_marks(before: Any, held: Any, judged: Any, gone: frozenset[str] = frozenset()) -> Any:
    return lambda seen: before(held, seen, seen.marks | gone)(seen)


def _claim_what_was_not_judged(before: Any, held: Any, judged: Any, gone: frozenset[str] = frozenset()) -> Any:
    return lambda seen: before(held, seen, gone)(seen)


def _everything_released(self: Any) -> frozenset[str]:
    return frozenset(held.uid for held in self.cache.cases)


def _rounded_up(before: Any, self: Any, total: int, *, round_up: bool) -> Any:
    return before(self, total, round_up=True)


def _down_or_allowed(before: Any, self: Any, name: str) -> Any:
    return name in self.down or before(self, name)


def _all_adopted(before: Any, name: str, ledger: Any, *more: Any) -> Any:
    return before(name, replace(ledger, adopted=True), *more)


def _without_quarantine(before: Any, *asked: Any) -> Any:
    return replace(before(*asked), quarantined=frozenset())


def _nobody_quarantined(before: Any, self: Any, *asked: Any) -> Any:
    return [replace(claim, quarantined=False) for claim in before(self, *asked)]


LEDGERS: tuple[tuple[str, Patches], ...] = (
    ("budgets admit everything", answers(ledger_fold, "_refusal", ())),
    ("claims are made without an entry in a ledger", sets(admission.Admissions, "_enter", _refuses_no_ledger)),
    ("an entry that was refused is taken for made", sets(admission, "entered", _as_admitted)),
    ("two cases of one node are admitted in one pass", sets(core_admission, "_taken", lambda *asked: ())),
    ("entries of other cases in ledgers are not seen", sets(core_admission, "_entered", lambda *asked: ())),
    ("entries go while their case goes on", sets(ledgers.Ledgers, "_released", _everything_released)),
    ("entries of standing claims are not made", sets(ledgers.Ledgers, "_claims", lambda *asked: [])),
    ("a budget that has adopted nothing admits", wraps(ledger_fold, "_refusal", _all_adopted)),
    ("no default budget is made", wraps(ledgers.Ledgers, "_create_default", lambda before, self: _done())),
    ("nodes that are down are not counted", sets(account.Account, "unavailable", property(lambda self: self.claimed))),
    ("nodes that are down or claimed are not counted", answers(account.Account, "unavailable", frozenset())),
    (
        "percentages of budgets are rounded up",
        wraps(budget.Amount, "of", _rounded_up),
    ),
    (
        "a node that is down costs nothing",
        wraps(account.Account, "admits", _down_or_allowed),
    ),
    ("a percentage holds for each group only", sets(budget.Budget, "limits_all_groups", property(lambda self: False))),
    ("quarantine has no ceiling", answers(account.Account, "full_of_quarantine", False)),
    ("quarantined nodes are not counted", wraps(account, "_standing", _without_quarantine)),
    ("ledgers do not say who is quarantined", wraps(ledgers.Ledgers, "_claims", _nobody_quarantined)),
    ("claims take nodes that others hold", wraps(marks, "claim", _claim_over_marks)),
    ("a claim takes a node that was not judged", wraps(marks, "claim", _claim_what_was_not_judged)),
    ("the marks of an ended case stay", sets(marks, "release", lambda *asked, **named: lambda seen: None)),
    ("a case is marked on no node", sets(marks, "marked", lambda seen, held: False)),
    ("marks of cases that are gone stay", sets(orphans, "sweep", lambda gone, degraded: lambda seen: None)),
    ("cases are written whatever their version", _unfenced("noderemediations")),
    ("operations are written whatever their version", _unfenced("nodeoperations")),
    ("ledgers are written whatever their version", _unfenced("nodedisruptionbudgets")),
    ("nodes are written whatever their version", _unfenced("nodes")),
    (
        "claims and ledgers are written whatever their version",
        _unfenced("nodes", "noderemediations", "nodedisruptionbudgets"),
    ),
    ("own writes are not seen before the watch tells", sets(informer.Informer, "note", lambda self, key, fact: None)),
    ("what cannot be read is taken for gone", sets(reading.Reader, "_most_careful", lambda self, raw: None)),
)


async def _done() -> Any:
    return ledgers.Done()


# --- attempts --------------------------------------------------------------------------------------------------------


def _random_pod_names() -> list[Patch]:
    before, made = pods.pod_name, [0]

    def pod_name(operation: Any) -> str:
        made[0] += 1
        return f"{before(operation)}-{made[0]}"

    return [Patch(pods, "pod_name", pod_name)]


def _of_no_boot(before: Any, template: Any, name: str, held: Any, operation: Any, *more: Any) -> Any:
    return before(template, name, held, replace(operation, intent_boot_id="") if operation else None, *more)


def _intends_no_boot(view: Any, now: datetime) -> Any:
    known = operation_handlers.operation_plan.write_intent(view, now)
    return tuple(replace(save, after=replace(save.after, intent_boot_id="")) for save in known)


def _without_end(before: Any, policy: Any, *asked: Any) -> Any:
    rungs = tuple(replace(rung, attempts=MANY) for rung in policy.ladder)
    return before(replace(policy, ladder=rungs, attempts_max=MANY), *asked)


def _without_most(before: Any, policy: Any, *asked: Any) -> Any:
    return before(replace(policy, attempts_max=MANY), *asked)


def _tries_since(held: Any, since: datetime) -> int:
    return sum(attempt.started > since for attempt in held.tries)


def _unhealthy(seen: Any, policy: Any, now: datetime) -> Any:
    return Judgement(Health.UNHEALTHY)


ATTEMPTS: tuple[tuple[str, Patches], ...] = (
    ("Pods have random names", _random_pod_names),
    ("Pods are told no boot", wraps(pods, "pod", _of_no_boot)),
    ("the intent names no boot", handler(operation_handlers.HANDLERS, Move.WRITE_INTENT, plan=_intends_no_boot)),
    ("every operation of a case is its attempt", sets(case.Case, "runs", lambda self, operation: True)),
    ("every operation is ours", wraps(operation_view, "ours", lambda before, *asked: True)),
    ("the fault need not show before a Pod", sets(operation_handlers, "judge", _unhealthy)),
    ("attempts in which nothing runs have no end", sets(ladder, "MOST_IDLE", MANY)),
    ("rungs are tried without end", wraps(ladder, "next_rung", _without_end)),
    ("the most attempts of a policy are not counted", wraps(ladder, "next_rung", _without_most)),
    ("a relapse starts with the first rung", sets(ladder, "first_rung", lambda *asked: 0)),
    ("no relapse and no lemon is known", sets(case_view, "known", lambda *asked: None)),
    ("a node that recovers by itself has all attempts left", sets(ladder, "spent", _tries_since)),
    ("follow-ups are left out", sets(case_view, "_after", lambda known, held: ())),
    ("nothing is ever overdue", answers(operation_view, "_deadline", FAR_OFF)),
    ("everything is overdue at once", answers(operation_view, "_deadline", LONG_AGO)),
    ("cooldowns are over at once", sets(guard, "cooldown_until", lambda *asked: None)),
)


# --- the breakers ----------------------------------------------------------------------------------------------------


def _attempted(cases: Any) -> list[breaker.DisruptiveStart]:
    """The starts of attempts alone."""
    return [
        breaker.DisruptiveStart(each.started, held.uid, held.node)
        for held in cases
        for each in held.attempts
        if each.counts and not each.follows
    ]


def _first_only(before: Any, cases: Any) -> Any:
    return before([replace(held, attempts=held.attempts[:1]) for held in cases])


def _last_minute(before: Any, self: Any, starts: Any, now: datetime) -> Any:
    return [start for start in before(self, starts, now) if start > now - timedelta(minutes=1)]


def _all_may_be_lost(before: Any, *asked: Any) -> dict[str, Any]:
    return {**before(*asked), "deleteBarePods": True, "deleteEmptyDirData": True}


BREAKERS: tuple[tuple[str, Patches], ...] = (
    ("drains are told that all may be lost", wraps(encode, "drain_parameters", _all_may_be_lost)),
    ("the breaker never opens", sets(core_admission, "_breaker", lambda *asked: ())),
    ("the breaker counts one start", sets(cache, "starts", lambda cases: [])),
    ("the breaker counts the last minute only", wraps(breaker.Breaker, "recent", _last_minute)),
    ("the breaker counts the first attempt of a case only", wraps(breaker, "starts", _first_only)),
    ("claims that wait for their first attempt are no starts", sets(cache, "starts", _attempted)),
    ("the starts of deleted cases are forgotten", sets(deleted_starts.DeletedStarts, "gone", lambda *asked: None)),
    ("the breaker of a budget never opens", sets(core_admission, "_budget_breakers", lambda *asked: ())),
    ("the breaker of a budget goes by no failures", answers(budget_breaker, "opened", "")),
    ("the breaker of a budget counts no starts", sets(budget_breaker, "rate", lambda *asked: None)),
    ("admitted nodes stay places for Pods of others", sets(places.Places, "without", lambda self, node: self)),
    ("a template that helps nobody stops nobody", answers(failures, "_of_template", "")),
    ("the breaker on failures counts no policy by itself", sets(failures, "MOST", MANY)),
)


# --- evidence, clocks and absence ------------------------------------------------------------------------------------


def _unknown_is_unhealthy(before: Any, *asked: Any) -> Health:
    answer = before(*asked)
    return Health.UNHEALTHY if answer is Health.UNKNOWN else answer


def _believes_the_future() -> list[Patch]:
    day = timedelta(days=1)
    return [*everywhere(trust.AHEAD, day), Patch(trust, "_YOUNGEST", -day)]


def _detectors_never_stop(before: Any, *asked: Any) -> str:
    why: str = before(*asked)
    return "" if why.startswith("is ignored") else why


async def _lead_for_ever(self: Any, task: Any) -> None:
    await asyncio.wait({task})


def _goes_on_without_its_lease() -> list[Patch]:
    leads = property(lambda self: self._leading)
    return [Patch(elector.Elector, "_hold", _lead_for_ever), Patch(elector.Elector, "is_leader", leads)]


def _never_paused(before: Any, self: Any, now: datetime) -> bool:
    return self._leader.is_leader and self._has_news(now)


EVIDENCE: tuple[tuple[str, Patches], ...] = (
    ("stale evidence is believed", wraps(trust, "ignored", lambda *asked: "")),
    ("a drain of another system is over at once", answers(external_drain, "answered", True)),
    ("detectors that have stopped are believed", wraps(trust, "ignored", _detectors_never_stop)),
    ("reporters that are silent are believed", wraps(trust, "silence", lambda *asked: "")),
    ("heartbeats from the future are believed", _believes_the_future),
    ("old heartbeats are believed", lambda: everywhere(trust.STALE_AFTER, timedelta(days=1))),
    ("unknown health counts as a fault", wraps(core_health, "clause_health", _unknown_is_unhealthy)),
    ("who has the wrong time leads", answers(skew.ServerClock, "differs", False)),
    ("a follower writes, too", answers(elector.Elector, "is_leader", True)),
    ("a leader who has lost its Lease goes on", _goes_on_without_its_lease),
    ("a lease that has run out is held", sets(elector.Elector, "_left", lambda self: 1.0)),
    ("the lease of another is taken", sets(elector.Elector, "_taken", lambda self: False)),
    ("a restored server is not noticed", lambda: everywhere(versions.is_older, lambda version, other: False)),
    ("a leader does not wait for its caches", lambda: everywhere(informer.caught_up, nothing)),
    ("absences count against deadlines", sets(absence.Absences, "deadline", lambda self, start, time: start + time)),
    ("absences are not noted for the next leader", sets(leader.Leader, "note", lambda self, name, value: None)),
    ("time in which nobody led counts", sets(presence.Presence, "_begin", lambda self, now: None)),
    ("a pause counts against deadlines", wraps(presence.Presence, "_can_act", _never_paused)),
    ("a process that stood still was there", sets(presence, "FROZEN", timedelta(days=1))),
    ("silent watches are news", sets(presence.Presence, "_has_news", lambda self, now: True)),
    (
        "after an absence nobody waits for news",
        sets(absence.Absences, "time_for_news", lambda self, late, staleness: late),
    ),
)

CONFIRMATION: tuple[tuple[str, Patches], ...] = (
    ("a second source that does not agree holds nothing", lambda: everywhere(guard.unconfirmed, lambda answer: ())),
    ("an answer with a warning is a verdict", sets(answer_reading, "_incomplete", lambda envelope: None)),
    ("operations ask no second source", sets(operation_handlers, "_confirmed", lambda checked, *asked: checked)),
)

FENCES: tuple[tuple[str, Patches], ...] = (*_holds(), *LEDGERS, *ATTEMPTS, *BREAKERS, *EVIDENCE, *CONFIRMATION)
