"""Between the marks of a claim and its record: the start counts, and the claim is neither lost nor kept for ever."""

import json
from collections import Counter
from datetime import timedelta

import pytest

from remediator.clock import SYSTEM
from remediator.controller.admission import STOPPED
from remediator.controller.reconcile.case import CaseReconciler
from remediator.controller.reconcile.node import NodeReconciler
from remediator.core import names
from remediator.kube.wire import errors
from tests.harness.admission import replica, whole_pass
from tests.harness.kinds import CASES, NAMESPACES, NODES, POLICIES
from tests.remediator.controller.test_control_plane import static_pod

pytestmark = pytest.mark.sampled("unrecorded")

URGENT = ("urgent-0", "urgent-1")


@pytest.fixture
async def fleet(harness):
    """A function that makes so many sick nodes under a budget that has counted them, each with a case."""

    async def make(count):
        harness.beating = False
        await harness.policy()
        await harness.budget("all", 100)
        nodes = [f"gpu-{number}" for number in range(count)]
        for node in nodes:
            await harness.node(node, "True")
        await whole_pass((await replica(harness))[1], SYSTEM.now())
        await with_cases(harness, nodes)
        return harness

    return make


async def with_cases(harness, nodes):
    reconciler = NodeReconciler((await replica(harness))[0])
    for node in nodes:
        await reconciler.reconcile(node, SYSTEM.now())


async def more_urgent(harness):
    """Two nodes fall sick under a policy of higher severity."""
    await harness.policy("urgent", severity="Critical", when=[{"condition": "Urgent", "for": "0s"}])
    for node in URGENT:
        await harness.node(node, "False")
        await harness.condition(node, "True", "Urgent")
    await with_cases(harness, URGENT)


def marked(harness):
    nodes = [node["metadata"]["name"] for node in harness.all(NODES)]
    return sorted(node for node in nodes if names.CASE_TAINT in harness.taints(node))


async def test_a_breaker_of_two_holds_though_the_leader_dies_before_it_records_two_claims(fleet):
    harness = await fleet(4)
    await (await replica(harness, starts=2))[1].run(SYSTEM.now())
    first = marked(harness)
    await more_urgent(harness)
    await whole_pass((await replica(harness, starts=2))[1], SYSTEM.now())
    assert (len(first), marked(harness)) == (2, first)
    assert [harness.phase(node) for node in (*first, *URGENT)] == ["Draining", "Draining", "Held", "Held"]


async def test_a_breaker_of_two_holds_though_a_user_writes_a_note_on_both_cases_before_their_claims_are_recorded(fleet):
    harness = await fleet(4)
    dependencies, admissions = await replica(harness, starts=2)
    await admissions.run(SYSTEM.now())
    first = marked(harness)
    await more_urgent(harness)
    await dependencies.performer.policy("urgent")
    for node in (*first, *URGENT):
        name = harness.cases(node)[-1]["metadata"]["name"]
        await harness.change(CASES, name, metadata={"annotations": {"note": "looking at it"}})
        await dependencies.performer.node(node)
        await dependencies.performer.case(name)
    await whole_pass(admissions, SYSTEM.now())
    assert (len(first), marked(harness)) == (2, first)
    assert [harness.phase(node) for node in (*first, *URGENT)] == ["Draining", "Draining", "Held", "Held"]


async def test_a_breaker_of_two_holds_though_the_api_server_refuses_two_records(fleet):
    harness = await fleet(4)
    dependencies, admissions = await replica(harness, starts=2)
    await admissions.run(SYSTEM.now())
    first = marked(harness)
    harness.server.faults.refuse(503, when=lambda asked: asked.method == "PATCH" and "noderem" in asked.path, times=2)
    for node in first:
        await CaseReconciler(dependencies).reconcile(harness.cases(node)[-1]["metadata"]["name"], SYSTEM.now())
    assert [harness.phase(node) for node in first] == ["", ""]
    await whole_pass(admissions, SYSTEM.now())
    assert marked(harness) == first
    assert [harness.phase(node) for node in first] == ["Draining", "Draining"]


async def test_a_claim_whose_start_is_over_is_admitted_again_one_at_a_time_also_before_it_is_recorded(fleet):
    """Two nodes were marked 11 minutes ago, and nobody has recorded it; the window is 10 minutes."""
    harness = await fleet(2)
    await (await replica(harness))[1].run(SYSTEM.now())
    assert len(marked(harness)) == 2
    later = SYSTEM.now() + timedelta(minutes=11)
    _, admissions = await replica(harness, starts=1)
    await admissions.run(later)
    assert len(admissions.records.due) == 2
    await whole_pass(admissions, later)
    assert sorted(harness.phase(node) for node in ("gpu-0", "gpu-1")) == ["Draining", "Held"]


