"""A node has one case, whatever a new leader's caches show, and whatever it cannot read."""

import pytest

from remediator.clock import SYSTEM
from remediator.controller.admission import Admissions
from remediator.controller.explain import snapshot
from remediator.controller.gone import GoneCases
from remediator.controller.handlers.base import Dependencies
from remediator.controller.orphans import Orphans
from remediator.controller.perform import Performer
from remediator.controller.reconcile.node import NodeReconciler
from remediator.core import names
from remediator.core.breaker import Breaker
from tests.harness.admission import whole_pass
from tests.harness.controller import RUNS, running, until
from tests.harness.kinds import BUDGETS, CASES, NODES, POLICIES

pytestmark = pytest.mark.sampled("one case")

XID = "GpuXid"


@pytest.fixture
async def claimed(harness):
    """A node on which two policies hold, and which a case of the first has claimed."""
    await harness.policy()
    await harness.budget("all", 5)
    await harness.node("gpu-1", "True")
    await settle(await Replica.now(harness))
    assert harness.phase("gpu-1") == "Draining"
    await harness.policy("gpu-xid", when=[{"condition": XID, "for": "0s"}], severity="Critical")
    await harness.condition("gpu-1", "True", XID)
    harness.beating = False
    return harness


class Replica:
    """A replica whose caches show the cluster as it was and will not move, but for its own writes."""

    def __init__(self, harness, cache):
        self.cache, self.seconds = cache, 0.0
        performer = Performer(harness.client, cache, lambda: True)
        self.admissions = Admissions(cache, performer, Breaker(starts=1000), lambda: self.seconds)
        self.nodes = NodeReconciler(Dependencies(cache, performer, lambda: None, drains=50))

    @classmethod
    async def now(cls, harness):
        return cls(harness, await snapshot(harness.client, harness.namespaces, SYSTEM))

    def forget(self, *stores):
        """These stores have not been told of anything yet."""
        for store in stores:
            for key in list(store.keys()):
                store._reflector._drop(key)

    async def turn(self):
        for node in list(self.cache.nodes):
            await self.nodes.reconcile(node.name, SYSTEM.now())
        await whole_pass(self.admissions, SYSTEM.now())


async def settle(replica, times=3):
    for _ in range(times):
        await replica.turn()


def holder(harness):
    """The policies whose cases the node's taint and the ledgers name."""
    policies = {case["metadata"]["uid"]: case["spec"]["policyName"] for case in harness.cases("gpu-1")}
    taints = [taint["value"] for taint in harness.look("gpu-1")["spec"]["taints"] if taint["key"] == names.CASE_TAINT]
    entries = [claim["case"] for one in harness.all(BUDGETS) for claim in one["status"].get("claims") or ()]
    return {policies[uid] for uid in (*taints, *entries)}


async def test_a_leader_that_does_not_see_the_case_of_a_node_opens_another_that_never_claims(claimed):
    late = await Replica.now(claimed)
    late.forget(late.cache.cases)
    await settle(late)
    assert [case["spec"]["policyName"] for case in claimed.cases("gpu-1")] == ["gpu-lost", "gpu-xid"]
    assert holder(claimed) == {"gpu-lost"}
    assert claimed.reasons("gpu-1") == ["NodeBusy"]


async def test_a_leader_whose_every_cache_is_old_is_refused_by_the_ledger(harness):
    await harness.policy()
    await harness.budget("all", 5)
    await harness.node("gpu-1", "True")
    await harness.policy("gpu-xid", when=[{"condition": XID, "for": "0s"}], severity="Critical")
    await harness.condition("gpu-1", "True", XID)
    harness.beating = False
    await whole_pass((await Replica.now(harness)).admissions, SYSTEM.now())
    late = await Replica.now(harness)
    late.forget(late.cache.cases)
    late.cache.policies._reflector._drop("gpu-lost")
    first = await Replica.now(harness)
    first.cache.policies._reflector._drop("gpu-xid")
    await settle(first)
    await settle(late)
    assert holder(harness) == {"gpu-lost"}
    assert harness.reasons("gpu-1") == ["NodeBusy"]


async def test_where_no_ledger_knows_of_a_claim_the_mark_on_the_node_refuses(claimed):
    await claimed.client.delete(BUDGETS, "all")
    await claimed.budget("all", 5)
    late = await Replica.now(claimed)
    late.forget(late.cache.cases)
    await settle(late)
    assert holder(claimed) == {"gpu-lost"}


