"""What no machine changes of passes at full size: how much is decided between two turns of the loop, what is read."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from remediator import metrics
from remediator.app import elector
from remediator.clock import Clock
from remediator.controller import admission, measure, pending
from remediator.controller.admission import Admissions
from remediator.controller.keys import ADMISSION, Key
from remediator.controller.perform import Performer
from remediator.controller.reconcile import node as reconcile_node
from remediator.controller.run import Controller
from remediator.core import account, budget, names
from remediator.core.admission import AdmissionFold
from remediator.core.breaker import Breaker
from remediator.core.case import Phase
from remediator.core.census import Census
from remediator.kube.informers import Informers
from remediator.kube.runtime.informer import SLICE as COMPARED
from remediator.kube.runtime.leader import Leader
from remediator.kube.runtime.queue import WorkQueue
from remediator.kube.wire.client import Client
from remediator.settings import Settings
from remediator_sim.apiserver import EmbeddedServer
from tests.builders import a_budget, a_case, a_node, a_policy, a_sick_node, at, pool

SIZES = (1000, 3000)
NOW = at(5)
CLOCK = Clock(lambda: NOW, lambda: 0.0)
WAITING, ENDED = 0.15, 4  # cases for each node


class CountedStore(dict):
    """A store that counts how often each fact is read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = Counter[str]()

    def get(self, key, default=None):
        self.reads[key] += 1
        return super().get(key, default)

    def values(self):
        self.reads.update(self.keys())
        return super().values()

    def most(self) -> int:
        """How often the fact was read that was read most."""
        return max(self.reads.values(), default=0)


