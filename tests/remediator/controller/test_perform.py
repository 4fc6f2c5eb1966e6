"""One effect, one outcome, whatever the API server answers."""

from dataclasses import replace

import pytest

from remediator.controller import marks
from remediator.controller.effects import ChangeNode, Create, Delete, Done, GaveUp, Patch, Retry, SaveCase
from remediator.controller.perform import CONFLICTS, Performer
from remediator.core import names
from remediator.core.case import Phase, advance
from remediator.core.reasons import Reason
from remediator.kube import api
from remediator.kube.api import decode
from remediator.kube.api.builtin import NODE, POD
from tests.builders import a_case, a_sick_node, at
from tests.harness.controller import SYSTEM
from tests.harness.kinds import CASES, NAMESPACES, NODES
from tests.harness.replica import empty_cache

BUDGET = {"apiVersion": api.BUDGET.api_version, "kind": "NodeDisruptionBudget", "metadata": {"name": "b"}} | {
    "spec": {"selector": {}, "maxUnavailable": 1}
}
CREATE = Create(api.BUDGET, BUDGET)
PATCH = Patch(api.BUDGET, "b", {"spec": {"maxUnavailable": 2}})
DELETE = Delete(api.BUDGET, "b", "")


@pytest.fixture
def performer(harness):
    harness.beating = False
    return Performer(harness.client, empty_cache(harness.client), lambda: True, lambda: 0.5)


def _writes(asked):
    return asked.method != "GET"


@pytest.mark.parametrize(
    ("code", "after", "expected"),
    [
        pytest.param(409, 0, Retry(0.2 * 1.5 / 2, ""), id="the object moved: again at once"),
        pytest.param(429, 7, Retry(8.5, ""), id="the server says when; not all come back at once"),
        pytest.param(429, 0, Retry(1.5, ""), id="or does not"),
        pytest.param(500, 0, Retry(1.5, ""), id="the server is ill"),
        pytest.param(503, 3, Retry(4.5, ""), id="the server is away"),
        pytest.param(403, 0, GaveUp("", 45.0), id="we may not"),
        pytest.param(422, 0, GaveUp("", 45.0), id="the object is wrong"),
        pytest.param(400, 0, GaveUp("", 45.0), id="the request is wrong"),
    ],
)
async def test_a_refusal_becomes_an_outcome(harness, performer, code, after, expected):
    harness.server.faults.refuse(code, when=_writes, after=after)
    outcome = await performer.one(CREATE)
    assert replace(outcome, why="") == expected
    assert outcome.why


@pytest.mark.parametrize(
    ("code", "waits"),
    [(409, [0.15, 0.3, 0.6, 1.2]), (503, [1.5, 3, 6, 12]), (403, [45, 90, 180, 360])],
)
async def test_each_failure_in_a_row_doubles_the_wait_until_it_succeeds(harness, performer, code, waits):
    harness.server.faults.refuse(code, when=_writes, times=4)
    assert [(await performer.one(CREATE)).after for _ in waits] == pytest.approx(waits)
    assert await performer.one(CREATE) == Done()
    harness.server.faults.refuse(code, when=_writes)
    assert (await performer.one(CREATE)).after == pytest.approx(waits[0])


async def test_a_case_that_moved_is_read_live_so_that_a_silent_watch_does_not_repeat_the_conflict(harness, performer):
    """A user holds the case while its watch is half-open: the write is refused once, the next one knows the hold."""
    await harness.make(CASES, "case-1", nodeName="gpu-1", nodeUID="uid", policyName="gpu-lost")
    stale = decode.remediation_case(await harness.client.get(api.CASE, "case-1"))
    performer.cache.cases.note("case-1", stale)
    await harness.change(CASES, "case-1", spec={"hold": True})
    after = advance(stale, Reason.CLAIMED, "ours", at(1), Phase.DRAINING)
    assert isinstance(await performer.one(SaveCase(stale, after)), Retry)
    newest = performer.cache.cases.get("case-1")
    assert newest.hold
    assert await performer.one(SaveCase(newest, advance(newest, Reason.CLAIMED, "ours", at(1)))) == Done()


async def test_an_answer_that_was_lost_is_no_harm(harness, performer):
    harness.server.faults.lose(when=_writes)
    assert isinstance(await performer.one(CREATE), Retry)
    assert await performer.one(CREATE) == Done(), "made twice is there already"


async def test_what_is_gone_already_is_done(performer):
    assert await performer.one(PATCH) == Done()
    assert await performer.one(DELETE) == Done()
    assert await performer.one(ChangeNode("gone", marks.claim(a_case(), a_sick_node()))) == Done()


async def test_a_namespace_that_is_not_there_yet_is_waited_for(harness):
    performer = Performer(
        harness.client, empty_cache(harness.client, names.Namespaces(operations="nowhere")), lambda: True
    )
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
    assert isinstance(await performer.one(Create(POD, pod)), Retry)


async def test_a_case_that_vanished_under_its_status_is_looked_at_again(performer):
    case = a_case()
    after = advance(case, Reason.CLAIMED, "ours", at(1), Phase.DRAINING)
    assert isinstance(await performer.one(SaveCase(case, after)), Retry)


async def test_saving_what_says_nothing_new_writes_nothing(harness, performer):
    before = len(harness.server.audit)
    assert await performer.one(SaveCase(a_case(), a_case())) == Done()
    assert len(harness.server.audit) == before


