"""What some plans have besides: Pods that fill the GPUs, zones, versions in common."""

from dataclasses import replace

import pytest

from remediator_sim.simulation import variants
from remediator_sim.simulation.schedule import plan_of
from tests.simulation.small import PLANS

FORTY = [plan_of(seed) for seed in range(1, 41)]
PLAN = next(iter(PLANS.values()))


def test_every_plan_has_twenty_nodes_ten_faults_and_a_crash_at_least():
    for plan in FORTY:
        kinds = [step.kind for step in plan.steps]
        assert len(plan.nodes) >= 20
        assert kinds.count("fault") >= 10
        assert "crash" in kinds


@pytest.mark.parametrize("word", [variants.GPUS, variants.ZONES, variants.VERSIONS, variants.GANGS])
def test_of_forty_plans_three_at_least_have_it_and_most_have_not(word):
    assert 3 <= sum(word in plan.shows for plan in FORTY) <= 20


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
    plan = next(plan for plan in FORTY if plan.shows == (variants.VERSIONS,))
    ((_, words),) = plan.specs
    assert dict(words)["correlation"]["nodes"] <= variants.ALIKE
    assert {variants.kernel(plan, name) for name in plan.nodes} == set(variants.KERNELS)
    assert {variants.kernel(PLAN, name) for name in plan.nodes} == {""}


def test_a_gang_has_pods_on_three_nodes_where_policies_limit_what_ends():
    plan = next(plan for plan in FORTY if variants.GANGS in plan.shows)
    gangs = [variants.gang(plan, name) for name in plan.nodes]
    assert gangs[:4] == ["job-0", "job-0", "job-0", "job-1"]
    assert variants.gang(PLAN, "gpu-01") == "job-gpu-01"
    assert any("maxBlastRadius" in dict(words) for _, words in plan.specs)
    assert any(sum(variants.gpus_of_pods(plan, name, 3)) for name in plan.nodes)
