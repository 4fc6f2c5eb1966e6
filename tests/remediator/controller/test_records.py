"""What an admission pass leaves to be written is written, whatever comes between the pass and the write."""

from remediator.clock import SYSTEM
from remediator.controller.admission import Admissions
from remediator.controller.explain import snapshot
from remediator.controller.handlers.base import Dependencies
from remediator.controller.perform import Performer
from remediator.controller.reconcile.case import CaseReconciler
from remediator.controller.reconcile.node import NodeReconciler
from remediator.core import names
from remediator.core.breaker import Breaker
from tests.harness.kinds import CASES, NODES

NODE = "gpu-1"


class Leader:
    """Passes by hand over one node and its case, in the cache of one replica."""

    def __init__(self, harness, cache):
        self.harness, self.cache = harness, cache
        self.performer = Performer(harness.client, cache, lambda: True)
        self.asked = 0
        self.lead()

    def lead(self):
        """Begin with nothing but the cache."""
        self.admissions = Admissions(self.cache, self.performer, Breaker(), SYSTEM.monotonic)
        dependencies = Dependencies(self.cache, self.performer, self._ask, 50, self.admissions.records)
        self._nodes, self._cases = NodeReconciler(dependencies), CaseReconciler(dependencies)

    def _ask(self):
        self.asked += 1

    @property
    def records(self):
        return self.admissions.records

    @property
    def case(self):
        (case,) = self.cache.cases
        return case

    async def open(self):
        """A case of a node that has just fallen sick."""
        await self.admissions.run(SYSTEM.now())
        await self._nodes.reconcile(NODE, SYSTEM.now())
        self.asked = 0

    async def admit(self):
        """An admission pass; the cases that are to be looked at because of it."""
        await self.admissions.run(SYSTEM.now())
        return self.records.due

    async def look(self, due):
        """A pass over each of these cases; seconds until the next look at the last one."""
        seconds = None
        for name in due:
            seconds = await self._cases.reconcile(name, SYSTEM.now())
        return seconds

    async def change(self, kind, name, **parts):
        """Somebody else changes an object, and the watch tells."""
        await self.harness.change(kind, name, **parts)
        await (self.performer.node(name) if kind is NODES else self.performer.case(name))


async def leader_of(harness, most):
    harness.beating = False
    await harness.policy()
    await harness.budget("all", most)
    await harness.node(NODE)
    await harness.condition(NODE, "True")
    leader = Leader(harness, await snapshot(harness.client, harness.namespaces, SYSTEM))
    await leader.open()
    return leader


def shown(harness):
    """What the case says on the server."""
    status = harness.cases(NODE)[0].get("status", {})
    return status.get("phase", ""), [block["reason"] for block in status.get("blockedBy", ())]


HELD = ("Held", ["BudgetSpent"])


async def test_why_a_case_is_held_is_shown_though_its_node_changes_before_each_write(harness):
    leader = await leader_of(harness, most=0)
    due = await leader.admit()
    await leader.change(NODES, NODE, metadata={"labels": {"another": "x"}})
    await leader.look(due)
    assert (shown(harness), leader.asked) == (HELD, 1)
    await leader.change(NODES, NODE, metadata={"labels": {"another": "y"}})
    await leader.look(due)
    assert harness.taints(NODE) == [names.DEGRADED_TAINT]


async def test_a_case_that_asks_for_admission_is_looked_at_after_it_though_the_same_holds_it(harness):
    leader = await leader_of(harness, most=0)
    due = await leader.admit()
    await leader.change(CASES, leader.case.name, metadata={"finalizers": [names.CASE_FINALIZER, "example.com/audit"]})
    await leader.look(due)
    assert (shown(harness), leader.asked) == (("", []), 1)
    assert await leader.admit() == due
    await leader.look(due)
    assert shown(harness) == HELD
    assert await leader.admit() == []


async def test_a_case_that_is_deleted_and_made_again_shows_what_held_the_first_one_of_its_name(harness):
    leader = await leader_of(harness, most=0)
    due, first = await leader.admit(), leader.case
    (wire,) = harness.cases(NODE)
    await harness.change(CASES, first.name, metadata={"finalizers": []})
    await harness.client.delete(CASES, first.name, uid=first.uid)
    head = {key: wire["metadata"][key] for key in ("name", "labels", "finalizers") if key in wire["metadata"]}
    await harness.client.create(CASES, {**wire, "metadata": head})
    await leader.performer.case(first.name)
    assert leader.case.uid != first.uid
    assert await leader.admit() == due
    await leader.look(due)
    assert shown(harness) == HELD


def _status_of_a_case(asked):
    return asked.method == "PATCH" and "/noderemediations/" in asked.path


async def test_a_claim_whose_record_fails_is_admitted_again_though_nothing_has_changed(harness):
    """A new leader completes a claim: case and node are as its admission pass has seen them."""
    leader = await leader_of(harness, most=1)
    await leader.admit()
    leader.lead()
    await leader.performer.node(NODE)  # the cluster has tainted the cordoned node meanwhile
    due = await leader.admit()
    harness.server.faults.refuse(503, when=_status_of_a_case)
    assert await leader.look(due) > 0
    assert (shown(harness), leader.records.due, leader.asked) == (("", []), [], 0)
    await leader.look(due)
    assert leader.asked == 1
    await leader.look(await leader.admit())
    assert shown(harness) == ("Draining", [])


async def test_a_claim_that_was_admitted_again_while_its_first_record_failed_is_recorded(harness):
    """A user touches the case; its record meets a conflict, and an admission pass runs before the answer comes."""
    leader = await leader_of(harness, most=1)
    due = await leader.admit()
    await harness.change(CASES, leader.case.name, metadata={"annotations": {"seen": "yes"}})
    read_again = leader.performer._read_again

    async def slowly(effect):
        await read_again(effect)
        await leader.admissions.run(SYSTEM.now())

    leader.performer._read_again = slowly
    assert await leader.look(due) > 0
    assert len(leader.records.due) == 1
    await leader.look(leader.records.due)
    assert shown(harness) == ("Draining", [])


async def test_nothing_is_due_of_a_claim_whose_case_has_ended_meanwhile(harness):
    leader = await leader_of(harness, most=1)
    await leader.admit()
    assert len(leader.records.due) == 1
    await harness.client.delete(CASES, leader.case.name, uid=leader.case.uid)
    await leader.performer.case(leader.case.name)
    await leader.look([leader.case.name])
    assert leader.case.ended is not None
    assert (await leader.admit(), leader.records.due) == ([], [])