class FullSize:
    """A controller whose caches are full and calm: each rack of eight has a full budget, and one or two cases wait."""

    def __init__(self, nodes: int) -> None:
        client, settings = Client(EmbeddedServer().transport()), Settings(breaker=Breaker(starts=10**6))
        informers = Informers(client, CLOCK, names.Namespaces())
        self.leader = Leader(elector(client, settings, CLOCK), CLOCK)
        self.controller = Controller(client, settings, informers, self.leader, CLOCK)
        self.cache, self.nodes = self.controller.cache, nodes
        self.stores = {}
        for informer in self.cache.informers:
            store = self.stores[informer.kind] = CountedStore()
            informer._reflector.store = informer._watched = store
        self._fill()
        self.turn, self.by_turn = 0, Counter[tuple[str, int]]()

    def _fill(self) -> None:
        cache, sick = self.cache, {int(number / WAITING) for number in range(int(self.nodes * WAITING))}
        _keep(cache.policies, a_policy())
        for number in range(self.nodes):
            make = a_sick_node if number in sick else a_node
            labels = {"pool": str(number // 8)}
            _keep(cache.nodes, make(f"n{number}", labels=labels, unschedulable=number % 8 == 7 and number not in sick))
            if number in sick:
                finalizers = (names.CASE_FINALIZER,)
                _keep(cache.cases, a_case(f"open-{number}", node=f"n{number}", phase=Phase.HELD, finalizers=finalizers))
            for past in range(ENDED):
                ended = at(0) - timedelta(days=2 + past)
                over = a_case(f"over-{number}-{past}", node=f"n{number}", ended=ended, created=-9999, finalizers=())
                _keep(cache.cases, over)
        for rack in range(self.nodes // 8):
            _keep(cache.budgets, a_budget(f"rack-{rack}", 1, selector=pool(str(rack))))
        ledgers = cache.ledgers()
        for name, ledger in ledgers.budgets.items():
            _keep(cache.budgets, replace(ledger, shown=account.counts(ledger, ledgers.members[name])))
        _keep(cache.budgets, a_budget(names.DEFAULT_BUDGET, fallback=True, shown=budget.Counts(0, 0, 1, 0)))
        cache.nodes_by.members()

    def decided(self, what: str) -> None:
        """One decision in this turn of the loop."""
        self.by_turn[what, self.turn] += 1

    def most(self, what: str) -> int:
        """The most of these decisions between two turns."""
        return max(count for (each, _), count in self.by_turn.items() if each == what)

    def total(self, what: str) -> int:
        return sum(count for (each, _), count in self.by_turn.items() if each == what)

    async def turning(self) -> None:
        while True:
            self.turn += 1
            await asyncio.sleep(0)

    def reads(self) -> int:
        return sum(store.reads.total() for store in self.stores.values())

    def forget_reads(self) -> None:
        for store in self.stores.values():
            store.reads.clear()


def _keep(informer, fact) -> None:
    informer._reflector._keep(fact.name, fact)


def count(monkeypatch, where, name, full: FullSize) -> None:
    """Count the calls of a function by the turn of the loop that they are made in."""
    original = getattr(where, name)

    def counted(*asked, **named):
        full.decided(name)
        return original(*asked, **named)

    monkeypatch.setattr(where, name, counted)


async def beside(full: FullSize, work) -> None:
    turning = asyncio.ensure_future(full.turning())
    try:
        await work
    finally:
        turning.cancel()


@pytest.fixture(scope="module")
def full_sizes() -> list[FullSize]:
    return [FullSize(nodes) for nodes in SIZES]


@pytest.mark.slow
async def test_an_admission_pass_lets_others_run_and_asks_each_case_and_budget_a_few_times(full_sizes, monkeypatch):
    reads = []
    for full in full_sizes:
        with monkeypatch.context() as patch:
            places = (
                (pending, "case_view"),
                (admission, "considered"),
                (pending.guard, "preconditions"),
                (AdmissionFold, "decide"),
            )
            for where, name in places:
                count(patch, where, name, full)
            performer = Performer(full.controller._admissions.performer.client, full.cache, lambda: False)
            full.forget_reads()
            await beside(full, Admissions(full.cache, performer, Breaker(10**6), CLOCK.monotonic).run(NOW))
        waiting = int(full.nodes * WAITING)
        assert [full.total(name) for _, name in places] == [waiting] * 4
        assert max(full.most(name) for _, name in places) <= pending.SLICE == 25
        cases, budgets = full.stores["NodeRemediation"], full.stores["NodeDisruptionBudget"]
        over = {number for key, number in cases.reads.items() if key.startswith("over-")}
        assert max(over) <= 2, "those that are over with the waiting cases of their node only"
        assert (cases.most() <= 20, budgets.most() <= 8) == (True, True), (cases.most(), budgets.most())
        reads.append(full.reads())
    assert reads[1] <= 3.1 * reads[0], "three times the nodes, three times the reads"


@pytest.mark.slow
async def test_a_sweep_lets_others_run_and_asks_nothing_of_cases_that_are_over(full_sizes, monkeypatch):
    reads = []
    for full in full_sizes:
        with monkeypatch.context() as patch:
            count(patch, reconcile_node, "decide", full)
            queue = full.controller._queue
            queue._queue = WorkQueue("full size")
            count(patch, queue._queue, "add", full)
            full.forget_reads()
            await beside(full, swept(full, queue))
            queue._queue = None
        assert full.total("decide") >= full.nodes
        assert full.most("decide") <= 2 * queue._workers == 32
        assert full.most("add") <= 150, "keys are asked for slice by slice"
        over = [n for key, n in full.stores["NodeRemediation"].reads.items() if key.startswith("over-")]
        assert max(over) <= 2 + ENDED, "by the pass over their node, and no pass is over them"
        reads.append(full.reads())
    assert reads[1] <= 3.1 * reads[0]


async def swept(full: FullSize, queue) -> None:
    """All passes that a sweep asks for, but for those that nothing is served to."""

    async def serve(key):
        if key.kind == "node":
            await full.controller._nodes.reconcile(key.name, NOW)

    queue.add_all()
    tasks = [asyncio.ensure_future(part) for part in (queue._feeding(), queue._queue.run(serve, queue._workers))]
    seen = 0
    while queue._feeds or queue.depth or not seen or full.total("decide") < full.nodes:
        seen += 1
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_what_budgets_count_is_made_anew_slice_by_slice_where_a_selector_changes(full_sizes, monkeypatch):
    for full in full_sizes:
        with monkeypatch.context() as patch:
            count(patch, Census, "put", full)
            _keep(full.cache.budgets, a_budget("new", 1, selector=pool("new")))
            await beside(full, full.cache.nodes_by.refresh())
            _keep(full.cache.nodes, a_node("n0", labels={"pool": "0"}, unschedulable=True))
        assert (full.total("put"), full.most("put")) == (full.nodes + 1, 200)


async def test_after_the_edit_of_a_selector_admission_counts_nodes_anew_slice_by_slice_and_a_pass_over_a_case_none(
    full_sizes, monkeypatch
):
    for full in full_sizes:
        full.by_turn.clear()
        with monkeypatch.context() as patch:
            count(patch, Census, "put", full)
            _keep(full.cache.budgets, a_budget("edited", 1, selector=pool("edited")))
            await beside(full, full.controller._dispatch(Key("case", "open-0"), NOW))
            assert full.total("put") == 0
            await beside(full, full.controller._dispatch(ADMISSION, NOW))
        assert (full.total("put"), full.most("put")) == (full.nodes, 200)


async def test_the_gauges_of_all_budgets_are_counted_slice_by_slice_and_nothing_stays_of_those_that_have_gone(
    full_sizes, monkeypatch
):
    for full in full_sizes:
        full.by_turn.clear()
        with monkeypatch.context() as patch:
            count(patch, account, "limits", full)
            await beside(full, full.controller.measure())
        budgets = len(list(full.cache.budgets))
        assert full.total("limits") == budgets == len(metrics.BUDGET.rows)
        assert full.most("limits") <= measure.SLICE == 100


async def test_what_a_new_leader_compares_with_the_api_server_is_gathered_slice_by_slice(full_sizes):
    for full in full_sizes:
        cases, before = full.cache.cases, full.turn
        await beside(full, cases._versions())
        assert full.turn - before >= len(cases) // COMPARED >= 2
