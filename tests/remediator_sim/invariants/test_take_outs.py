"""Nodes that users take out: histories that leave them theirs are counted, those that do not are reported."""

from datetime import timedelta
from typing import Any

import pytest

from remediator_sim.invariants.contract import BUDGETS, CASES, NODES, OPERATIONS
from tests.remediator_sim.invariants.histories import BOOT, History, breaks, histories
from tests.remediator_sim.invariants.recording import Recording

MINUTE, SOON = 60, 15 * 60  # seconds
DRAINED = [{"operation": "drain-1", "template": "drain", "outcome": "Succeeded", "rung": 1}]
ASKED = {"operation": "asked", "uid": "uid-asked", "templateName": "drain", "requestedBy": "olga"}


def at(recording: Recording, seconds: float) -> str:
    return (recording.now + timedelta(seconds=seconds)).isoformat()


def wanted(recording: Recording, seconds: float = 40 * MINUTE) -> None:
    """A user has asked for n1 for so long, and a case of that waits for it."""
    recording.node("n1", fault="False")
    recording.budget()
    terms = {"until": at(recording, seconds), "reason": "new PSU"}
    spec = {"nodeName": "n1", "nodeUID": "uid-n1", "templateName": "drain", "keepOut": terms}
    recording.write(OPERATIONS, "asked", spec=spec)
    recording.case("a", "n1", "Held")
    recording.write(CASES, "a", spec={"policyName": None, "nodeUID": "uid-n1", "manual": ASKED, "keepOut": terms})


def claimed(recording: Recording) -> None:
    recording.claims(a="n1")
    recording.taint("n1", "a")
    recording.mark("n1", unschedulable=True)
    recording.write(NODES, "n1", metadata={"annotations": {"remediator.dev/cordoned-by": "uid-a"}})


def out(recording: Recording, seconds: float = 40 * MINUTE, reason: str = "TakenOut") -> None:
    """The user has it."""
    wanted(recording, seconds)
    claimed(recording)
    recording.case("a", phase="Escalated", startedAt=True, reason=reason, attempts=DRAINED)
    recording.write(BUDGETS, "b", status={"claims": [{"case": "uid-a", "node": "n1", "quarantined": True}]})
    recording.write(OPERATIONS, "asked", status={"phase": "Succeeded", "finishedAt": at(recording, 0)})


def late(recording: Recording, seconds: float) -> None:
    """So long passes; of that only the last seconds are played."""
    recording.now += timedelta(seconds=seconds - 5)
    recording.later(5)


def put_back(recording: Recording) -> None:
    recording.write(CASES, "a", spec={"release": True})
    over(recording)


def over(recording: Recording, phase: str = "Escalated") -> None:
    recording.case("a", phase=phase, endedAt=True, reason="ReleasedByUser")


def cleared(recording: Recording) -> None:
    recording.mark("n1", taints=[], unschedulable=None)
    recording.write(NODES, "n1", metadata={"annotations": {}})
    recording.write(NODES, "n1", metadata={"annotations": None})
    recording.claims()
    recording.let_go("a")


def then(*deeds: Any) -> History:
    """One after the other, each after a few seconds more than somebody may not have heard of it."""

    def write(recording: Recording) -> None:
        for deed in deeds:
            deed(recording)
            recording.later(4)

    return write


def another_case(recording: Recording) -> None:
    recording.node("n1")
    recording.case("c", "n1", "Held")


def claims_it(recording: Recording) -> None:
    another_case(recording)
    recording.taint("n1", "c")


def drains_again(recording: Recording) -> None:
    recording.operation("drain-2", "a", 2)
    recording.pod("pod-2", "drain-2", "drain")


def intends(recording: Recording) -> None:
    recording.operation("drain-2", "a", 2, intent=BOOT)


def tries_it_out(recording: Recording) -> None:
    meta = {
        "name": "test",
        "uid": "uid-test",
        "namespace": "remediator-operations",
        "labels": {"remediator.dev/idle-test": "true"},
        "annotations": {"remediator.dev/idle-test": "p/n1/boot-1"},
    }
    recording.write("pods", "test", metadata=meta, spec={"nodeName": "n1"})


@histories(
    "text",
    [
        (then(out, claims_it), "n1 was taken at"),
        (then(out, drains_again), "Pod remediator-operations/pod-2 was made at"),
        (then(out, intends), "the intent of drain-2 was written at"),
        (then(out, tries_it_out), "test remediator-operations/test was made at"),
    ],
)
def test_what_begins_on_a_node_that_a_user_has_is_reported(history: History, text: str) -> None:
    recording = Recording()
    history(recording)
    assert any(text in each and "though a user has n1" in each for each in recording.found("I4").broken)


