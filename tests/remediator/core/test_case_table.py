"""Both tables: total, without a dead row, and lawful over everything that can be observed."""

import gc
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from enum import Enum
from functools import cache
from math import prod
from typing import get_type_hints

import pytest

from remediator.core.case_table import CASE_TABLE, CaseObservation, CaseStep, Tried, case_step
from remediator.core.health import Health
from remediator.core.operation_table import (
    OPERATION_TABLE,
    DrainState,
    Move,
    OperationObservation,
    OperationPodState,
    operation_move,
)
from remediator.core.proof import Proof


def asked(seen):
    """The names that rows may ask about."""
    return tuple(item.name for item in fields(seen))


def _values(seen: type) -> dict[str, tuple]:
    hints = get_type_hints(seen)
    return {name: (False, True) if hints[name] is bool else tuple(hints[name]) for name in asked(seen)}


def _everything(seen: type) -> Iterator:
    return (seen(*combination) for combination in itertools.product(*_values(seen).values()))


@cache
def cases() -> list[tuple[CaseObservation, CaseStep]]:
    """Everything that can be observed of a case, with the answer of the table: 737,280 observations."""
    return [(seen, case_step(seen)) for seen in _everything(CaseObservation)]


@cache
def operations() -> list[tuple[OperationObservation, Move]]:
    """The same of operations: 150,528 observations."""
    return [(seen, operation_move(seen)) for seen in _everything(OperationObservation)]


@pytest.fixture(scope="module", autouse=True)
def once() -> Iterator[None]:
    """All that can be observed is made once, is no garbage, and goes when the file is over."""
    gc.disable()
    yield
    gc.enable()
    cases.cache_clear()
    operations.cache_clear()


