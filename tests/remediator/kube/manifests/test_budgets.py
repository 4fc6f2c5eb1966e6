"""Budgets under which nothing can ever start, and nodes that no budget selects."""

import pytest

from remediator.core.budget import Amount
from remediator.core.policy import Mode, Urgency
from remediator.kube.manifests.budgets import closed, unguarded
from tests.builders import a_budget, a_node, a_policy, pool

NODES = [a_node(f"n{number}", labels={"pool": "a", "rack": f"r{number % 2}"}) for number in range(10)]


def told(*budgets, nodes=None):
    return list(closed({budget.name: budget for budget in budgets}, nodes, [budget.name for budget in budgets]))


@pytest.mark.parametrize(
    ("budget", "why"),
    [
        (a_budget(most=0), "spec.maxUnavailable 0 lets no node become unavailable"),
        (a_budget(most="0%"), "spec.maxUnavailable 0% lets no node become unavailable"),
        (a_budget(most=None, least="100%"), "spec.minAvailable 100% lets no node become unavailable"),
        (a_budget(max_quarantined=Amount(0)), "spec.maxQuarantined 0 is reached without any node"),
        (a_budget(), ""),
        (a_budget(most="1%"), ""),
        (a_budget(most=None, least="95%"), ""),
        (a_budget(most=None, least=10), ""),
    ],
)
def test_a_budget_that_admits_nothing_however_many_nodes_it_selects_is_told_without_a_cluster(budget, why):
    found = told(budget)
    assert [sentence.split(";")[0] for sentence in found] == (
        [f"budget pool-a: {why}, so nothing ever starts there"] if why else []
    )


@pytest.mark.parametrize(
    ("least", "why"),
    [
        ("95%", "spec.minAvailable 95% of 10 nodes lets none become unavailable"),  # 9.5 is rounded up
        (10, "spec.minAvailable 10 of 10 nodes lets none become unavailable"),
        (9, ""),
        ("90%", ""),
    ],
)
def test_on_the_nodes_of_a_cluster_also_one_that_rounds_to_none_is_told(least, why):
    found = told(a_budget(most=None, least=least), nodes=NODES)
    expected = (
        f"budget pool-a: {why}, so nothing ever starts there; make it so small that one node may become unavailable"
    )
    assert found == ([expected] if why else [])


def test_of_the_groups_of_a_budget_those_are_named_in_which_nothing_can_start():
    by_rack = a_budget(most=None, least=5, group_by="rack")
    (sentence,) = told(by_rack, nodes=NODES[1:])  # 4 nodes of r0, 5 of r1
    assert sentence.startswith(
        "budget pool-a: spec.minAvailable 5 lets no node become unavailable in 2 of 2 groups of rack (r0, r1), so"
    )
    (sentence,) = told(a_budget(most=None, least=4, group_by="rack"), nodes=NODES[1:])
    assert "in 1 of 2 groups of rack (r0), so" in sentence


def test_a_budget_that_selects_no_node_of_the_cluster_is_passed_over():
    assert told(a_budget(most=0, selector=pool("b")), nodes=NODES) == []
    assert told(a_budget(most=0, fallback=True), a_budget("b"), nodes=NODES) == [], "another one selects all nodes"


def test_nodes_on_which_a_policy_acts_and_that_no_budget_selects_are_named():
    nodes = [*NODES, a_node("b1", labels={"pool": "b"}), a_node("b2", labels={"pool": "b"})]
    budget, policy = a_budget(selector=pool("a")), a_policy("p")
    assert list(unguarded([policy], [budget], nodes)) == [
        "policy p is in mode Enforce, and no budget selects 2 of the nodes that it selects (b1, b2): nothing starts "
        "there (BudgetUnready); apply a budget that selects them, or one with fallback: true"
    ]
    assert list(unguarded([policy], [budget, a_budget("default", fallback=True)], nodes)) == []
    only = [
        a_policy("dry", mode=Mode.DRY_RUN),
        a_policy("calls", urgency=Urgency.NEVER),
        a_policy("a", selector=pool("a")),
    ]
    assert list(unguarded(only, [budget], nodes)) == []