async def test_a_fault_that_goes_before_the_claim_is_recorded_gives_no_node_back_without_proof(fleet):
    harness = await fleet(2)
    dependencies, admissions = await replica(harness)
    await admissions.run(SYSTEM.now())
    for node in ("gpu-0", "gpu-1"):
        await harness.condition(node, "False")
        await dependencies.performer.node(node)
        await CaseReconciler(dependencies).reconcile(harness.cases(node)[-1]["metadata"]["name"], SYSTEM.now())
    await admissions.run(SYSTEM.now())
    assert [harness.phase(node) for node in ("gpu-0", "gpu-1")] == ["Draining", "Draining"]
    assert (marked(harness), admissions.records.due) == (["gpu-0", "gpu-1"], [])


async def test_a_policy_that_is_paused_while_60_nodes_are_marked_one_after_the_other_stops_those_still_to_come(fleet):
    """At most 16 writes are under way at a time; the entries of those that are stopped go with the next pass."""
    harness, admissions = await paused_in_its_middle(fleet)
    await whole_pass(admissions, SYSTEM.now())
    assert sorted(harness.claims()) == marked(harness)
    assert harness.reasons(next(f"gpu-{number}" for number in range(60) if f"gpu-{number}" not in marked(harness)))


async def test_a_pause_that_the_watch_has_not_told_of_lets_no_claim_begin(fleet):
    harness = await fleet(2)
    dependencies, admissions = await replica(harness)
    paused = {"metadata": {"annotations": {names.PAUSED: "true"}}}
    await harness.client.patch(NAMESPACES, harness.namespaces.system, paused)
    assert not dependencies.cache.paused
    assert await admissions.run(SYSTEM.now()) == STOPPED.after
    assert (dependencies.cache.paused, marked(harness)) == (True, [])
    await whole_pass(admissions, SYSTEM.now())
    assert (harness.claims(), marked(harness), harness.reasons("gpu-0")) == ([], [], ["Paused"])


async def test_while_nobody_can_tell_whether_all_is_paused_no_claim_begins(fleet):
    """The read fails once: what was entered beside it goes, and the claims come with a later pass."""
    harness = await fleet(2)
    _, admissions = await replica(harness)
    harness.server.faults.refuse(500, when=lambda asked: "/namespaces/" in asked.path, times=1)
    await admissions.run(SYSTEM.now())
    assert marked(harness) == []
    for _ in range(2):
        await whole_pass(admissions, SYSTEM.now())
    assert (sorted(harness.claims()), marked(harness)) == (["gpu-0", "gpu-1"], ["gpu-0", "gpu-1"])


async def test_a_pause_that_cannot_be_read_is_asked_for_alone_and_nothing_more_is_entered(fleet):
    """With each write of a ledger the watch of budgets asks for another pass: one enters, one takes back."""
    harness = await fleet(2)
    _, admissions = await replica(harness)
    harness.server.faults.refuse(403, when=lambda asked: "/namespaces/" in asked.path, times=9)
    before = len(harness.server.audit)
    await admissions.run(SYSTEM.now())
    for _ in range(8):
        with pytest.raises(errors.Forbidden):
            await admissions.run(SYSTEM.now())
    assert (len(harness.server.audit) - before, harness.claims(), marked(harness)) == (2, [], [])
    for _ in range(2):
        await whole_pass(admissions, SYSTEM.now())
    assert marked(harness) == ["gpu-0", "gpu-1"]


async def test_entries_that_were_not_used_are_left_alone_by_who_has_lost_the_lease_meanwhile(fleet):
    """Another leader may be about to mark their nodes: they go once no late write can do so."""
    harness, admissions = await paused_in_its_middle(fleet)
    admissions.clear()
    first = await whole_pass(admissions, SYSTEM.now())
    assert (len(harness.claims()), first <= 1.0) == (60, True)
    assert len([node for node in harness.all(NODES) if names.WITHDRAWN in notes(node)]) == 60 - len(marked(harness))
    await whole_pass(admissions, SYSTEM.now())
    assert sorted(harness.claims()) == marked(harness)


def notes(node):
    return node["metadata"].get("annotations") or {}


async def entered(fleet):
    """A node whose claim was cut short between the ledger and the node, and the write that did not come through."""
    harness, sent = await fleet(1), []

    def marks(asked):
        if asked.method != "PATCH" or not asked.path.endswith("/nodes/gpu-0"):
            return False
        sent.append(json.loads(asked.body))
        return True

    harness.server.faults.refuse(500, when=marks, times=1)
    await (await replica(harness))[1].run(SYSTEM.now())
    assert (harness.claims(), marked(harness), len(sent)) == (["gpu-0"], [], 1)
    return harness, sent[0]