@pytest.fixture
def lists(harness, monkeypatch):
    """The lists of all cases that the API server is asked for, by the form of the answer."""
    asked, real = [], harness.client.transport.request

    async def request(method, path, **more):
        if method == "GET" and path.endswith(CASES.plural):
            asked.append(more.get("accept", ""))
        return await real(method, path, **more)

    monkeypatch.setattr(harness.client.transport, "request", request)
    return asked


async def names_a_case(harness, node, uid):
    await harness.change(NODES, node, metadata={"annotations": {names.SCALE_DOWN_DISABLED_BY: uid}})


async def test_a_node_that_names_cases_at_will_makes_the_leader_list_them_once_in_30_seconds(harness, lists):
    await harness.policy()
    await harness.budget("all", 5)
    for node in ("gpu-1", "gpu-2"):
        await harness.node(node, "True")
    await names_a_case(harness, "gpu-1", "bogus-1")
    leader = await Replica.now(harness)
    lists.clear()
    leader.cache.nodes._reflector._drop("gpu-2")
    await settle(leader)
    assert (harness.claims(), len(lists)) == (["gpu-1"], 1)
    assert "PartialObjectMetadata" in lists[0]
    await names_a_case(harness, "gpu-2", "bogus-2")
    await leader.admissions.performer.node("gpu-2")
    leader.seconds = 10.0
    await settle(leader)
    assert (harness.reasons("gpu-2"), len(lists)) == (["NodeBusy"], 1)
    assert await whole_pass(leader.admissions, SYSTEM.now()) == 20.0
    leader.seconds = 30.0
    await settle(leader)
    assert (sorted(harness.claims()), len(lists)) == (["gpu-1", "gpu-2"], 2)


async def test_a_node_that_something_else_holds_and_that_names_a_case_causes_no_list(harness, lists):
    await harness.policy(mode="DryRun")
    await harness.node("gpu-1", "True")
    await names_a_case(harness, "gpu-1", "bogus")
    leader = await Replica.now(harness)
    lists.clear()
    await settle(leader)
    assert (harness.reasons("gpu-1"), lists) == (["DryRun", "NodeBusy"], [])


async def test_entries_of_cases_that_a_cache_does_not_show_make_the_leader_list_them_once_for_all_budgets(
    harness, lists
):
    await harness.policy()
    for budget in ("all", "every", "each"):
        await harness.budget(budget, 5)
    await harness.node("gpu-1", "True")
    await settle(await Replica.now(harness))
    assert harness.claims() == ["gpu-1"] * 3
    leader = await Replica.now(harness)
    leader.forget(leader.cache.cases, leader.cache.nodes)
    lists.clear()
    for seconds, listed in ((0.0, 1), (29.0, 1), (30.0, 2)):
        leader.seconds = seconds
        assert await whole_pass(leader.admissions, SYSTEM.now()) == (1.0 if seconds == 29.0 else 30.0)
        assert (harness.claims(), len(lists)) == (["gpu-1"] * 3, listed)


async def test_a_case_that_is_proven_gone_is_not_asked_about_again(harness):
    asked = []

    class Server:
        async def gone(self, uids):
            asked.append(set(uids))
            return frozenset(uids) - {"open"}

    seconds = [0.0]
    cases = GoneCases(Server(), lambda: seconds[0])
    assert await cases.among({"a", "open", "x" * 65}) == ({"a", "x" * 65}, 30.0)
    assert await cases.among({"a", "x" * 65}) == ({"a"}, 30.0), "no text of any length is remembered"
    seconds[0] = 31.0
    assert await cases.among({"a"}) == ({"a"}, None)
    assert await cases.among({f"uid-{number}" for number in range(2000)}) == ({f"uid-{n}" for n in range(2000)}, None)
    assert (len(cases._known), asked[1:]) == (1000, [{f"uid-{number}" for number in range(2000)}])


async def test_a_case_that_is_no_more_keeps_no_other_case_out_once_its_marks_are_off(claimed):
    name = claimed.cases("gpu-1")[0]["metadata"]["name"]
    await claimed.change(CASES, name, metadata={"finalizers": None})
    await claimed.client.delete(CASES, name)
    await claimed.condition("gpu-1", "False")
    leader = await Replica.now(claimed)
    await Orphans(leader.cache, leader.admissions.performer).run(SYSTEM.now())
    await settle(leader)
    assert holder(claimed) == {"gpu-xid"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"spec": {"unschedulable": True}}, "CordonedByUser"),
        ({"metadata": {"labels": {names.EXCLUDE: "true"}}}, "OptedOut"),
    ],
)
async def test_a_node_that_was_changed_after_it_was_judged_is_judged_again(harness, change, reason):
    await harness.policy()
    await harness.budget("all", 5)
    await harness.node("gpu-1", "True")
    harness.beating = False
    late = await Replica.now(harness)
    await harness.change(NODES, "gpu-1", **change)
    await settle(late, times=4)
    assert (harness.taints("gpu-1"), harness.reasons("gpu-1")) == ([], [reason])


