"""The admission pass against a server: the ledger is the fence, whatever the caches say."""

import asyncio
from datetime import timedelta

import pytest

from remediator.clock import SYSTEM
from remediator.controller import pending
from remediator.controller.orphans import Orphans
from remediator.controller.reconcile.case import CaseReconciler
from remediator.controller.reconcile.node import NodeReconciler
from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.metrics import REGISTRY
from tests.harness.admission import replica, whole_pass
from tests.harness.kinds import BUDGETS, CASES, NODES

pytestmark = pytest.mark.sampled("admission")


@pytest.fixture
async def fleet(harness):
    """A function that makes so many sick nodes under a budget that has counted them, each with a case."""

    async def make(nodes: int, most: int | str):
        harness.beating = False
        await harness.policy()
        await harness.budget("all", most)
        for number in range(nodes):
            await harness.node(f"gpu-{number}", "True")
        await whole_pass(await admissions(harness), SYSTEM.now())
        reconciler = NodeReconciler((await replica(harness))[0])
        for number in range(nodes):
            await reconciler.reconcile(f"gpu-{number}", SYSTEM.now())
        assert len(harness.all(CASES)) == nodes
        return harness

    return make


async def admissions(harness):
    return (await replica(harness))[1]


def claimed(harness):
    return [claim["node"] for one in harness.all(BUDGETS) if one["metadata"]["name"] == "all" for claim in ledger(one)]


def ledger(one):
    return one["status"].get("claims") or []


def tainted(harness):
    found = [node["metadata"]["name"] for node in harness.all(NODES)]
    return [node for node in found if names.CASE_TAINT in harness.taints(node)]


async def settle(*passes, times=3):
    """Let replicas run until conflicts have been sorted out."""
    for _ in range(times):
        await asyncio.gather(*(whole_pass(one, SYSTEM.now()) for one in passes))


@pytest.mark.parametrize("most", [0, 1, 2, "50%"])
async def test_two_leaders_with_stale_caches_never_exceed_a_budget(fleet, most):
    harness = await fleet(6, most)
    await settle(await admissions(harness), await admissions(harness))
    allowed = 3 if most == "50%" else most
    assert len(claimed(harness)) == allowed
    assert len(set(claimed(harness))) == len(claimed(harness)), "each node once"
    assert set(tainted(harness)) <= set(claimed(harness)), "no node is ours that no ledger knows"


def blind(one, *nodes):
    """The caches of this replica do not show the cases of these nodes yet."""
    for case in [case for case in one.cache.cases if case.node in nodes]:
        one.cache.cases._reflector._drop(case.name)
    return one


async def test_two_leaders_that_see_different_cases_never_exceed_a_budget_either(fleet):
    """Only the version of the ledger keeps them apart."""
    harness = await fleet(4, 2)
    one, other = blind(await admissions(harness), "gpu-0", "gpu-1"), blind(await admissions(harness), "gpu-2", "gpu-3")
    await settle(one, other)
    assert len(claimed(harness)) == 2
    assert set(tainted(harness)) <= set(claimed(harness))


async def test_a_replica_that_slept_through_a_claim_does_not_make_another(fleet):
    harness = await fleet(2, 1)
    asleep = await admissions(harness)
    await settle(await admissions(harness))
    await settle(asleep)
    assert len(claimed(harness)) == len(tainted(harness)) == 1


async def test_fifty_nodes_are_claimed_with_one_write_of_the_ledger(fleet):
    harness = await fleet(50, 50)
    one = await admissions(harness)
    before = len(harness.server.audit)
    await whole_pass(one, SYSTEM.now())
    written = [found for found in list(harness.server.audit)[before:] if "nodedisruptionbudgets/all" in found.path]
    assert (len(written), len(claimed(harness)), len(tainted(harness))) == (1, 50, 50)


async def test_a_pass_over_a_calm_fleet_writes_nothing(fleet):
    harness = await fleet(3, 3)
    one = await admissions(harness)
    await settle(one)
    before = len(harness.server.audit)
    await whole_pass(one, SYSTEM.now())
    assert len(harness.server.audit) == before


async def test_a_budget_that_was_made_again_adopts_the_claims_that_stand_before_it_admits(fleet):
    harness = await fleet(2, 1)
    await settle(await admissions(harness))
    first = claimed(harness)
    await harness.client.delete(BUDGETS, "all")
    await harness.budget("all", 1)
    await settle(await admissions(harness))
    assert claimed(harness) == tainted(harness) == first