def test_what_begins_on_a_node_that_was_put_back_is_counted_and_right() -> None:
    checks = []
    for had in (out, wanted):
        recording = Recording()
        then(had, put_back, cleared)(recording)
        before = recording.found("I4").checks
        claims_it(recording)
        checks.append(recording.found("I4").checks - before)
        assert not any("though a user" in each for each in recording.found("I4").broken)
    assert checks[0] - checks[1] == 1


def uncordoned(recording: Recording) -> None:
    recording.mark("n1", unschedulable=None)


def stripped(recording: Recording) -> None:
    recording.mark("n1", taints=[])


def given_up(recording: Recording) -> None:
    recording.write(CASES, "a", metadata={"deletionTimestamp": at(recording, 0)})


def replaced(recording: Recording) -> None:
    recording.remove(NODES, "n1")
    recording.node("n1")
    recording.write(NODES, "n1", metadata={"uid": "uid-of-another"})


@pytest.mark.parametrize("deed", [put_back, uncordoned, stripped, given_up, replaced])
def test_a_case_that_ends_for_what_a_person_did_is_right(deed: Any) -> None:
    recording = Recording()
    then(out, deed, over)(recording)
    assert not any("put n1 back" in each for each in recording.found("I5").broken)


def drained(recording: Recording) -> None:
    wanted(recording)
    claimed(recording)
    recording.case("a", phase="Verifying", startedAt=True, reason="OperationSucceeded", attempts=DRAINED)


def recovers(recording: Recording) -> None:
    over(recording, "Recovered")


@histories("text", [(then(out, over), "case a ended at"), (then(drained, recovers), "case a ended at")])
def test_a_case_that_ends_by_itself_though_a_user_keeps_the_node_is_reported(history: History, text: str) -> None:
    breaks("I5", history, text)


@pytest.mark.parametrize(("after", "broken"), [(40 * MINUTE + 10, True), (40 * MINUTE - 10, False)])
def test_a_node_is_taken_for_a_user_only_while_they_still_want_it(after: float, broken: bool) -> None:
    recording = Recording()
    wanted(recording)
    late(recording, after)
    before = recording.found("I4").checks
    claimed(recording)
    assert recording.found("I4").checks > before
    assert any("for a user who wanted it until" in each for each in recording.found("I4").broken) is broken


@pytest.mark.parametrize("counts", [True, False])
def test_a_node_that_is_out_is_in_quarantine_soon_after_in_each_budget_over_it(counts: bool) -> None:
    recording = Recording()
    out(recording)
    recording.write(BUDGETS, "b", status={"claims": [{"case": "uid-a", "node": "n1", "quarantined": counts or None}]})
    late(recording, SOON - 30)
    before = recording.found("I1").checks
    late(recording, 60)
    found = recording.found("I1")
    assert (found.checks - before, any("does not count n1" in each for each in found.broken)) == (1, not counts)


@pytest.mark.parametrize("clears", [True, False])
def test_what_was_ours_goes_soon_after_a_node_was_put_back(clears: bool) -> None:
    recording = Recording()
    then(out, put_back, *([cleared] if clears else []))(recording)
    before = recording.found("I5").checks
    late(recording, SOON + 30)
    found = recording.found("I5")
    assert found.checks > before
    assert any("has left its taint, its cordon" in each for each in found.broken) is not clears


@pytest.mark.parametrize(
    ("has", "says", "broken"),
    [(out, "Succeeded", False), (out, "Failed", True), (wanted, "Succeeded", True), (wanted, "Cancelled", False)],
)
def test_who_has_asked_is_told_the_truth(has: Any, says: str, broken: bool) -> None:
    recording = Recording()
    has(recording)
    recording.write(OPERATIONS, "asked", status={"finishedAt": None})
    before = recording.found("I5").checks
    recording.write(OPERATIONS, "asked", status={"phase": says, "finishedAt": at(recording, 0)})
    found = recording.found("I5")
    assert (found.checks - before, any("its user" in each for each in found.broken)) == (1, broken)


@pytest.mark.parametrize(
    ("reason", "length", "broken"),
    [
        ("TakenOut", 40 * MINUTE, False),
        ("TakenOut", -40 * MINUTE, True),
        ("TakeOutOverdue", -40 * MINUTE, False),
        ("TakeOutOverdue", 40 * MINUTE, True),
    ],
)
def test_a_case_says_what_is_so_of_the_time_of_its_user(reason: str, length: float, broken: bool) -> None:
    recording = Recording()
    out(recording, length, reason)
    assert any(f"says {reason} at" in each for each in recording.found("I12").broken) is broken


@pytest.mark.parametrize(("after", "broken"), [(SOON - 30, False), (SOON + 30, True)])
def test_that_a_time_is_over_is_told_soon(after: float, broken: bool) -> None:
    recording = Recording()
    out(recording)
    late(recording, 40 * MINUTE)
    late(recording, after)
    assert any("says TakenOut of a time" in each for each in recording.found("I12").broken) is broken
