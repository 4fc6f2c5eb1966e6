"""What some plans have besides: Pods that fill the GPUs, zones, versions in common."""

from dataclasses import replace
from statistics import median

import pytest

from remediator_sim.simulation import variants
from remediator_sim.simulation.schedule import KINDS, plan_of
from tests.simulation.small import PLANS

FORTY = [plan_of(seed) for seed in range(1, 41)]
PLAN = next(iter(PLANS.values()))


def test_every_plan_has_twenty_nodes_ten_faults_and_a_crash_at_least():
    for plan in FORTY:
        kinds = [step.kind for step in plan.steps]
        assert len(plan.nodes) >= 20
        assert kinds.count("fault") >= 10
        assert "crash" in kinds


@pytest.mark.parametrize(
    "word",
    [
        variants.GPUS,
        variants.ZONES,
        variants.GANGS,
        variants.REPORTERS,
        variants.NEW_NODES,
        variants.REQUESTS,
        variants.HANDS,
        variants.IDLE_TESTS,
        variants.NEIGHBOURS,
        variants.TAKE_OUTS,
    ],
)
def test_of_forty_plans_three_at_least_have_it_and_most_have_not(word):
    assert 3 <= sum(word in plan.shows for plan in FORTY) <= 20


def test_of_two_hundred_plans_six_in_ten_are_small_and_each_way_to_be_large_has_twelve_at_least():
    ways = [variants.large(seed) for seed in range(1, 201)]
    assert ways.count("") >= 120
    assert min(ways.count(way) for way in variants.LARGE) >= 12


def test_of_two_hundred_plans_twelve_at_least_have_checks_that_are_new_and_most_of_these_are_of_an_upgrade():
    new = [plan for plan in map(plan_of, range(1, 201)) if variants.NEW_CRITERIA in plan.shows]
    assert len(new) >= 12
    assert len(new) / 2 < sum(variants.UPGRADED in plan.shows for plan in new) < len(new)


def test_the_median_plan_has_twenty_nodes_and_ten_faults():
    assert median(len(plan.nodes) for plan in FORTY) == 20
    assert median([step.kind for step in plan.steps].count("fault") for plan in FORTY) == 10


def test_two_hundred_plans_have_every_kind_of_step_but_those_of_written_plans():
    drawn = {step.kind for seed in range(1, 201) for step in plan_of(seed).steps}
    assert KINDS.keys() - drawn == {"events", "take-gpus"}  # test_features.py; within `in-test`


def test_a_condition_that_a_silent_reporter_writes_is_one_that_a_fault_of_the_plan_shows():
    for plan in FORTY:
        ill = {step["condition"] for step in plan.steps if step.kind == "fault"}
        assert variants.on_change(plan) <= ill
        assert any(step.kind == "quiet-reporter" for step in plan.steps) == (variants.REPORTERS in plan.shows)


def test_pods_hold_no_more_gpus_than_a_node_has_and_each_pod_that_is_there_has_its_share():
    full = replace(PLAN, shows=(variants.GPUS,))
    sizes = {name: variants.gpus_of_pods(full, name, 3) for name in plan_of(1).nodes}
    assert all(len(held) >= 3 and 4 <= sum(held) <= 8 for held in sizes.values())
    assert variants.gpus_of_pods(PLAN, "gpu-01", 3) == [0, 0, 0]


def test_a_zone_that_is_cut_off_has_three_nodes_at_least():
    for plan in FORTY:
        for step in plan.steps:
            if step.kind == "cut-off" and step["label"] == variants.ZONE:
                zones = [variants.labels(plan, name)[variants.ZONE] for name in plan.nodes]
                assert zones.count(step["value"]) >= 3


def test_nodes_of_one_version_fall_ill_together_and_one_of_the_other():
    plan = next(plan for plan in FORTY if variants.VERSIONS in plan.shows and variants.ZONES not in plan.shows)
    (rule,) = [dict(words)["correlation"] for _, words in plan.specs if "correlation" in dict(words)]
    assert rule["nodes"] <= variants.ALIKE
    assert {variants.kernel(plan, name) for name in plan.nodes} == set(variants.KERNELS)
    assert {variants.kernel(PLAN, name) for name in plan.nodes} == {""}


def test_a_gang_has_pods_on_three_nodes_where_policies_limit_what_ends():
    plan = next(plan for plan in FORTY if variants.GANGS in plan.shows)
    gangs = [variants.gang(plan, name) for name in plan.nodes]
    assert gangs[:4] == ["job-0", "job-0", "job-0", "job-1"]
    assert variants.gang(PLAN, "gpu-01") == "job-gpu-01"
    assert any("maxBlastRadius" in dict(words) for _, words in plan.specs)
    assert any(sum(variants.gpus_of_pods(plan, name, 3)) for name in plan.nodes)
