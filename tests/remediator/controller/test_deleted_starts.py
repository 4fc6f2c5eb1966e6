"""Whoever deletes cases in a storm gives the breaker of the fleet no start back."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

from remediator.controller.deleted_starts import DeletedStarts, read, text
from remediator.core import names
from remediator.core.breaker import Breaker, DisruptiveStart
from remediator.core.budget import BreakerRule
from remediator.core.case import Phase
from tests.builders import a_budget, a_case, an_attempt, an_operation, at, minutes
from tests.harness.controller import REBOOTED, RUNS, running, until
from tests.harness.kinds import CASES

ONE = Breaker(1, timedelta(minutes=10))


async def test_a_case_that_is_deleted_and_gone_counts_as_a_start_for_this_leader_and_the_next(harness):
    harness.answer("reboot", RUNS)
    await harness.policy()
    await harness.budget("all", 5)
    await harness.node("gpu-1", "True")
    await harness.node("gpu-2")
    async with running(harness, "one", breaker=ONE):
        await until(lambda: "reboot gpu-1" in harness.ran)
        await harness.delete_case("gpu-1")
        await harness.finish("reboot", REBOOTED)
        await until(lambda: not harness.cases("gpu-1"))
        await harness.condition("gpu-2", "True")
        await until(lambda: harness.reasons("gpu-2") == ["BreakerOpen"])
    async with running(harness, "two", breaker=ONE):
        await harness.quiet()
        assert (harness.reasons("gpu-2"), harness.ran.count("reboot gpu-2")) == (["BreakerOpen"], 0)


async def test_a_case_that_is_deleted_while_the_admission_pass_waits_for_the_server_counts_in_that_pass(harness):
    await harness.policy()
    await harness.budget("all", 5)
    await harness.node("gpu-1", "True")
    await harness.node("gpu-2")
    async with running(harness, "one", breaker=ONE) as controller:
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        await until(lambda: not harness.cases("gpu-1")[0]["metadata"].get("finalizers"))
        ledgers, known = controller._admissions.ledgers, controller.cache.cases
        update = ledgers.update

        async def deleted_meanwhile(now):
            updated = await update(now)
            if known.by("node", "gpu-1") and any(case.finalizer for case in known.by("node", "gpu-2")):
                await harness.delete_case("gpu-1")
                await until(lambda: not known.by("node", "gpu-1"))
            return updated

        ledgers.update = deleted_meanwhile
        await harness.condition("gpu-2", "True")
        await until(lambda: harness.reasons("gpu-2") == ["BreakerOpen"])
        assert (harness.cases("gpu-1"), harness.ran.count("reboot gpu-2")) == ([], 0)


@pytest.mark.parametrize("runs", [names.DIAGNOSTICS_TEMPLATE, "reboot"])
async def test_a_case_that_is_removed_by_force_while_no_replica_runs_counts_as_a_start(harness, runs):
    harness.answer(runs, RUNS)
    await harness.policy()
    await harness.budget("all", 5)
    await harness.node("gpu-1", "True")
    await harness.node("gpu-2")
    async with running(harness, "one", breaker=ONE):
        await until(lambda: f"{runs} gpu-1" in harness.ran)
    (case,) = (case["metadata"]["name"] for case in harness.cases("gpu-1"))
    await harness.change(CASES, case, metadata={"finalizers": None})
    await harness.client.delete(CASES, case)
    await harness.condition("gpu-1", "False")
    await harness.condition("gpu-2", "True")
    async with running(harness, "two", breaker=ONE):
        await until(lambda: harness.reasons("gpu-2") == ["BreakerOpen"])
        await harness.quiet()
        assert (harness.reasons("gpu-2"), harness.ran.count("reboot gpu-2")) == (["BreakerOpen"], 0)


class Entries(dict):
    """Since when each case has an entry in a ledger, by its uid."""

    since = dict.get


class Fleet:
    """The cases that a leader sees, and the notes on its Lease."""

    def __init__(self, *cases, noted="", operations=(), entered=()):
        self.budgets = []
        self.cases, self.deleted_starts = list(cases), frozenset()
        self.operations, self.entries = operations, Entries(entered)
        self.notes = {names.DELETED_STARTS: noted}
        leader = SimpleNamespace(before=(None, dict(self.notes)), note=self.notes.__setitem__)
        self.starts = DeletedStarts(self, leader, Breaker(10, minutes(10)))

    def case(self, uid):
        return next((case for case in self.cases if case.uid == uid), None)

    def cases_since(self, when):
        return self.cases

    def delete(self, minute):
        """All of them, of which the leader hears then."""
        gone, self.cases = self.cases, []
        for case in gone:
            self.starts.gone(case, at(minute))

    def look(self, minute):
        self.starts.begin(at(minute))
        self.starts.look(at(minute))
        return sorted(start.at for start in self.deleted_starts)


def test_the_starts_of_a_deleted_case_count_until_the_window_is_over():
    fleet = Fleet(a_case("a", attempts=(an_attempt(started=1), an_attempt(started=5))), a_case("b"))
    assert fleet.look(6) == []
    fleet.delete(7)
    assert fleet.look(7) == [at(1), at(5)]
    assert read(fleet.notes[names.DELETED_STARTS], at(7)) == fleet.deleted_starts
    assert fleet.look(12) == [at(5)]
    assert (fleet.look(15), fleet.notes[names.DELETED_STARTS]) == ([], "")


def test_the_claim_of_a_deleted_case_is_its_start_and_one_that_ended_ten_minutes_ago_is_none():
    claimed = a_case("a", phase=Phase.DRAINING, started=at(1))
    old = a_case("b", phase=Phase.RECOVERED, ended=at(0), attempts=(an_attempt(started=-1),))
    fleet = Fleet(claimed, old)
    fleet.look(10)
    fleet.delete(10)
    assert fleet.look(10) == [at(1)]


def test_what_the_leader_before_has_noted_counts_once_beside_what_is_known_and_not_for_a_case_that_is_there():
    first = Fleet(a_case("a", attempts=(an_attempt(started=1),)), a_case("b", attempts=(an_attempt(started=2),)))
    first.look(3)
    first.delete(3)
    first.look(3)
    noted = first.notes[names.DELETED_STARTS]
    assert len(Fleet(noted=noted).look(4)) == 2
    assert Fleet(a_case("a", attempts=(an_attempt(started=1),)), noted=noted).look(4) == [at(2)]
    first.starts.end()
    assert first.look(4) == [at(1), at(2)]


def test_what_was_deleted_before_we_led_or_since_the_last_look_is_on_the_lease_beside_what_was_noted():
    fleet = Fleet(a_case("b", attempts=(an_attempt(started=2),)), noted=f"a/{at(1).isoformat()}")
    fleet.delete(3)
    assert (fleet.deleted_starts, fleet.notes[names.DELETED_STARTS].count("/")) == ({(at(2), "uid-b", "gpu-1")}, 1)
    assert fleet.look(3) == [at(1), at(2)]
    fleet.cases = [a_case("c", attempts=(an_attempt(started=3),))]
    fleet.delete(4)
    assert read(fleet.notes[names.DELETED_STARTS], at(4)) == fleet.deleted_starts
    assert len(fleet.deleted_starts) == 3


@pytest.mark.parametrize("leaving", [{"deleting": True}, {"phase": Phase.RECOVERED, "ended": at(2)}])
def test_a_leader_that_is_killed_between_the_deletion_of_a_case_and_its_next_renewal_has_noted_the_starts_before(
    leaving,
):
    first = Fleet(a_case("a", attempts=(an_attempt(started=1),), **leaving), a_case("b", attempts=(an_attempt(),)))
    assert first.look(3) == []
    renewed = dict(first.notes)
    first.delete(3)
    assert Fleet(noted=renewed[names.DELETED_STARTS]).look(4) == [at(1)]
    still_there = Fleet(
        *[a_case("a", attempts=(an_attempt(started=1),), **leaving)], noted=renewed[names.DELETED_STARTS]
    )
    assert still_there.look(4) == []
    assert (first.look(12), first.notes[names.DELETED_STARTS]) == ([], "")


ORPHAN = an_operation(case_uid="uid-a", created=at(2))
LEFT_BEHIND = {  # operations, entries, what the leader before noted; the starts that count at minute 4
    "an operation that goes on": ([ORPHAN], {}, "", [at(2)]),
    "an operation beside the entry of its case": ([ORPHAN], {"uid-a": at(1)}, "", [at(2)]),
    "two attempts": ([ORPHAN, replace(ORPHAN, name="op-2", created=at(3))], {}, "", [at(2), at(3)]),
    "one that ended after its drain": ([replace(ORPHAN, drain_started=at(2), finished=at(3))], {}, "", [at(2)]),
    "one that ended before it": ([replace(ORPHAN, finished=at(3))], {}, "", []),
    "one that is older than the window": ([replace(ORPHAN, created=at(-7))], {}, "", []),
    "an entry": ([], {"uid-a": at(1)}, "", [at(1)]),
    "what the leader before noted": ([ORPHAN], {"uid-a": at(1)}, f"uid-a/{at(1.5).isoformat()}", [at(1.5)]),
    "one of a case that is there": ([replace(ORPHAN, case_uid="uid-b")], {"uid-b": at(1)}, "", []),
}


@pytest.mark.parametrize(("operations", "entered", "noted", "expected"), LEFT_BEHIND.values(), ids=LEFT_BEHIND)
def test_what_is_left_of_a_case_that_went_while_nobody_led_tells_its_starts(operations, entered, noted, expected):
    fleet = Fleet(a_case("b"), operations=operations, entered=entered, noted=noted)
    assert fleet.look(4) == expected
    fleet.operations, fleet.entries = [], Entries()
    assert fleet.look(5) == expected


def test_a_claim_that_is_not_recorded_counts_from_its_entry_when_its_case_is_removed_by_force():
    fleet = Fleet(a_case("a"), entered={"uid-a": at(1)})
    fleet.look(2)
    fleet.delete(3)
    assert fleet.look(3) == [at(1)]


@pytest.mark.parametrize(
    "noted", ["", "x", "/", "a/b", "a/2026-01-01", "a/9999-12-31T00:00:00+00:00", ",,", "a" * 9999]
)
def test_a_note_that_makes_no_sense_or_lies_in_the_future_counts_for_nothing(noted):
    assert Fleet(noted=noted).look(4) == []


def test_starts_count_for_the_longest_window_of_a_budget_with_the_node_that_they_were_on():
    fleet = Fleet(a_case("a", attempts=(an_attempt(started=1),)))
    fleet.budgets = [a_budget(breaker=BreakerRule(starts=5, window=minutes(30)))]
    fleet.delete(7)
    assert fleet.look(30) == [at(1)]
    assert read(fleet.notes[names.DELETED_STARTS], at(30)) == {DisruptiveStart(at(1), "uid-a", "gpu-1")}
    assert fleet.look(31) == []


def test_what_is_noted_fits_into_an_annotation_whatever_nodes_are_called():
    """1,000 starts on nodes with names of 253 characters would take 320 KB, and an annotation holds 256 KiB."""
    noted = text(DisruptiveStart(at(n), "u" * 36, "n" * 253) for n in range(1000))
    assert len(noted) < 256 * 1024
    assert max(read(noted, at(2000)))[0] == at(999)
