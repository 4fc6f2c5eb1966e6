"""Answers that stand ready: what is said of a node depends on its row alone, and no more is made than is asked for."""

import gc
import json
import tracemalloc
import weakref
from collections import Counter

import pytest

from remediator.scheduler.asked import SLICE, AskedNames
from remediator.scheduler.attributes.catalog import facts_of
from remediator.scheduler.extender import SHAPES
from remediator.scheduler.gang.topology import Topology
from remediator.scheduler.packing.fragmentation import Fragmentation
from remediator.scheduler.packing.room import CARD, Task
from remediator.scheduler.reasons import VerdictReason
from remediator.scheduler.responses import ExtenderAnswers
from remediator.scheduler.row import NodeState
from remediator.scheduler.score import Scorer
from remediator.scheduler.verdict import Shape

GPU, MIB = "nvidia.com/gpu", 2**20
R = VerdictReason
SHAPE = Shape(((GPU, 2),), cpu=8000)


class Counting(Scorer):
    """Counts how often a score is worked out."""

    def __init__(self) -> None:
        super().__init__(fragmentation=Fragmentation({Task(4000, 1, CARD, GPU): 1.0}))
        self.worked_out: Counter[int] = Counter()

    def of(self, reason: VerdictReason, row: NodeState, shape: Shape) -> int:
        if reason is not R.UNKNOWN_NODE:
            self.worked_out[row.cpu] += 1
        return super().of(reason, row, shape)


@pytest.fixture
def scorer() -> Counting:
    return Counting()


def fleet(nodes: int, rows: int) -> dict[str, NodeState]:
    """Nodes that differ in free CPU and, which nobody asks for, in the labels of their GPUs."""
    labels = [facts_of({f"{GPU}.product": product}) for product in ("A100", "H100")]
    return {
        f"n{index}": NodeState(R.FIT, ((GPU, 8),), ((GPU, 1),), labels[index % 2], cpu=1000 * (8 + index % rows))
        for index in range(nodes)
    }


def test_nodes_that_are_alike_are_scored_once_and_those_that_nobody_asks_about_never(scorer: Counting) -> None:
    rows = fleet(1000, 10)
    answers = ExtenderAnswers(SHAPE, rows, scorer)
    assert not scorer.worked_out, "a filter needs no score"
    asked = [name for name, row in rows.items() if row.cpu != 8000]
    found = [json.loads(answers.hosts[name]) for name in (*asked, *asked)]
    assert [entry["Host"] for entry in found] == [*asked, *asked]
    assert len({entry["Score"] for entry in found}) == 9
    assert scorer.worked_out == {1000 * cores: 1 for cores in range(9, 18)}


def test_another_way_to_score_counts_for_a_node_from_when_it_is_renewed_and_for_others_from_then_on(
    scorer: Counting,
) -> None:
    rows = fleet(3, 1)
    answers, before = ExtenderAnswers(SHAPE, rows, scorer), {}
    for name in ("n0", "n1"):
        before[name] = answers.hosts[name]
    other = Scorer(fragmentation=Fragmentation({Task(4000, 8, CARD, GPU): 1.0}))
    answers.score_by(other)
    assert answers.hosts["n0"] == before["n0"]
    answers.renew("n1", rows["n1"])
    assert answers.hosts["n1"].endswith(answers.hosts["n2"].partition(b",")[2])
    assert answers.hosts["n1"] != before["n1"]


class Hashed(NodeState):
    """Counts how often it is looked up, or put into a table."""

    times = 0

    def __hash__(self) -> int:
        Hashed.times += 1
        return super().__hash__()


def test_a_row_that_1000_nodes_share_is_looked_up_once_for_a_new_shape_of_pod(scorer: Counting) -> None:
    """Put into the table of judged rows once as what was seen, and once as what counts of it."""
    row = Hashed(R.FIT, ((GPU, 8),))
    answers = ExtenderAnswers(SHAPE, {f"n{index}": row for index in range(1000)}, scorer)
    assert Hashed.times < 10
    assert json.loads(answers.hosts["n0"])["Score"] == json.loads(answers.hosts["n999"])["Score"]


