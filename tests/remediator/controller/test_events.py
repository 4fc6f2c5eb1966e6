"""Events that give way to claims and holds are created all the same, each once, whoever leads by then."""

from datetime import UTC, datetime, timedelta

from remediator.clock import SYSTEM
from remediator.controller.events import WAITS, PendingEvents
from remediator.controller.reconcile.case import CaseReconciler
from remediator.controller.reconcile.node import NodeReconciler
from remediator.core.case import advance
from remediator.core.reasons import Reason
from tests.builders import a_case
from tests.harness.admission import replica
from tests.harness.controller import running, until
from tests.harness.kinds import CASES

NODE = "gpu-1"


def events(harness):
    """The reasons of all Events of cases, oldest first."""
    found = [entry.obj for entry in harness.server.cluster.store.collection("events").entries.values()]
    return [event["reason"] for event in found if event["involvedObject"]["kind"] == "Node"]


async def shown_hold(harness):
    """A case that says what holds it, its Event still to be created: the case, its replica and admissions."""
    harness.beating = False
    await harness.policy()
    await harness.budget("all", 0)
    await harness.node(NODE)
    await harness.condition(NODE, "True")
    dependencies, admissions = await replica(harness)
    await admissions.run(SYSTEM.now())
    await NodeReconciler(dependencies).reconcile(NODE, SYSTEM.now())
    await admissions.run(SYSTEM.now())
    (case,) = dependencies.cache.cases
    await admissions.records.write(case, dependencies.performer, SYSTEM.now())
    (case,) = dependencies.cache.cases
    assert (harness.reasons(NODE), events(harness)) == (["BudgetSpent"], [])
    return case, dependencies, admissions


async def test_an_event_that_gave_way_comes_with_the_next_pass_over_its_case_before_the_mark_of_its_node(harness):
    case, dependencies, _ = await shown_hold(harness)
    harness.server.audit.clear()
    await CaseReconciler(dependencies).reconcile(case.name, SYSTEM.now())
    assert ["events" in mutation.path for mutation in harness.server.audit] == [True, False]
    await CaseReconciler(dependencies).reconcile(case.name, SYSTEM.now())
    assert events(harness) == ["BudgetSpent"]


async def test_an_event_that_gave_way_is_created_though_its_case_is_gone_meanwhile(harness):
    case, _, before = await shown_hold(harness)
    await harness.change(CASES, case.name, metadata={"finalizers": []})
    await harness.client.delete(CASES, case.name)
    dependencies, admissions = await replica(harness)
    admissions.records.events = before.records.events
    assert list(dependencies.cache.cases) == []
    await CaseReconciler(dependencies).reconcile(case.name, SYSTEM.now())
    assert events(harness) == ["BudgetSpent"]


async def test_of_two_leaders_the_second_creates_the_event_that_the_first_did_not_get_to(harness):
    """The first one is gone after it wrote the status; it had renewed the lease a moment ago."""
    async with running(harness):
        await harness.quiet()
    await shown_hold(harness)
    async with running(harness):
        await until(lambda: events(harness) == ["BudgetSpent"])
        await harness.quiet()
    assert events(harness) == ["BudgetSpent"]


async def test_an_event_that_the_leader_before_has_created_is_not_created_again(harness):
    """Its name follows from what the API server keeps: whole seconds."""
    case, dependencies, admissions = await shown_hold(harness)
    pending, performer = admissions.records.events, dependencies.performer
    await pending.create(case.name, performer)
    pending.resume(dependencies.cache.cases, SYSTEM.now())
    assert case.name in pending
    await pending.create(case.name, performer)
    assert events(harness) == ["BudgetSpent"]


def test_events_from_before_the_last_renewal_are_left_as_they_are_and_so_are_all_where_nobody_led():
    """Two minutes before it are asked about again: no Event waits for so long."""
    now = SYSTEM.now()
    pending = PendingEvents()
    old = advance(a_case(name="old"), Reason.BUDGET_SPENT, "", now - WAITS - timedelta(seconds=1))
    young = advance(a_case(name="young"), Reason.BUDGET_SPENT, "", now - WAITS + timedelta(seconds=1))
    pending.resume([old, young], None)
    assert "young" not in pending
    pending.resume([old, young], datetime.max.replace(tzinfo=UTC))
    assert ("old" in pending, "young" in pending) == (False, False), "no time on a Lease is too far away"
    pending.resume([old, young], now)
    assert ("old" in pending, "young" in pending) == (False, True)
    pending.clear()
    assert "young" not in pending
