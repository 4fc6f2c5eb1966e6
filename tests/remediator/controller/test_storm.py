"""Many faults at once: what comes after a claim gives way to claims that are still to be made."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from remediator.clock import SYSTEM
from remediator.controller.reconcile.case import CaseReconciler
from remediator.controller.reconcile.node import NodeReconciler
from remediator.controller.records import AGAIN, considered
from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.core.case import Block, Phase
from remediator.core.node import Taint
from remediator.core.reasons import Reason
from remediator.kube.informers import Pause
from remediator.kube.runtime import queue
from tests.builders import a_case, a_node
from tests.harness.admission import replica
from tests.harness.controller import running, until
from tests.harness.kinds import CASES, NODES

pytestmark = pytest.mark.sampled("storm")

NODES_AT_ONCE = 40
BREAKER = Breaker().starts  # as shipped


async def storm(harness, most="100%"):
    """So many nodes that fall sick one after the other while the controller runs."""
    harness.beating = False
    await harness.policy()
    await harness.budget("all", most)
    nodes = [f"gpu-{number}" for number in range(NODES_AT_ONCE)]
    for node in nodes:
        await harness.node(node)
    return nodes


def claimed(harness):
    return [node for node in harness.all(NODES) if names.CASE_TAINT in harness.taints(node["metadata"]["name"])]


def kind_of(mutation):
    """A claim is a case, an entry in a ledger and marks on a node; a record is the status of a case."""
    parts = mutation.path.split("/")
    if "nodes" in parts:
        return "node"
    if "noderemediations" in parts:
        return "record" if parts[-1] == "status" else "case"
    kinds = {"events": "event", "pods": "pod", "nodedisruptionbudgets": "ledger"}
    return next((kind for plural, kind in kinds.items() if plural in parts), "other")


def before_the_last(kind, harness):
    """How many of each kind were written before the last one of this kind."""
    kinds = [kind_of(mutation) for mutation in harness.server.audit]
    return Counter(kinds[: len(kinds) - kinds[::-1].index(kind)])


async def test_of_40_faults_at_once_all_are_claimed_before_more_than_ten_cases_are_recorded_and_before_any_event(
    harness, monkeypatch
):
    """A quarter of 16 workers record claims meanwhile; here records give way for as long as a slow machine takes."""
    monkeypatch.setattr(queue, "PATIENCE", 600.0)
    nodes = await storm(harness)
    async with running(harness, breaker=Breaker(starts=1000)):
        await harness.quiet()
        harness.server.audit.clear()
        await asyncio.gather(*(harness.condition(node, "True") for node in nodes))
        await until(lambda: len(claimed(harness)) == NODES_AT_ONCE)
        written = before_the_last("node", harness)
    assert (written["case"], written["node"]) == (NODES_AT_ONCE, 2 * NODES_AT_ONCE)
    assert written["ledger"] <= NODES_AT_ONCE / 4
    assert written["record"] <= NODES_AT_ONCE / 4
    assert (written["event"], written["pod"]) == (0, 0)


async def test_of_30_cases_that_the_breaker_as_shipped_holds_all_say_so_before_any_event_and_any_other_mark(
    harness, monkeypatch
):
    """An Event and the mark of a node that waits come after what other cases have to show."""
    monkeypatch.setattr(queue, "PATIENCE", 600.0)
    nodes = await storm(harness)
    async with running(harness, breaker=Breaker()):
        await harness.quiet()
        harness.server.audit.clear()
        await asyncio.gather(*(harness.condition(node, "True") for node in nodes))
        await until(lambda: held(harness) == NODES_AT_ONCE - 10)
        written = before_the_last("record", harness)
        await harness.quiet()
        events = [kind_of(mutation) for mutation in harness.server.audit].count("event")
    assert written["record"] >= NODES_AT_ONCE - 10
    assert (written["event"], written["node"]) == (0, NODES_AT_ONCE + 10), "conditions and claims, no other mark"
    assert events >= NODES_AT_ONCE, "each case has its Event"


async def test_of_40_faults_at_once_ten_are_claimed_by_the_breaker_as_shipped_and_30_say_so_in_few_passes(harness):
    """The breaker counts claims that no case says yet."""
    nodes, passes = await storm(harness), []
    async with running(harness, breaker=Breaker()) as controller:
        await harness.quiet()
        run = controller._admissions.run

        async def counted(now):
            passes.append(now)
            return await run(now)

        controller._admissions.run = counted
        await asyncio.gather(*(harness.condition(node, "True") for node in nodes))
        await until(lambda: held(harness) == NODES_AT_ONCE - 10)
        await harness.quiet()
        assert len(claimed(harness)) == 10
        assert len([case for case in harness.all(CASES) if case.get("status", {}).get("startedAt")]) == 10
    assert len(passes) <= NODES_AT_ONCE, "writing why 30 are held asks for no admission of each"


def held(harness):
    """How many cases say that the breaker holds them."""
    blocks = [block for case in harness.all(CASES) for block in case.get("status", {}).get("blockedBy", ())]
    return sum(block["reason"] == "BreakerOpen" for block in blocks)


def test_what_showing_a_hold_changes_asks_for_no_admission_and_what_else_changes_does():
    node = a_node("gpu-1")
    case = a_case("gpu-1", node="gpu-1", node_uid=node.uid)
    blocks = (Block(Reason.BREAKER_OPEN, "10 starts"),)
    degraded = replace(node, taints=(Taint(names.DEGRADED_TAINT, "", "PreferNoSchedule"),), version="9")
    shown = replace(case, blocks=blocks, phase=Phase.HELD, reason=Reason.BREAKER_OPEN, message="10", version="8")
    assert considered(shown, degraded) == considered(case, node)
    for other in (replace(case, hold=True), replace(case, deleting=True), replace(case, phase=Phase.DRAINING)):
        assert considered(other, node) != considered(case, node)
    for other in (replace(node, unschedulable=True), replace(node, labels={"a": "b"}), replace(node, uid="another")):
        assert considered(case, other) != considered(case, node)


async def test_a_claim_is_recorded_of_the_case_that_was_admitted_and_of_no_other_state_of_it(harness):
    """A user sets spec.hold between the marks and the record: the next pass reads live what has become of it."""
    nodes = await storm(harness)
    await harness.condition(nodes[0], "True")
    dependencies, admissions = await replica(harness, BREAKER)
    cache, performer = dependencies.cache, dependencies.performer
    await admissions.run(SYSTEM.now())
    await NodeReconciler(dependencies).reconcile(nodes[0], SYSTEM.now())
    await admissions.run(SYSTEM.now())
    (case,) = cache.cases
    assert admissions.records.due == [case.name]
    await harness.client.patch(CASES, case.name, {"spec": {"hold": True}})
    await performer.case(case.name)
    (changed,) = cache.cases
    assert await admissions.records.write(changed, performer, SYSTEM.now()) is None
    assert (harness.phase(nodes[0]), admissions.records.due) == ("", [])
    assert len(claimed(harness)) == 1


async def test_a_claim_is_not_recorded_once_all_new_work_is_paused(harness):
    """A user pauses between the marks and the record: an admission pass decides, and holds the case."""
    nodes, asked = await storm(harness), []
    await harness.condition(nodes[0], "True")
    dependencies, admissions = await replica(harness, BREAKER, lambda: asked.append(True))
    cache = dependencies.cache
    await admissions.run(SYSTEM.now())
    await NodeReconciler(dependencies).reconcile(nodes[0], SYSTEM.now())
    await admissions.run(SYSTEM.now())
    (case,) = cache.cases
    cache.pause.note(harness.namespaces.system, Pause(True, "999999"))
    asked.clear()
    await CaseReconciler(dependencies).reconcile(case.name, SYSTEM.now())
    assert (harness.phase(nodes[0]), admissions.records.due, asked) == ("", [], [True])


async def test_why_a_case_is_held_is_shown_before_its_node_is_marked(harness):
    """The mark comes with the next pass over the case, after what other cases have to show."""
    nodes = await storm(harness, most=0)
    await harness.condition(nodes[0], "True")
    dependencies, admissions = await replica(harness, BREAKER)
    cache, performer = dependencies.cache, dependencies.performer
    await admissions.run(SYSTEM.now())
    await NodeReconciler(dependencies).reconcile(nodes[0], SYSTEM.now())
    await admissions.run(SYSTEM.now())
    (case,) = cache.cases
    assert await admissions.records.write(case, performer, SYSTEM.now()) == AGAIN
    (shown,) = cache.cases
    assert ([block.reason for block in shown.blocks], harness.taints(nodes[0])) == ([Reason.BUDGET_SPENT], [])
    await admissions.records.write(shown, performer, SYSTEM.now())
    assert harness.taints(nodes[0]) == [names.DEGRADED_TAINT]