def test_what_stands_ready_for_a_list_follows_another_way_to_score_also_of_strangers(scorer: Counting) -> None:
    """So many strangers that no node that is renewed shares a part of the answer with all of them."""
    rows, other = fleet(200, 10), Counting()
    again = AskedNames([*rows, *(f"nobody-{index}" for index in range(2 * SLICE))])
    answers = ExtenderAnswers(SHAPE, rows, scorer)
    before = answers.scored(again.sent, again)
    assert answers.scored(again.sent, again) == before
    other.nearer = lambda points, level, levels: points + 1  # type: ignore[method-assign]
    answers.score_by(other)
    for name, row in rows.items():
        answers.renew(name, row)
    found = json.loads(b"[%s]" % b",".join(answers.scored(again.sent, again)))
    assert [entry["Score"] - 1 for entry in found] == [
        entry["Score"] for entry in json.loads(b"[%s]" % b",".join(before))
    ]


def test_a_node_that_is_gone_has_the_score_of_a_stranger_and_no_refusal(scorer: Counting) -> None:
    rows = {"n": NodeState(R.FIT, ((GPU, 1),))}
    answers = ExtenderAnswers(SHAPE, rows, scorer)
    assert answers.unresolvable.keys() == {"n"}
    answers.put("n", None)
    assert not answers.unresolvable
    assert json.loads(answers.hosts["n"])["Score"] == json.loads(answers.hosts["nobody"])["Score"] > 0
    assert "n" not in answers.hosts, "nothing is kept of a stranger"


shapes = pytest.mark.parametrize("shape", [SHAPE, SHAPE._replace(gang=True)], ids=["a Pod", "a Pod of a gang"])


@shapes
def test_answers_that_nobody_holds_any_more_are_freed_without_the_collector(scorer: Counting, shape: Shape) -> None:
    """At 5,000 nodes they are megabytes of each shape, and cycles wait a day (collector.py)."""
    rows = fleet(10, 10)
    answers = ExtenderAnswers(shape, rows, scorer, topology=Topology(["rack", "zone"]))
    for entries in (answers.hosts, *answers.nearer):
        assert all(entries[name] for name in rows)
    copied = answers.copy()
    held = [weakref.ref(part) for part in (answers, answers.hosts, *answers.nearer, copied, copied.hosts)]
    gc.disable()
    try:
        del answers, entries, copied
        assert [ref() for ref in held] == [None] * len(held)
    finally:
        gc.enable()


@shapes
def test_of_5000_nodes_the_answers_for_all_shapes_together_take_48_mib(scorer: Counting, shape: Shape) -> None:
    rows = fleet(5000, 10)
    tracemalloc.start()
    try:
        answers = ExtenderAnswers(shape, rows, scorer, topology=Topology(["rack", "zone"]))
        for entries in (answers.hosts, *answers.nearer):
            assert all(entries[name] for name in rows)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert SHAPES * taken < 48 * MIB


def test_what_stands_ready_for_a_list_of_5000_names_takes_16_mib_for_all_shapes_together(scorer: Counting) -> None:
    rows = {f"gpu-node-{name}.pool-a.example": row for name, row in fleet(5000, 10).items()}
    answers, again = ExtenderAnswers(SHAPE, rows, scorer), AskedNames(list(rows))
    assert len(answers.scored(again.sent, None)) == 1  # what is kept of each node is counted above
    tracemalloc.start()
    try:
        assert len(answers.filtered(again.sent, again)) == len(answers.scored(again.sent, again)) == len(again.slices)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert SHAPES * taken < 16 * MIB


def test_what_stands_ready_for_a_list_goes_with_the_list(scorer: Counting) -> None:
    """16 shapes kept parts of lists that nobody asked about again: 10 MiB of each that names 11,000 strangers."""
    rows, strangers = fleet(10, 10), [f"{index:05d}{85 * 'x'}" for index in range(10_900)]
    answers = ExtenderAnswers(SHAPE, rows, scorer)
    answers.scored(strangers, None)  # how each is written as JSON is kept for all shapes together
    tracemalloc.start()
    try:
        again = AskedNames(strangers)
        before, _ = tracemalloc.get_traced_memory()
        answers.filtered(again.sent, again), answers.scored(again.sent, again)
        standing, _ = tracemalloc.get_traced_memory()
        del again
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert standing - before > MIB
    assert left < MIB / 8
    for name, row in rows.items():
        answers.put(name, row)  # of a list that is gone nothing moves
    other = AskedNames(["n0", "nobody"])
    assert len(answers.filtered(other.sent, other)) == len(answers.scored(other.sent, other)) == 1
