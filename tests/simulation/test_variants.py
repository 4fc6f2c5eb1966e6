"""What some plans have besides: Pods that fill the GPUs, zones, versions in common."""

from collections import Counter
from dataclasses import replace
from itertools import combinations
from math import comb
from statistics import median

from remediator_sim.simulation import parts, variants
from remediator_sim.simulation.parts import dealt
from remediator_sim.simulation.schedule import CARDS, KINDS, plan_of
from tests.simulation.small import PLANS

PLANS_OF_SEEDS = [plan_of(seed) for seed in range(1, 201)]
DEALS = [dealt(seed, CARDS) for seed in range(1, 201)]
PLAN = next(iter(PLANS.values()))


def test_every_plan_has_twenty_nodes_ten_faults_and_a_crash_at_least():
    for plan in PLANS_OF_SEEDS:
        kinds = [step.kind for step in plan.steps]
        assert len(plan.nodes) >= 20
        assert kinds.count("fault") >= 10
        assert "crash" in kinds


def test_of_two_hundred_plans_eight_at_least_have_each_part_and_most_have_not():
    having = Counter(name for deal in DEALS for name in deal.parts)
    assert having.keys() == parts.SHARES.keys()
    assert min(having.values()) >= 8
    assert max(having.values()) <= 50


def test_seven_of_eight_plans_have_two_parts_and_two_kinds_of_step_at_most_and_the_others_ten_parts_at_least():
    few, much = [[deal for deal in DEALS if deal.rich is rich] for rich in (False, True)]
    assert (len(few), len(much)) == (175, 25)
    assert {max(len(deal.parts), len(deal.kinds)) for deal in few} == {2}
    assert min(len(deal.parts) for deal in much) >= 10


def test_of_two_hundred_plans_seven_at_least_are_dealt_each_kind_that_is_drawn_by_its_weight():
    kinds = Counter(name for deal in DEALS for name in deal.kinds)
    assert kinds.keys() == {kind.name for kind in KINDS.values() if kind.weight}
    assert min(kinds.values()) >= 7


def test_of_the_first_thousand_plans_nine_in_ten_pairs_of_parts_stand_in_one_plan():
    together = {pair for seed in range(1, 1001) for pair in combinations(sorted(dealt(seed, CARDS).parts), 2)}
    assert len(together) >= 0.9 * comb(len(parts.SHARES), 2)


def test_of_two_hundred_plans_eight_at_least_have_checks_that_are_new_and_most_of_these_are_of_an_upgrade():
    new = [plan for plan in PLANS_OF_SEEDS if variants.NEW_CRITERIA in plan.shows]
    assert len(new) >= 8
    assert len(new) / 2 < sum(variants.UPGRADED in plan.shows for plan in new) < len(new)


def test_the_median_plan_has_twenty_nodes_and_ten_faults():
    assert median(len(plan.nodes) for plan in PLANS_OF_SEEDS) == 20
    assert median([step.kind for step in plan.steps].count("fault") for plan in PLANS_OF_SEEDS) == 10


def test_two_hundred_plans_have_every_kind_of_step_but_those_of_written_plans():
    drawn = {step.kind for plan in PLANS_OF_SEEDS for step in plan.steps}
    assert KINDS.keys() - drawn == {"events", "take-gpus"}  # test_features.py; within `in-test`


def test_a_condition_that_a_silent_reporter_writes_is_one_that_a_fault_of_the_plan_shows():
    for plan in PLANS_OF_SEEDS:
        ill = {step["condition"] for step in plan.steps if step.kind == "fault"}
        assert variants.on_change(plan) <= ill
        assert any(step.kind == "quiet-reporter" for step in plan.steps) == (variants.REPORTERS in plan.shows)


def test_pods_hold_no_more_gpus_than_a_node_has_and_each_pod_that_is_there_has_its_share():
    full = replace(PLAN, shows=(variants.GPUS,))
    sizes = {name: variants.gpus_of_pods(full, name, 3) for name in plan_of(1).nodes}
    assert all(len(held) >= 3 and 4 <= sum(held) <= 8 for held in sizes.values())
    assert variants.gpus_of_pods(PLAN, "gpu-01", 3) == [0, 0, 0]


def test_a_zone_that_is_cut_off_has_three_nodes_at_least():
    for plan in PLANS_OF_SEEDS:
        for step in plan.steps:
            if step.kind == "cut-off" and step["label"] == variants.ZONE:
                zones = [variants.labels(plan, name)[variants.ZONE] for name in plan.nodes]
                assert zones.count(step["value"]) >= 3


def test_nodes_of_one_version_fall_ill_together_and_one_of_the_other():
    plan = next(plan for plan in PLANS_OF_SEEDS if variants.VERSIONS in plan.shows and variants.ZONES not in plan.shows)
    (rule,) = [dict(words)["correlation"] for _, words in plan.specs if "correlation" in dict(words)]
    assert rule["nodes"] <= variants.ALIKE
    assert {variants.kernel(plan, name) for name in plan.nodes} == set(variants.KERNELS)
    assert {variants.kernel(PLAN, name) for name in plan.nodes} == {""}


def test_a_gang_has_pods_on_three_nodes_where_policies_limit_what_ends():
    plan = next(plan for plan in PLANS_OF_SEEDS if variants.GANGS in plan.shows)
    gangs = [variants.gang(plan, name) for name in plan.nodes]
    assert gangs[:4] == ["job-0", "job-0", "job-0", "job-1"]
    assert variants.gang(PLAN, "gpu-01") == "job-gpu-01"
    assert any("maxBlastRadius" in dict(words) for _, words in plan.specs)
    assert any(sum(variants.gpus_of_pods(plan, name, 3)) for name in plan.nodes)
