"""Budgets with groups, from objects of the API server."""

import pytest

from remediator.clock import SYSTEM
from remediator.controller.explain import explain, snapshot
from remediator.controller.reconcile.node import NodeReconciler
from remediator.core.breaker import Breaker
from tests.harness.admission import replica
from tests.harness.controller import WORKERS
from tests.harness.kinds import BUDGETS, NODES

pytestmark = pytest.mark.sampled("groups")

RACK = "remediator.dev/rack"


@pytest.fixture
async def fleet(harness):
    """Six sick nodes, two in each of two racks and two in none, under one budget of one node in each rack."""
    harness.beating = False
    await harness.policy()
    await harness.make(BUDGETS, "racks", selector=WORKERS, maxUnavailable=1, groupBy=RACK)
    for name, labels in [(f"{rack}{n}", {"rack": rack}) for rack in "ab" for n in range(2)] + [("s0", {}), ("s1", {})]:
        await harness.node(name, "True", **labels)
    await admit(harness)
    reconciler = NodeReconciler((await replica(harness))[0])
    for name in ("a0", "a1", "b0", "b1", "s0", "s1"):
        await reconciler.reconcile(name, SYSTEM.now())
    return harness


async def admit(harness, times=1):
    for _ in range(times):
        await (await replica(harness))[1].run(SYSTEM.now())


def status(harness):
    return next(budget["status"] for budget in harness.all(BUDGETS) if budget["metadata"]["name"] == "racks")


def groups(harness):
    return {claim["node"]: claim.get("group", "") for claim in status(harness)["claims"]}


async def test_one_node_of_each_rack_is_claimed_and_the_status_shows_the_racks(fleet):
    await admit(fleet, 2)
    assert groups(fleet) == {"a0": "a", "b0": "b"}
    shown = status(fleet)
    assert (shown["groupTotal"], shown["groupsFull"], shown["ungrouped"], shown["allowed"]) == (2, 2, 2, 0)
    assert shown["groups"] == [{"group": rack, "total": 2, "unavailable": 1, "allowed": 0} for rack in "ab"]


async def test_a_calm_pass_over_a_grouped_budget_writes_nothing(fleet):
    await admit(fleet, 3)
    before = len(fleet.server.audit)
    await admit(fleet)
    written = [mutation for mutation in list(fleet.server.audit)[before:] if "nodedisruptionbudgets" in mutation.path]
    assert written == []


async def test_explain_says_what_is_used_of_the_group_and_why_nothing_starts_without_one(fleet):
    await admit(fleet, 2)
    cache = await snapshot(fleet.client, fleet.namespaces, SYSTEM)
    lines = {name: list(explain(cache, cache.nodes.get(name), Breaker(), SYSTEM.now())) for name in ("a1", "s0")}
    assert f"  budget racks, {RACK} a: 1 of 1 unavailable" in lines["a1"]
    assert f"  budget racks: the node has no label {RACK}, so that nothing starts on it" in lines["s0"]
    assert any("held: GroupUnknown" in line for line in lines["s0"])


async def test_a_user_who_changes_the_label_frees_no_place_and_another_key_groups_anew(fleet):
    await admit(fleet, 2)
    await fleet.change(NODES, "a0", metadata={"labels": {RACK: "c"}})
    await admit(fleet, 2)
    assert groups(fleet) == {"a0": "a", "b0": "b"}, "a1 waits for the claim that was made in its rack"
    await fleet.change(BUDGETS, "racks", spec={"groupBy": "kubernetes.io/zone"})
    await admit(fleet)
    assert groups(fleet) == {"a0": "", "b0": ""}
    assert status(fleet)["groupedBy"] == "kubernetes.io/zone"
    await fleet.change(BUDGETS, "racks", spec={"groupBy": RACK})
    await admit(fleet)
    assert groups(fleet) == {"a0": "c", "a1": "a", "b0": "b"}, "a0 stands in c now, so that a has room"


async def test_a_budget_that_is_grouped_later_adopts_the_claims_that_stand(fleet):
    await fleet.change(BUDGETS, "racks", spec={"groupBy": None, "maxUnavailable": 3})
    await admit(fleet, 2)
    assert groups(fleet) == {"a0": "", "a1": "", "b0": ""}
    await fleet.change(BUDGETS, "racks", spec={"groupBy": RACK, "maxUnavailable": 1})
    await admit(fleet, 2)
    assert groups(fleet) == {"a0": "a", "a1": "a", "b0": "b"}, "nothing more, and what stands is counted in its rack"


async def test_a_percentage_holds_for_all_racks_together_and_explain_says_so(fleet):
    """20 % of six nodes are one: rack b waits for the claim in rack a."""
    await fleet.change(BUDGETS, "racks", spec={"maxUnavailable": "20%"})
    await admit(fleet, 2)
    assert groups(fleet) == {"a0": "a"}
    assert (status(fleet)["allowed"], status(fleet)["groupsFull"]) == (0, 2)
    cache = await snapshot(fleet.client, fleet.namespaces, SYSTEM)
    lines = list(explain(cache, cache.nodes.get("b0"), Breaker(), SYSTEM.now()))
    assert f"  budget racks, {RACK} b: 0 of 1 unavailable; all groups: 1 of 1 unavailable" in lines
    assert any("held: BudgetSpent: budget racks, all groups: 1 of 1 unavailable (a0)" in line for line in lines)