async def test_an_edited_budget_adopts_what_its_new_selector_brings(fleet):
    harness = await fleet(2, 1)
    await harness.change(BUDGETS, "all", spec={"selector": {"matchLabels": {"pool": "none"}}})
    await settle(await admissions(harness))  # the default budget admits one
    first = tainted(harness)
    await harness.change(BUDGETS, "all", spec={"selector": {"matchLabels": None}})
    await settle(await admissions(harness))
    assert claimed(harness) == tainted(harness) == first


async def _end_first_case(harness):
    """The case that holds a node ends and its marks go, as its own passes do it."""
    name = tainted(harness)[0]
    for _ in range(4):
        dependencies, _ = await replica(harness)
        await CaseReconciler(dependencies).reconcile(harness.cases(name)[-1]["metadata"]["name"], SYSTEM.now())
    return name


async def test_the_entry_of_an_ended_case_goes_and_the_next_one_starts(fleet):
    harness = await fleet(2, 1)
    await settle(await admissions(harness))
    held = tainted(harness)[0]
    await harness.delete_case(held)
    assert await _end_first_case(harness) == held
    assert (claimed(harness), tainted(harness)) == ([held], []), "the entry stays until the node is off"
    await settle(await admissions(harness))
    assert claimed(harness) == tainted(harness) != [held]


async def test_the_entry_of_a_case_that_was_removed_by_force_goes_after_its_marks(fleet):
    harness = await fleet(1, 1)
    await settle(await admissions(harness))
    name = harness.cases("gpu-0")[0]["metadata"]["name"]
    await harness.change(CASES, name, metadata={"finalizers": None})
    await harness.client.delete(CASES, name)
    _, late = await replica(harness)
    await settle(late)
    assert claimed(harness) == ["gpu-0"], "its marks are on the node"
    await Orphans(late.cache, late.performer).run(SYSTEM.now())
    await settle(late)
    assert (claimed(harness), tainted(harness)) == ([], [])


async def test_a_case_that_a_cache_does_not_show_yet_keeps_its_entry(fleet):
    harness = await fleet(1, 1)
    one = await admissions(harness)
    await settle(one)
    blind(one, "gpu-0")
    await whole_pass(one, SYSTEM.now())
    assert claimed(harness) == ["gpu-0"], "the server is asked before an entry goes"


async def test_a_claim_that_was_cut_short_is_completed(fleet):
    """The ledger was written, the node was not."""
    harness = await fleet(1, 1)
    harness.server.faults.refuse(500, when=lambda asked: asked.method == "PATCH" and "/nodes/" in asked.path, times=1)
    await whole_pass(await admissions(harness), SYSTEM.now())
    assert (claimed(harness), tainted(harness)) == (["gpu-0"], [])
    await settle(await admissions(harness))
    assert (claimed(harness), tainted(harness)) == (["gpu-0"], ["gpu-0"])
    assert harness.phase("gpu-0") == "Draining"


async def _escalate(harness, *nodes):
    """Their ladders are spent, as their own passes write it."""
    for node in nodes:
        name = harness.cases(node)[-1]["metadata"]["name"]
        await harness.client.patch(CASES, name, {"status": {"phase": "Escalated"}}, subresource="status")


async def test_an_escalated_node_stops_no_repair_of_the_others_and_three_of_twelve_do(fleet):
    """One dead board in twelve filled a budget of one for weeks; at 25 % of twelve, three, nothing new starts."""
    harness = await fleet(12, 1)
    await harness.change(BUDGETS, "all", spec={"maxQuarantined": "25%"})
    for dead in range(3):
        await settle(await admissions(harness))
        assert len(tainted(harness)) == dead + 1, "the next one is repaired beside those that are dead"
        (node,) = set(tainted(harness)) - _quarantined(harness)
        await harness.change(NODES, node, spec={"unschedulable": True})
        await _escalate(harness, node)
    await settle(await admissions(harness))
    assert len(tainted(harness)) == len(_quarantined(harness)) == 3
    status = next(one["status"] for one in harness.all(BUDGETS) if one["metadata"]["name"] == "all")
    assert (status["quarantined"], status["unavailable"], status["allowed"]) == (3, 0, 1)
    held = next(f"gpu-{number}" for number in range(12) if f"gpu-{number}" not in tainted(harness))
    assert harness.reasons(held) == ["QuarantineFull"]
    assert "3 of 3 quarantined" in harness.cases(held)[-1]["status"]["blockedBy"][0]["message"]


