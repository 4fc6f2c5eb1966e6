"""Pods are placed as by kube-scheduler with the scores of a policy: the cases of talks, and a made-up list."""

from itertools import pairwise
from random import Random

import pytest

from remediator.scheduler.packing.points import POINTS, PlacementOutcome, Score
from remediator.scheduler.packing.replay.engine import ReplayFleet, ScoringPolicy
from remediator.scheduler.packing.replay.policies import policies
from remediator.scheduler.packing.replay.report import MARKS, play, summary, workload_of
from remediator.scheduler.packing.replay.synthetic import synthetic
from remediator.scheduler.packing.replay.trace import LOAD, arrival, machine, tuned
from remediator.scheduler.packing.room import CARD

TRACE = synthetic()
POLICIES = policies(workload_of(TRACE))
OURS = [ScoringPolicy(score, POINTS[score]) for score in Score]


def spread(outcome: PlacementOutcome) -> int:
    """As the default plugins of kube-scheduler do."""
    return outcome.rest


def refused(policy: ScoringPolicy, cards: int, asked: tuple[int, ...], seed: int) -> int:
    """How many of these Pods have no place on two nodes of so many cards."""
    machines = [machine(name, 64_000, 1000, cards, "A100") for name in ("a", "b")]
    fleet = ReplayFleet(machines, policy, Random(seed))
    return sum(fleet.place(arrival(1000, 1, count)) is None for count in asked)


@pytest.mark.parametrize("policy", OURS, ids=lambda policy: policy.name)
@pytest.mark.parametrize(
    ("cards", "asked"),
    [
        pytest.param(2, (1, 1, 2), id="two nodes of two GPUs"),
        pytest.param(4, (2, 1, 2), id="two nodes of four"),
        pytest.param(4, (2, 1, 1, 4), id="two nodes of four, one Pod that needs a whole node"),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_packed_pods_leave_room_for_the_last_one_whatever_chance_decides(policy, cards, asked, seed) -> None:
    assert refused(policy, cards, asked, seed) == 0


@pytest.mark.parametrize(("cards", "asked"), [(2, (1, 1, 2)), (4, (2, 1, 1, 4))])
def test_spread_pods_leave_the_last_one_waiting(cards: int, asked: tuple[int, ...]) -> None:
    assert refused(ScoringPolicy("spread", spread), cards, asked, 1) == 1


def test_pods_ask_for_thirteen_tenths_of_the_cards_in_an_order_of_the_seed() -> None:
    (nodes, pods), (_, again), (_, others) = (tuned(TRACE, Random(seed)) for seed in (1, 1, 2))
    assert sorted(nodes) == sorted(TRACE.machines)
    assert abs(sum(pod.milli for pod in pods) - LOAD * TRACE.capacity) <= 8 * CARD
    assert pods == again != others


@pytest.mark.slow
def test_a_replay_is_the_same_for_the_same_seed() -> None:
    assert play(TRACE, POLICIES["fgd"], 3) == play(TRACE, POLICIES["fgd"], 3)


@pytest.mark.slow
def test_fgd_with_fullness_beats_packing_by_gpus_best_fit_and_fgd_alone_on_the_made_up_list() -> None:
    """94.9 % in use with the workload pinned, 90.5 to 92 % with the others, and 93.4 % where it is learnt."""
    used = {name: play(TRACE, POLICIES[name], 42).allocated for name in POLICIES if name != "FGD, first node"}
    pinned, learnt = used.pop("fgd, pinned")[130], used.pop("fgd")[130]
    assert pinned > 94
    assert learnt > 92.5
    assert all(found[130] < 92 for found in used.values())


def test_no_more_is_in_use_than_has_arrived_and_than_there_is() -> None:
    run = play(TRACE, POLICIES["BestFit"], 5)
    assert all(run.allocated[mark] <= min(mark + 8, 100) for mark in MARKS)
    assert all(low <= high for low, high in pairwise(run.allocated[mark] for mark in MARKS))
    assert all(0 <= run.fragmented[mark] <= 100 - run.allocated[mark] + 1e-6 for mark in MARKS)
    assert 0 <= run.largest_refused <= run.largest


def test_a_summary_is_the_mean_of_runs() -> None:
    runs = [play(TRACE, POLICIES["packing"], seed) for seed in (1, 2)]
    found = summary("x", "packing", runs)
    assert found.allocated[130] == pytest.approx(sum(run.allocated[130] for run in runs) / 2, abs=0.01)
    assert (found.seeds, found.deviation > 0) == (2, True)