async def test_effects_end_at_the_first_that_is_not_done(harness, performer):
    harness.server.faults.refuse(422, when=_writes)
    assert isinstance(await performer.all([CREATE, DELETE, CREATE]), GaveUp)
    assert harness.all(CASES) == []


async def test_who_does_not_lead_writes_nothing(harness):
    follower = Performer(harness.client, empty_cache(harness.client), lambda: False)
    before = len(harness.server.audit)
    assert isinstance(await follower.all([CREATE]), Retry)
    assert len(harness.server.audit) == before


async def test_what_the_server_answers_is_known_to_the_next_decision(performer):
    await performer.one(CREATE)
    assert performer.cache.budgets.get("b").max_unavailable.value == 1
    await performer.one(PATCH)
    assert performer.cache.budgets.get("b").max_unavailable.value == 2


async def test_a_gated_creation_waits_while_everything_new_is_stopped(harness, performer):
    gated = replace(CREATE, gated=True)
    await harness.change(NAMESPACES, SYSTEM, metadata={"annotations": {names.PAUSED: ""}})
    assert isinstance(await performer.one(gated), Retry)
    assert performer.cache.budgets.get("b") is None
    await harness.change(NAMESPACES, SYSTEM, metadata={"annotations": {names.PAUSED: None}})
    assert await performer.one(gated) == Done()


async def test_a_delete_is_meant_for_one_uid_only(harness, performer):
    await performer.one(CREATE)
    assert isinstance(await performer.one(Delete(api.BUDGET, "b", "another")), Retry)


@pytest.fixture
async def claim(harness, performer):
    """A claim from a cache in which the node is older than it is."""
    await harness.node("gpu-1", "True")
    stale = decode.node(await harness.client.get(NODE, "gpu-1"))
    performer.cache.nodes.note("gpu-1", stale)
    await harness.condition("gpu-1", "True", "Ready")
    return ChangeNode("gpu-1", marks.claim(a_case(node_uid=stale.uid), stale))


async def test_a_node_whose_heartbeat_moved_it_is_read_live_and_claimed(harness, performer, claim):
    assert await performer.one(claim) == Done()
    assert harness.taints("gpu-1") == [names.CASE_TAINT]


async def test_a_node_that_was_changed_since_it_was_judged_is_not_claimed_and_nothing_of_a_person_is_lost(
    harness, performer, claim
):
    await harness.change(NODES, "gpu-1", spec={"taints": [{"key": "maintenance", "effect": "NoSchedule"}]})
    assert isinstance(await performer.one(claim), Retry)
    assert harness.taints("gpu-1") == ["maintenance"]
    assert performer.cache.nodes.get("gpu-1").taints[0].key == "maintenance", "the next judgement is about this node"


async def test_who_loses_the_lease_between_two_tries_of_a_write_on_a_node_does_not_send_the_second(
    harness, performer, claim
):
    leads = iter((True, False))
    deposed = Performer(harness.client, performer.cache, lambda: next(leads))
    harness.server.faults.refuse(409, when=_writes, times=1)
    assert isinstance(await deposed.one(claim), Retry)
    assert names.CASE_TAINT not in harness.taints("gpu-1")


async def test_who_loses_the_lease_while_the_pause_is_read_makes_no_pod(harness, performer):
    leads = iter((True, False))
    deposed = Performer(harness.client, performer.cache, lambda: next(leads))
    assert await deposed.one(replace(CREATE, gated=True)) == Retry(1.0, "another replica leads")
    assert not await harness.client.list_all(api.BUDGET)


async def test_a_node_that_moves_all_the_time_is_tried_again_later(harness, performer, claim):
    harness.server.faults.refuse(409, when=_writes, times=CONFLICTS)
    assert isinstance(await performer.one(claim), Retry)


async def test_what_happens_in_a_case_is_an_event_on_its_node(harness, performer):
    await harness.node("gpu-1", "True")
    uid = harness.look("gpu-1")["metadata"]["uid"]
    await harness.make(CASES, "case-1", nodeName="gpu-1", nodeUID=uid, policyName="gpu-lost")
    case = decode.remediation_case(await harness.client.get(api.CASE, "case-1"))
    after = advance(case, Reason.CLAIMED, "gpu-1 is ours", at(1), Phase.DRAINING)
    assert await performer.one(SaveCase(case, after)) == Done()
    events = [entry.obj for entry in harness.server.cluster.store.collection("events").entries.values()]
    assert [(one["reason"], one["message"], one["involvedObject"]["name"]) for one in events] == [
        ("Claimed", "case-1: gpu-1 is ours", "gpu-1")
    ]


async def test_losing_an_event_loses_nothing_else(harness, performer):
    await harness.node("gpu-1", "True")
    uid = harness.look("gpu-1")["metadata"]["uid"]
    await harness.make(CASES, "case-1", nodeName="gpu-1", nodeUID=uid, policyName="gpu-lost")
    case = decode.remediation_case(await harness.client.get(api.CASE, "case-1"))
    harness.server.faults.refuse(403, when=lambda asked: asked.path.endswith("/events"), times=9)
    after = advance(case, Reason.CLAIMED, "gpu-1 is ours", at(1), Phase.DRAINING)
    assert await performer.one(SaveCase(case, after)) == Done()
    assert harness.phase("gpu-1") == "Draining"