TABLES = [
    pytest.param(cases, CASE_TABLE.rows, CaseStep, CaseObservation, 2**13 * 3 * 6 * 5, id="cases"),
    pytest.param(operations, OPERATION_TABLE.rows, Move, OperationObservation, 2**10 * 3 * 7 * 7, id="operations"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("everything", "rows", "answers", "seen", "size"), TABLES)
def test_the_table_answers_everything_that_can_be_observed(everything, rows, answers, seen, size):
    assert len(everything()) == size
    assert all(isinstance(answer, answers) for _, answer in everything())


@pytest.mark.slow
@pytest.mark.parametrize(("everything", "rows", "answers", "seen", "size"), TABLES)
def test_every_answer_is_given_and_every_row_is_the_first_that_fits_somewhere(everything, rows, answers, seen, size):
    first = Counter(
        next(number for number, row in enumerate(rows) if row.fits(observation)) for observation, _ in everything()
    )
    assert set(first) == set(range(len(rows))), "a row that never comes first is dead"
    reached = {answer for _, answer in everything()}
    assert {answer.name for answer in answers} - {answer.name for answer in reached} == set()


@pytest.mark.parametrize(("everything", "rows", "answers", "seen", "size"), TABLES)
def test_rows_ask_only_about_what_is_observed_in_its_own_words(everything, rows, answers, seen, size):
    hints = get_type_hints(seen)
    for row in rows:
        for name, value in row.asks.items():
            assert name in {field.name for field in fields(seen)}
            assert isinstance(value, hints[name])


@pytest.mark.parametrize(("everything", "rows", "answers", "seen", "size"), TABLES)
def test_every_row_says_in_a_sentence_of_its_own_why_it_stands_at_its_place(everything, rows, answers, seen, size):
    whys = [row.why for row in rows]
    assert [why for why in whys if len(why) < 40 or not why.endswith(".")] == []
    assert len(set(whys)) == len(rows)


def _where(everything, *answers: Enum) -> list:
    seen = [one for one, answer in everything if answer in answers]
    assert seen
    return seen


# --- cases ---------------------------------------------------------------------------------------------------------


def test_nothing_disturbs_a_node_that_is_not_claimed():
    assert all(
        seen.claimed for seen in _where(cases(), CaseStep.DIAGNOSE, CaseStep.START, CaseStep.FOLLOW, CaseStep.WATCH)
    )


def test_an_ended_case_only_clears_up():
    assert {step for seen, step in cases() if seen.ended} == {CaseStep.DELETE_PODS, CaseStep.RELEASE, CaseStep.NOTHING}
    assert all(seen.ended for seen in _where(cases(), CaseStep.DELETE_PODS, CaseStep.RELEASE))


def test_marks_go_after_pods_and_only_then_it_rests():
    for seen, step in cases():
        if seen.ended:
            expected = CaseStep.DELETE_PODS if seen.pods else CaseStep.RELEASE if seen.marks else CaseStep.NOTHING
            assert step is expected


def test_an_operation_is_started_only_on_clear_evidence_with_something_left_and_nothing_running():
    """Nothing disruptive starts on Unknown, stale or absent evidence."""
    for seen in _where(cases(), CaseStep.START):
        refuted = seen.health is Health.HEALTHY and seen.proof is Proof.REFUTED
        assert seen.health is Health.UNHEALTHY or refuted, "a probe that has failed is evidence, too"
        assert (seen.rungs, seen.diagnosed, seen.leave, seen.escalated) == (True, True, False, False)
        assert seen.tried in (Tried.NONE, Tried.SUCCEEDED, Tried.FAILED)


def test_nothing_is_started_where_earlier_cases_say_that_a_person_must_look_and_evidence_comes_first():
    assert not any(seen.known for seen in _where(cases(), CaseStep.START))
    for seen, step in cases():
        if seen.known and step is CaseStep.ESCALATE:
            assert seen.diagnosed, "the ticket has the serial numbers"


def test_what_follows_an_operation_up_comes_before_its_success_is_judged():
    """A GPU that was reset is of no use until the device plugin has seen it."""
    for seen in _where(cases(), CaseStep.FOLLOW):
        assert (seen.follow, seen.leave, seen.escalated, seen.diagnosed) == (True, False, False, True)
    assert not any(
        seen.follow and seen.claimed for seen in _where(cases(), CaseStep.RECOVER, CaseStep.VERIFY, CaseStep.START)
    )


@pytest.mark.slow
def test_a_case_that_must_leave_starts_nothing_and_waits_for_what_runs():
    for seen, step in cases():
        if seen.leave and not seen.ended:
            expected = {Tried.OPEN: CaseStep.STOP, Tried.REPORTED: CaseStep.RECORD}.get(seen.tried, CaseStep.END)
            assert step is expected


def test_no_end_while_an_operation_runs_or_its_outcome_is_not_recorded():
    for seen in _where(cases(), CaseStep.END, CaseStep.CLEAR, CaseStep.RECOVER, CaseStep.ESCALATE):
        assert seen.tried is not Tried.REPORTED
        assert seen.tried is not Tried.OPEN or not seen.claimed


def test_recovery_needs_proof():
    assert all(seen.proof is Proof.PASSED for seen in _where(cases(), CaseStep.RECOVER))
    assert all(seen.health is Health.HEALTHY and not seen.claimed for seen in _where(cases(), CaseStep.CLEAR))


def test_unclear_evidence_ends_nothing_that_was_not_claimed():
    unclear = {step for seen, step in cases() if seen.health is Health.UNKNOWN and not seen.claimed and not seen.ended}
    assert unclear <= {CaseStep.CLAIM, CaseStep.END, CaseStep.STOP, CaseStep.RECORD, CaseStep.OFFER}


def test_recovery_and_release_do_not_depend_on_anything_being_left_to_try():
    """Holds and ladders stop starts only."""
    ends = {CaseStep.RECOVER, CaseStep.CLEAR, CaseStep.END, CaseStep.RELEASE, CaseStep.DELETE_PODS}
    assert all(step is twin or not {step, twin} & ends for (_, step), (_, twin) in _with_and_without_rungs())


def _with_and_without_rungs() -> Iterator:
    """Pairs of observations, with their answers, that differ in `rungs` alone: they stand so far apart."""
    behind = list(_values(CaseObservation).values())[asked(CaseObservation).index("rungs") + 1 :]
    apart = prod(map(len, behind))
    return ((pair, cases()[number + apart]) for number, pair in enumerate(cases()) if not pair[0].rungs)


def test_each_observation_without_rungs_has_its_twin_with_them():
    pairs = list(_with_and_without_rungs())
    assert len(pairs) * 2 == len(cases())
    for (seen, _), (twin, _) in pairs[::1000]:
        assert replace(seen, rungs=True) == twin


def test_an_escalated_case_waits_for_a_person():
    calm = [
        step
        for seen, step in cases()
        if seen.escalated and not seen.ended and not seen.leave and seen.tried is not Tried.REPORTED
    ]
    assert set(calm) == {CaseStep.OFFER, CaseStep.DISOWN}, (
        "a cordon that a user has taken off is not called ours, either"
    )


def test_only_a_case_that_holds_its_node_and_that_no_user_has_gives_way():
    for seen in _where(cases(), CaseStep.GIVE_WAY):
        assert (seen.outranked, seen.claimed, seen.escalated, seen.leave, seen.ended) == (
            True,
            True,
            False,
            False,
            False,
        )


def test_when_time_is_up_a_claimed_case_ends_starts_or_calls_a_person():
    """No case may wait for ever."""
    for seen, step in cases():
        settled = seen.diagnosed and seen.tried in (Tried.NONE, Tried.SUCCEEDED, Tried.FAILED)
        if seen.claimed and settled and seen.proof is Proof.TIMED_OUT and not (seen.ended or seen.escalated):
            assert step in (
                CaseStep.START,
                CaseStep.FOLLOW,
                CaseStep.ESCALATE,
                CaseStep.END,
                *([CaseStep.HOLD] if seen.stopped else []),
                *([CaseStep.GIVE_WAY] if seen.outranked else []),
                *([CaseStep.DISOWN] if seen.uncordoned else []),
            )


# --- operations ----------------------------------------------------------------------------------------------------


def test_nothing_disturbs_a_node_without_our_claim_or_on_evidence_that_is_not_bad():
    for seen in _where(operations(), Move.DRAIN, Move.WRITE_INTENT):
        assert (seen.ours, seen.health, seen.intent, seen.ended, seen.overdue) == (
            True,
            Health.UNHEALTHY,
            False,
            False,
            False,
        )


def test_the_intent_is_written_only_when_the_drain_is_done():
    assert all(
        seen.drain in (DrainState.NOT_NEEDED, DrainState.RECORDED) for seen in _where(operations(), Move.WRITE_INTENT)
    )
    assert all(seen.drain is DrainState.ABSENT for seen in _where(operations(), Move.DRAIN))


def test_the_pod_is_made_only_after_the_intent_and_only_where_there_is_none():
    """A disruptive Pod runs at most once per attempt."""
    for seen in _where(operations(), Move.CREATE_POD):
        assert (seen.intent, seen.exit, seen.ended, seen.success, seen.overdue) == (
            True,
            OperationPodState.ABSENT,
            False,
            False,
            False,
        )


def test_an_operation_is_cancelled_before_the_intent_and_never_after():
    assert all(
        not seen.intent and (not seen.ours or seen.stopped or seen.rebooted or seen.health is Health.HEALTHY)
        for seen in _where(operations(), Move.CANCEL)
    )
    lost = {move for seen, move in operations() if not (seen.ours or seen.intent or seen.ended)}
    assert lost == {Move.CANCEL, Move.REJECT}


def test_after_the_intent_a_pod_is_only_made_for_a_fault_that_shows_on_a_node_that_is_still_ours():
    launches = _where(operations(), Move.CREATE_POD)
    assert launches
    assert all(seen.ours and seen.health is Health.UNHEALTHY for seen in launches)


@pytest.mark.slow
def test_a_pod_that_was_made_is_left_to_end_whatever_is_seen_meanwhile():
    for seen, move in operations():
        if seen.intent and not seen.ended and seen.exit is not OperationPodState.ABSENT:
            twin = {name: getattr(seen, name) for name in asked(OperationObservation)}
            assert (
                operation_move(OperationObservation(**twin | {"ours": not seen.ours, "health": Health.HEALTHY})) is move
            )


def test_success_outranks_the_exit_code_and_time():
    for seen, move in operations():
        if seen.intent and seen.success and not seen.ended:
            assert move is Move.SUCCEED


def test_a_clean_exit_alone_is_success_only_where_nothing_else_is_asked_for():
    for seen in _where(operations(), Move.SUCCEED):
        assert seen.success or (seen.exit is OperationPodState.SUCCEEDED and not seen.criteria)


def test_what_was_lost_may_still_succeed_until_time_is_up():
    waits = {
        move
        for seen, move in operations()
        if seen.intent and seen.exit is OperationPodState.LOST and seen.criteria and not seen.ended
    }
    assert waits == {Move.SUCCEED, Move.TIME_OUT, Move.WAIT}


def test_no_operation_goes_on_when_time_is_up():
    for seen, move in operations():
        if seen.overdue and not seen.ended:
            assert move not in (Move.WAIT, Move.DRAIN, Move.DRAIN_AGAIN, Move.WRITE_INTENT, Move.CREATE_POD)


def test_a_drain_that_has_worked_is_recorded_however_late_somebody_looks():
    for seen, move in operations():
        if seen.overdue and seen.drain is DrainState.SUCCEEDED and not (seen.ended or seen.intent):
            if not (seen.ours and seen.current) or seen.stopped:
                continue
            assert move is (Move.CANCEL if seen.rebooted or seen.health is Health.HEALTHY else Move.DRAINED)


def test_an_ended_operation_only_clears_up():
    assert {move for seen, move in operations() if seen.ended} == {Move.DELETE_PODS, Move.NOTHING}


def test_a_node_whose_user_keeps_it_is_given_back_by_nothing_but_an_end():
    steps = {step for seen, step in cases() if seen.tried is Tried.KEEPS_NODE and seen.claimed and not seen.ended}
    gives_back = {CaseStep.RECOVER, CaseStep.CLEAR, CaseStep.VERIFY, CaseStep.PROBE, CaseStep.START, CaseStep.ESCALATE}
    assert CaseStep.TAKE_OUT in steps
    assert not steps & gives_back