async def test_a_case_that_cannot_be_read_holds_its_node(claimed):
    """A newer version opened it; this one was rolled back to."""
    claimed.beating = True
    name = claimed.cases("gpu-1")[0]["metadata"]["name"]
    await claimed.newer(CASES, name, "status", status={"phase": "Hibernating"})
    before = claimed.cases("gpu-1")[0]
    async with running(claimed):
        await claimed.quiet()
    assert claimed.cases("gpu-1") == [before], "it is neither written nor does another stand beside it"
    assert (holder(claimed), claimed.ran) == ({"gpu-lost"}, [])


async def test_a_case_that_cannot_be_read_counts_in_the_ledger_of_a_budget_that_was_made_again(claimed):
    claimed.beating = True
    name = claimed.cases("gpu-1")[0]["metadata"]["name"]
    await claimed.newer(CASES, name, "status", status={"phase": "Hibernating"})
    await claimed.client.delete(BUDGETS, "all")
    await claimed.budget("all", 1)
    await claimed.node("gpu-2", "True")
    async with running(claimed):
        await until(lambda: claimed.reasons("gpu-2") == ["BudgetSpent"])
    assert claimed.claims() == ["gpu-1"]


async def test_a_case_that_waits_and_cannot_be_read_any_more_takes_no_place_in_a_budget(harness):
    """Its node says that it waits for repair, and not that the case holds it."""
    await harness.policy()
    await harness.budget("all", 1)
    harness.answer("drain", RUNS)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)
        await harness.node("gpu-2", "True")
        await until(lambda: harness.taints("gpu-2") == [names.DEGRADED_TAINT])
    await harness.newer(CASES, harness.cases("gpu-2")[0]["metadata"]["name"], "status", status={"rung": "first"})
    async with running(harness, "two"):
        await harness.node("gpu-3", "True")
        await until(lambda: harness.reasons("gpu-3") == ["BudgetSpent"])
    assert harness.claims() == ["gpu-1"]


async def test_a_budget_that_cannot_be_read_admits_nothing_for_what_it_selects_and_is_left_as_it_is(harness):
    await harness.policy()
    await harness.budget("all", 5)
    await harness.newer(BUDGETS, "all", spec={"maxUnavailable": {"nodes": 5}})
    before = harness.all(BUDGETS)[0]
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["BudgetUnready"])
        await harness.quiet()
    assert harness.taints("gpu-1") in ([], [names.DEGRADED_TAINT])
    assert "budget all cannot be read" in harness.cases("gpu-1")[0]["status"]["message"]
    assert next(one for one in harness.all(BUDGETS) if one["metadata"]["name"] == "all") == before


async def test_a_policy_that_cannot_be_read_starts_nothing_and_ends_nothing(harness):
    await harness.policy()
    harness.answer("drain", RUNS)
    await harness.node("gpu-1", "True")
    await harness.node("gpu-2")
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)
        await harness.newer(POLICIES, "gpu-lost", spec={"mode": "EnforceGently"})
        await harness.condition("gpu-2", "True")
        await until(lambda: harness.reasons("gpu-1") == ["PolicyUnreadable"])
        await harness.quiet()
    assert [ran for ran in harness.ran if "reboot" in ran] == []
    assert (harness.taints("gpu-1"), harness.cases("gpu-2")) == ([names.CASE_TAINT], [])


async def test_a_case_that_ended_and_cannot_be_read_any_more_takes_no_place_in_a_budget(harness):
    """Its node was let go, and carries no mark of it."""
    await harness.policy()
    await harness.budget("all", 5)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    await harness.newer(CASES, harness.cases("gpu-1")[0]["metadata"]["name"], "status", status={"rung": "first"})
    harness.answer("drain", RUNS)
    await harness.node("gpu-2", "True")
    async with running(harness):
        await until(lambda: "drain gpu-2" in harness.ran)
    assert harness.claims() == ["gpu-2"]