async def test_three_of_four_stay_available_where_a_budget_says_so_also_beside_one_that_is_quarantined(fleet):
    harness = await fleet(4, 1)
    await harness.change(BUDGETS, "all", spec={"maxUnavailable": None, "minAvailable": 3})
    await settle(await admissions(harness))
    await _escalate(harness, *tainted(harness))
    await settle(await admissions(harness))
    assert len(tainted(harness)) == len(_quarantined(harness)) == 1
    held = next(f"gpu-{number}" for number in range(4) if f"gpu-{number}" not in tainted(harness))
    assert harness.reasons(held) == ["BudgetSpent"]


async def test_nodes_that_a_rung_has_cordoned_for_a_person_do_not_stop_the_repair_of_the_others(fleet):
    """Their cases are over, and a budget of one was full for as long as they waited."""
    harness = await fleet(3, 1)
    await harness.node("dimm")
    kept = {"annotations": {names.KEPT_CORDONED: "uid-of-a-case-that-is-over"}}
    await harness.change(NODES, "dimm", metadata=kept, spec={"unschedulable": True})
    await settle(await admissions(harness))
    assert len(tainted(harness)) == 1
    status = next(one["status"] for one in harness.all(BUDGETS) if one["metadata"]["name"] == "all")
    assert (status["quarantined"], status["unavailable"], status["allowed"]) == (1, 1, 0)


def _quarantined(harness):
    found = [claim for one in harness.all(BUDGETS) for claim in one["status"].get("claims") or ()]
    return {claim["node"] for claim in found if claim.get("quarantined")}


async def test_a_replica_that_has_not_seen_the_escalation_does_not_take_the_mark_off(fleet):
    harness = await fleet(2, 1)
    await settle(await admissions(harness))
    (node,) = tainted(harness)
    stale = await admissions(harness)
    await _escalate(harness, node)
    await settle(await admissions(harness), times=1)
    assert _quarantined(harness) == {node}
    await settle(stale)
    assert _quarantined(harness) == {node}


async def test_a_default_budget_is_made_where_there_is_no_fallback(harness):
    await whole_pass(await admissions(harness), SYSTEM.now())
    found = {one["metadata"]["name"]: one["spec"] for one in harness.all(BUDGETS)}
    assert found["default"]["fallback"] is True
    assert found["default"]["maxUnavailable"] == "5%"


async def test_a_hold_is_written_once_for_as_long_as_its_reasons_last(fleet):
    harness = await fleet(2, 1)
    one = await admissions(harness)
    await settle(one)
    waiting = next(node for node in ("gpu-0", "gpu-1") if node not in tainted(harness))
    version = harness.cases(waiting)[0]["metadata"]["resourceVersion"]
    await settle(one)
    assert harness.cases(waiting)[0]["metadata"]["resourceVersion"] == version
    assert harness.taints(waiting) == [names.DEGRADED_TAINT]


async def test_a_writer_that_fails_stops_no_other_and_is_tried_again_in_a_minute(fleet, monkeypatch):
    harness = await fleet(3, 3)
    passed, failures = await admissions(harness), failed("admission")
    start = passed._start

    async def write(pending, now):
        if pending.request.case.node == "gpu-0":
            raise RuntimeError("a bug")
        return await start(pending, now)

    monkeypatch.setattr(passed, "_start", write)
    assert await whole_pass(passed, SYSTEM.now()) == 60.0
    assert sorted(tainted(harness)) == ["gpu-1", "gpu-2"]
    assert failed("admission") == failures + 1