async def test_a_claim_that_a_dead_leader_has_entered_is_taken_back_when_its_case_is_held(fleet):
    harness, late = await entered(fleet)
    await harness.edit_case("gpu-0", hold=True)
    _, admissions = await replica(harness)
    for _ in range(2):
        await whole_pass(admissions, SYSTEM.now())
    assert (harness.claims(), harness.reasons("gpu-0"), marked(harness)) == ([], ["HeldByUser"], [])
    with pytest.raises(errors.Conflict):
        await harness.client.patch(NODES, "gpu-0", late)


async def test_a_claim_that_a_dead_leader_has_entered_is_completed_when_nothing_holds_its_case(fleet):
    harness, _ = await entered(fleet)
    await whole_pass((await replica(harness))[1], SYSTEM.now())
    assert (harness.claims(), marked(harness), harness.phase("gpu-0")) == (["gpu-0"], ["gpu-0"], "Draining")


def excluded(harness):
    return harness.change(NODES, "gpu-0", metadata={"labels": {names.EXCLUDE: "true"}})


def of_control_plane(harness):
    return static_pod(harness, node="gpu-0")


@pytest.mark.parametrize(
    ("spare", "reason", "left"), [(excluded, "OptedOut", []), (of_control_plane, "ControlPlane", ["gpu-0"])]
)
async def test_a_claim_on_a_node_that_is_spared_is_taken_back_only_where_nothing_need_be_written_on_it(
    fleet, spare, reason, left
):
    harness, _ = await entered(fleet)
    await spare(harness)
    _, admissions = await replica(harness)
    for _ in range(2):
        await whole_pass(admissions, SYSTEM.now())
    assert (harness.claims(), harness.reasons("gpu-0")) == (left, [reason])
    assert names.WITHDRAWN not in notes(harness.look("gpu-0"))


async def paused_in_its_middle(fleet):
    """A replica whose pass over 60 nodes learns after the first mark that the policy is paused."""
    harness = await fleet(60)
    dependencies, admissions = await replica(harness)
    client, known = dependencies.performer.client, []
    patch = client.patch

    async def paused_after_the_first(kind, name, body, **options):
        answer = await patch(kind, name, body, **options)
        if kind.name == "Node" and not known:
            known.append(0)
            await harness.change(POLICIES, "gpu-lost", spec={"mode": "Paused"})
            await dependencies.performer.policy("gpu-lost")
            known.append(len(marked(harness)))
        return answer

    client.patch = paused_after_the_first
    assert await admissions.run(SYSTEM.now()) <= 1.0
    assert known[-1] <= len(marked(harness)) <= known[-1] + 16 < 60
    assert len(harness.claims()) == 60
    return harness, admissions


async def test_40_claims_that_were_cut_short_are_read_16_at_a_time_and_their_policy_and_ledger_once(fleet):
    harness = await fleet(40)
    await (await replica(harness))[1].run(SYSTEM.now())
    dependencies, admissions = await replica(harness)
    client, reads, under_way = dependencies.performer.client, [], []
    get, most = client.get, 0

    async def counted(kind, name, **options):
        nonlocal most
        reads.append(kind.name)
        under_way.append(name)
        most = max(most, len(under_way))
        try:
            return await get(kind, name, **options)
        finally:
            under_way.remove(name)

    client.get = counted
    await admissions.run(SYSTEM.now())
    once = {"RemediationPolicy": 1, "NodeDisruptionBudget": 1, "Namespace": 1}
    assert (Counter(reads), most) == ({"Node": 40, "NodeRemediation": 40, **once}, 16)
    read = ["Node", "NodeRemediation", "RemediationPolicy", "NodeDisruptionBudget", "Namespace"]
    assert list(dict.fromkeys(reads)) == read, "the pause last, before anything is written"
    assert len(admissions.records.due) == 40


async def test_of_nodes_that_stay_sick_together_no_second_goes_before_the_claim_of_the_first_is_recorded(fleet):
    """The cases of three nodes were held for one cause, which has gone. Two passes run before anything is recorded."""
    harness = await fleet(3)
    for node in ("gpu-0", "gpu-1", "gpu-2"):
        line = {"at": "2026-01-01T00:00:00Z", "reason": "SharedCause", "message": "5 nodes show the same"}
        name = harness.cases(node)[-1]["metadata"]["name"]
        await harness.client.patch(CASES, name, {"status": {"timeline": [line]}}, subresource="status")
    _, admissions = await replica(harness)
    await admissions.run(SYSTEM.now())
    first = marked(harness)
    await admissions.run(SYSTEM.now())
    assert (len(first), marked(harness)) == (1, first)
