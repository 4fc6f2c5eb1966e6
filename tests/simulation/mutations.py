"""Small changes of the product, each of which takes one fence, one look-again or one row of a table away."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from remediator.controller import cache, case_view, deleted_starts, fleet, ledgers, marks, operation_view, perform, pods
from remediator.controller.handlers import base as handlers_base
from remediator.controller.handlers import case as case_handlers
from remediator.controller.handlers import operation as operation_handlers
from remediator.core import budget, case_table, evidence, guard, ladder, operation_table
from remediator.core.case_table import Step
from remediator.core.evidence import Health
from remediator.core.operation_table import Move
from remediator.core.table import Table
from remediator.kube.runtime import elector, informer
from remediator.tickets.reconcile import states


class Patch(NamedTuple):
    """One name of one module or class, or one key of a table of handlers, and what stands there instead."""

    owner: Any
    name: Any
    value: Any

    def apply(self) -> None:
        """Break this process."""
        assert self.name in self.owner if isinstance(self.owner, dict) else hasattr(self.owner, self.name), self.name
        if isinstance(self.owner, dict):
            self.owner[self.name] = self.value
        else:
            setattr(self.owner, self.name, self.value)


Patches = Callable[[], Sequence[Patch]]


def _tables() -> Iterator[tuple[str, Patches]]:
    """Each row of both tables left out, and each condition of each row."""
    for module, name in ((case_table, "CASE_TABLE"), (operation_table, "OPERATION_TABLE")):
        rows = getattr(module, name).rows
        for index, row in enumerate(rows[:-1]):
            asks = " ".join(f"{word}={getattr(value, 'name', value)}" for word, value in row.asks.items())
            label = f"{name.removesuffix('_TABLE').lower()} table, {asks} -> {row.result.name}"
            yield f"{label}: no row", _table(module, name, (*rows[:index], *rows[index + 1 :]))
            for word in row.asks if len(row.asks) > 1 else ():
                looser = replace(row, asks={key: value for key, value in row.asks.items() if key != word})
                yield f"{label}: without {word}", _table(module, name, (*rows[:index], looser, *rows[index + 1 :]))


def _table(module: Any, name: str, rows: Any) -> Patches:
    return lambda: [Patch(module, name, Table(tuple(rows)))]


def _handlers() -> Iterator[tuple[str, Patches]]:
    """Each look-again left out."""
    for handlers in (case_handlers.HANDLERS, operation_handlers.HANDLERS):
        for step, handler in handlers.items():
            if handler.check is not None:
                yield f"{step.name} is not looked at again", _unchecked(handlers, step)
    yield (
        "no second look at what stops, before an operation disturbs",
        _set(operation_handlers, "_still_wanted", _as_it_is),
    )


def _unchecked(handlers: Any, step: Step | Move) -> Patches:
    return lambda: [Patch(handlers, step, replace(handlers[step], check=None))]


def _set(owner: Any, name: str, value: Any) -> Patches:
    return lambda: [Patch(owner, name, value)]


async def _as_it_is(view: Any, dependencies: Any) -> Any:
    return view


def _without_block(reason: str) -> Patches:
    """A hold that holds nothing."""

    def patches() -> list[Patch]:
        before, stops = guard.preconditions, guard.stops

        def preconditions(*asked: Any, **named: Any) -> Any:
            return tuple(block for block in before(*asked, **named) if block.reason.value != reason)

        def fewer(*asked: Any, **named: Any) -> Any:
            return tuple(block for block in stops(*asked, **named) if block.reason.value != reason)

        return [Patch(guard, "preconditions", preconditions), Patch(guard, "stops", fewer)]

    return patches


def _attempted(cases: Any) -> list[datetime]:
    """The starts of attempts alone."""
    return [each.started for case in cases for each in case.attempts if each.counts and not each.follows]


def _healthy_without_proof() -> list[Patch]:
    return [Patch(evidence, "mistrust", lambda *asked: "")]


def _unknown_is_unhealthy() -> list[Patch]:
    before = evidence._health

    def health(*asked: Any) -> Health:
        answer = before(*asked)
        return Health.UNHEALTHY if answer is Health.UNKNOWN else answer

    return [Patch(evidence, "_health", health)]


def _claim_over_marks() -> list[Patch]:
    before = marks.claim

    def claim(case: Any, judged: Any, gone: frozenset[str] = frozenset()) -> Any:
        return lambda node: before(case, node, node.marks | gone)(node)

    return [Patch(marks, "claim", claim)]


async def _never_paused(self: Any) -> bool:
    return False


def _random_pod_names() -> list[Patch]:
    before, made = pods.pod_name, [0]

    def pod_name(operation: Any) -> str:
        made[0] += 1
        return f"{before(operation)}-{made[0]}"

    return [Patch(pods, "pod_name", pod_name)]


def _everything_released() -> list[Patch]:
    return [Patch(ledgers.Ledgers, "_released", lambda self: frozenset(case.uid for case in self.cache.cases))]


def _no_overlay() -> list[Patch]:
    return [Patch(informer.Informer, "note", lambda self, key, fact: None)]


def _without_static_pods() -> list[Patch]:
    return [Patch(module, "static_pod", lambda seen: "") for module in (fleet, handlers_base)]


def _create_again() -> list[Patch]:
    return [Patch(states.TABLES, states.TicketState.CREATING, states._NO_ISSUE)]


def _unfenced(word: str) -> Patches:
    """Writes of a kind that do not name the version that they were decided on."""

    def patches() -> list[Patch]:
        before = perform.Performer._patch

        async def patch(self: Any, kind: Any, name: str, body: Any, **where: Any) -> None:
            if kind.plural == word:
                body = {
                    **body,
                    "metadata": {k: v for k, v in body.get("metadata", {}).items() if k != "resourceVersion"},
                }
            await before(self, kind, name, body, **where)

        return [Patch(perform.Performer, "_patch", patch)]

    return patches


LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
FENCES: tuple[tuple[str, Patches], ...] = (
    ("budgets admit everything", _set(guard, "_budgets", lambda *asked: ())),
    ("the breaker never opens", _set(guard, "_breaker", lambda *asked: ())),
    ("the breaker counts one start", _set(cache, "starts", lambda cases: [])),
    ("claims that wait for their first attempt are no starts", _set(cache, "starts", _attempted)),
    ("the starts of deleted cases are forgotten", _set(deleted_starts.DeletedStarts, "gone", lambda *asked: None)),
    ("two cases of one node are admitted in one pass", _set(guard, "_taken", lambda *asked: ())),
    ("entries of other cases in ledgers are not seen", _set(guard, "_entered", lambda *asked: ())),
    ("nodes that are down are not counted", _set(budget.Account, "unavailable", property(lambda self: frozenset()))),
    ("entries go while their case goes on", _everything_released),
    (
        "entries of standing claims are not made",
        _set(ledgers.Ledgers, "_claims", lambda *asked: []),
    ),
    ("claims take nodes that others hold", _claim_over_marks),
    ("the marks of an ended case stay", _set(marks, "release", lambda *asked, **named: lambda node: None)),
    ("a case is marked on no node", _set(marks, "marked", lambda node, case: False)),
    ("Pods have random names", _random_pod_names),
    ("attempts have no end", _set(ladder, "MOST_IDLE", 10**6)),
    ("a follower writes, too", _set(elector.Elector, "is_leader", property(lambda self: True))),
    ("the lease of another is taken", _set(elector.Elector, "_taken", lambda self: False)),
    ("own writes are not seen before the watch tells", _no_overlay),
    ("a pause is not read live", _set(perform.Performer, "paused", _never_paused)),
    ("stale evidence is believed", _healthy_without_proof),
    ("unknown health counts as a fault", _unknown_is_unhealthy),
    ("cases are written whatever their version", _unfenced("noderemediations")),
    ("operations are written whatever their version", _unfenced("nodeoperations")),
    ("ledgers are written whatever their version", _unfenced("nodedisruptionbudgets")),
    ("nodes are written whatever their version", _unfenced("nodes")),
    ("nothing is ever overdue", _set(operation_view, "_deadline", lambda *asked: datetime(2100, 1, 1, tzinfo=UTC))),
    ("everything is overdue at once", _set(operation_view, "_deadline", lambda *asked: LONG_AGO)),
    ("every operation is ours", _set(operation_view, "ours", lambda *asked: True)),
    ("cooldowns are over at once", _set(guard, "cooldown_until", lambda *asked: None)),
    ("follow-ups are left out", _set(case_view, "_after", lambda cache, case: ())),
    *((f"{word} holds nothing", _without_block(word)) for word in ("Paused", "PolicyPaused", "DryRun", "HeldByUser")),
    *((f"{word} holds nothing", _without_block(word)) for word in ("OptedOut", "CordonedByUser", "NodeBusy")),
    ("ControlPlane holds nothing", _without_block("ControlPlane")),
    ("static Pods of the control plane are not seen", _without_static_pods),
    ("a create whose answer is unknown is repeated without a search", _create_again),
    ("HealthUnknown holds nothing", _without_block("HealthUnknown")),
    *((f"{word} holds nothing", _without_block(word)) for word in ("PolicyFailing", "SharedCause")),
    ("quarantine has no ceiling", _set(budget.Account, "full_of_quarantine", property(lambda self: False))),
)
MUTATIONS: dict[str, Patches] = dict((*FENCES, *_handlers(), *_tables()))

# Those of which it is known which seed finds them; what no seed has found yet may change nothing that is promised.
PROVEN = (
    "the breaker never opens",
    "budgets admit everything",
    "claims that wait for their first attempt are no starts",
    "entries go while their case goes on",
    "nodes that are down are not counted",
    "claims take nodes that others hold",
    "a case is marked on no node",
    "the marks of an ended case stay",
    "quarantine has no ceiling",
    "PolicyFailing holds nothing",
    "SharedCause holds nothing",
    "ControlPlane holds nothing",
    "static Pods of the control plane are not seen",
    "a create whose answer is unknown is repeated without a search",
    "the breaker counts one start",
    "Pods have random names",
    "unknown health counts as a fault",
    "nothing is ever overdue",
    "everything is overdue at once",
    "Paused holds nothing",
    "PolicyPaused holds nothing",
    "case table, ended=True marks=True -> RELEASE: no row",
    "case table, tried=REPORTED -> RECORD: no row",
    "case table, claimed=False -> CLAIM: no row",
    "case table, diagnosed=False -> DIAGNOSE: no row",
    "case table, tried=OPEN -> WATCH: no row",
    "case table, proof=PASSED -> RECOVER: no row",
    "case table, health=UNHEALTHY rungs=True -> START: no row",
    "operation table, ended=True -> NOTHING: no row",
)