async def test_a_pass_that_is_cancelled_leaves_no_writer_running(fleet, monkeypatch):
    """Only one admission pass runs at a time, its writers included."""
    harness = await fleet(3, 3)
    passed = await admissions(harness)
    running, begun = 0, asyncio.Event()

    async def write(pending, now):
        nonlocal running
        running += 1
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)
            running -= 1

    monkeypatch.setattr(passed, "_start", write)
    task = asyncio.ensure_future(whole_pass(passed, SYSTEM.now()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert running == 0


def failed(where):
    """How often something failed that harmed one object only."""
    return REGISTRY.get_sample_value("remediator_contained_failures_total", {"where": where}) or 0


async def test_a_case_that_cannot_be_judged_stops_neither_the_admission_nor_the_release_of_others(fleet, monkeypatch):
    harness = await fleet(3, 2)
    passed, view = await admissions(harness), pending.case_view

    def judged(cache, case, now):
        if case.node == "gpu-0":
            raise OverflowError("date value out of range")
        return view(cache, case, now)

    monkeypatch.setattr(pending, "case_view", judged)
    await settle(passed)
    assert sorted(tainted(harness)) == sorted(claimed(harness)) == ["gpu-1", "gpu-2"]
    await end(harness, "gpu-1")
    await settle(await admissions(harness))
    assert claimed(harness) == ["gpu-2"]


async def end(harness, node):
    """The case of this node is over, and its marks are off."""
    case = harness.cases(node)[0]["metadata"]["name"]
    status = {"phase": "Cancelled", "endedAt": "2026-01-01T12:00:00Z"}
    await harness.client.patch(CASES, case, {"status": status}, subresource="status")
    notes = {names.HANDLED: case, names.CORDONED_BY: None, names.SCALE_DOWN_DISABLED_BY: None}
    await harness.change(NODES, node, spec={"taints": None, "unschedulable": None}, metadata={"annotations": notes})


@pytest.mark.parametrize("window", ["100d", "366d"])
async def test_a_case_starts_however_far_back_its_policy_looks(harness, window):
    harness.beating = False
    await harness.policy(attempts={"window": window}, cooldown=window)
    await harness.node("gpu-0", "True")
    await whole_pass(await admissions(harness), SYSTEM.now())
    await NodeReconciler((await replica(harness))[0]).reconcile("gpu-0", SYSTEM.now())
    await whole_pass(await admissions(harness), SYSTEM.now())
    assert tainted(harness) == ["gpu-0"]


async def test_a_case_says_why_it_is_held_though_more_budgets_hold_it_than_there_is_room_for(harness):
    harness.beating = False
    await harness.policy()
    for number in range(20):
        await harness.budget(f"budget-{number:02}", 0)
    await harness.node("gpu-0", "True")
    await whole_pass(await admissions(harness), SYSTEM.now())
    await NodeReconciler((await replica(harness))[0]).reconcile("gpu-0", SYSTEM.now())
    passed = await admissions(harness)
    await settle(passed)
    assert harness.reasons("gpu-0") == ["BudgetSpent"] * 16
    version = harness.cases("gpu-0")[0]["metadata"]["resourceVersion"]
    await settle(passed)
    assert harness.cases("gpu-0")[0]["metadata"]["resourceVersion"] == version


async def test_a_budget_whose_status_is_refused_holds_its_nodes_and_no_others(harness):
    """A webhook refuses to let us write the ledger of one pool."""
    harness.beating = False
    await harness.policy()
    for pool in ("a", "b"):
        selector = {"matchLabels": {f"{names.GROUP}/pool": pool}}
        await harness.make(BUDGETS, f"pool-{pool}", selector=selector, maxUnavailable=1)
        await harness.node(f"gpu-{pool}", "True", pool=pool)
    reconciler = NodeReconciler((await replica(harness))[0])
    for pool in ("a", "b"):
        await reconciler.reconcile(f"gpu-{pool}", SYSTEM.now())
    harness.server.faults.refuse(422, when=lambda asked: asked.path.endswith("/pool-a/status"), times=100)
    passed = await admissions(harness)
    assert await whole_pass(passed, SYSTEM.now()) <= 60.0
    assert (harness.claims(), tainted(harness)) == (["gpu-b"], ["gpu-b"])
    assert harness.reasons("gpu-a") == ["BudgetRefused"]
    assert "budget pool-a: 422" in text(harness, "gpu-a")


async def test_a_node_under_two_budgets_of_which_one_refuses_its_entry_says_so_in_that_pass(fleet):
    harness = await fleet(1, 1)
    await harness.make(BUDGETS, "pool", selector={}, maxUnavailable=1)
    passed = await admissions(harness)
    await passed.ledgers.update(SYSTEM.now())
    harness.server.faults.refuse(422, when=lambda asked: asked.path.endswith("/pool/status"), times=100)
    assert await whole_pass(passed, SYSTEM.now()) <= 60.0
    assert (claimed(harness), tainted(harness)) == (["gpu-0"], [])
    assert harness.reasons("gpu-0") == ["BudgetRefused"]
    assert "budget pool: 422" in text(harness, "gpu-0")


async def test_a_node_under_two_budgets_of_which_one_moves_is_tried_again_without_a_word(fleet):
    harness = await fleet(1, 1)
    await harness.make(BUDGETS, "pool", selector={}, maxUnavailable=1)
    passed = await admissions(harness)
    await passed.ledgers.update(SYSTEM.now())
    await harness.change(BUDGETS, "pool", metadata={"labels": {"moved": "true"}})
    await whole_pass(passed, SYSTEM.now())
    assert (harness.reasons("gpu-0"), tainted(harness)) == ([], [])
    await whole_pass(passed, SYSTEM.now())
    assert tainted(harness) == ["gpu-0"]


async def test_a_pass_that_fails_beside_a_write_of_a_ledger_is_over_after_that_write(fleet, monkeypatch):
    harness = await fleet(2, 2)
    passed = await admissions(harness)
    write, at_work = passed.ledgers.write, []

    async def slow(*given):
        at_work.append(given)
        for _ in range(20):
            await asyncio.sleep(0)
        result = await write(*given)
        at_work.remove(given)
        return result

    async def fails():
        raise RuntimeError("nobody thought of this")

    monkeypatch.setattr(passed.ledgers, "write", slow)
    monkeypatch.setattr(passed.performer, "paused", fails)
    with pytest.raises(RuntimeError, match="nobody thought of this"):
        await whole_pass(passed, SYSTEM.now())
    assert at_work == [], "the next pass begins now: nobody else may write"
    assert sorted(claimed(harness)) == ["gpu-0", "gpu-1"]


async def test_the_text_of_a_hold_follows_the_fleet_a_minute_later_without_another_event(fleet):
    harness = await fleet(3, 1)
    start = SYSTEM.now()
    passed = await admissions(harness)
    await whole_pass(passed, start)
    held = next(node for node in ("gpu-0", "gpu-1", "gpu-2") if node not in tainted(harness))
    before, events = text(harness, held), harness.story(held)
    await harness.node("gpu-9", "False")
    await harness.change(NODES, "gpu-9", spec={"unschedulable": True})
    later = await admissions(harness)
    later.records._written = passed.records._written
    assert await whole_pass(later, start + timedelta(seconds=59)) == 1.0
    assert text(harness, held) == before
    await whole_pass(later, start + timedelta(seconds=60))
    assert "1 of 1 unavailable" in before
    assert "2 of 1 unavailable" in text(harness, held)
    assert harness.story(held) == events


def text(harness, node):
    """The one sentence that holds the node's case."""
    (block,) = harness.cases(node)[-1]["status"]["blockedBy"]
    return block["message"]


async def test_a_claim_counts_as_a_start_for_the_window_of_the_breaker_and_no_longer(fleet):
    harness = await fleet(2, 2)
    one_in_ten_minutes = Breaker(1, timedelta(minutes=10))
    for minute, claimed in ((0, 1), (9, 1), (11, 2)):
        one = await admissions(harness)
        one.breaker = one_in_ten_minutes
        await whole_pass(one, SYSTEM.now() + timedelta(minutes=minute))
        assert len(tainted(harness)) == claimed, f"minute {minute}"


async def test_a_budget_that_is_full_for_half_an_hour_is_told_at_that_time_without_another_event(fleet):
    harness = await fleet(2, 1)
    start = SYSTEM.now()
    await settle(await admissions(harness))
    held = next(node for node in ("gpu-0", "gpu-1") if node not in tainted(harness))
    again = await whole_pass(await admissions(harness), start)
    assert again is not None
    assert again <= 30 * 60
    for node in ("gpu-0", "gpu-1"):
        harness.set_clock(node, timedelta(minutes=31))
        await harness.condition(node, "True", "Ready")
        await harness.condition(node, "True")
    await whole_pass(await admissions(harness), start + timedelta(minutes=31))
    (block,) = harness.cases(held)[-1]["status"]["blockedBy"]
    assert (block["reason"], block["reported"]) == ("BudgetSpent", True)
    events = [entry.obj for entry in harness.server.cluster.store.collection("events").entries.values()]
    assert [(one["type"], one["reason"]) for one in events if one["reason"] == "HeldLong"] == [("Warning", "HeldLong")]
