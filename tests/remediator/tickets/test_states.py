"""The tables of states: total, without a dead row, and lawful over everything that can be observed."""

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import get_type_hints

import pytest

from remediator.tickets.reconcile.actions import ACTIONS
from remediator.tickets.reconcile.states import (
    TABLES,
    Action,
    IssueState,
    Need,
    TextState,
    TicketObservation,
    TicketState,
    action,
)

ASKED = tuple(field.name for field in fields(TicketObservation))
BY_USER = (TicketState.CLOSED_BY_USER, TicketState.DELETED)  # what a user ended
NOTHING_OPEN = (TicketState.NO_ISSUE, TicketState.DELETED)  # no issue that could be open
WRITES = {Action.EDIT, Action.LABEL, Action.COMMENT, Action.CLOSE, Action.REOPEN}


def _everything() -> Iterator[TicketObservation]:
    hints = get_type_hints(TicketObservation)
    values = [(False, True) if hints[name] is bool else tuple(hints[name]) for name in ASKED]
    return (TicketObservation(*combination) for combination in itertools.product(*values))


@cache
def _answered() -> list[tuple[TicketObservation, Action]]:
    return [(observation, action(observation)) for observation in _everything()]


@pytest.mark.slow
def test_the_tables_answer_everything_that_can_be_observed() -> None:
    assert len(_answered()) == 6 * 3 * 6 * 3 * 2**9
    assert {type(answer) for _, answer in _answered()} == {Action}
    assert set(TABLES) == set(TicketState)


@pytest.mark.parametrize("state", TicketState)
def test_every_row_is_the_first_that_fits_somewhere(state: TicketState) -> None:
    table = TABLES[state]
    first = Counter(
        table.rows.index(table.row(observation)) for observation, _ in _answered() if observation.ticket is state
    )
    assert set(first) == set(range(len(table.rows)))


@pytest.mark.parametrize("state", TicketState)
def test_every_row_says_in_a_sentence_of_its_own_why_it_stands_there(state: TicketState) -> None:
    reasons = [row.why for row in TABLES[state].rows]
    assert all(len(why.split()) >= 4 and why[0].isupper() and why.endswith(".") for why in reasons)
    assert len(set(reasons)) == len(reasons)


def test_every_action_is_reached_and_has_its_handler() -> None:
    assert {answer for _, answer in _answered()} == set(Action)
    assert set(ACTIONS) == set(Action)
    assert len(set(ACTIONS.values())) == len(Action)


def test_rows_ask_only_about_what_is_observed_in_its_own_words() -> None:
    hints = get_type_hints(TicketObservation)
    for row in itertools.chain.from_iterable(table.rows for table in TABLES.values()):
        for name, value in row.asks.items():
            assert isinstance(value, hints[name])


def _where(*answers: Action) -> list[TicketObservation]:
    found = [observation for observation, answer in _answered() if answer in answers]
    assert found
    return found


def test_nothing_is_created_without_a_cause() -> None:
    created = _where(Action.CREATE)
    assert all(seen.need is Need.NEEDED for seen in created if seen.ticket not in BY_USER)
    assert all(seen.new_cause for seen in created if seen.ticket in BY_USER)  # only active causes are new


def test_what_was_begun_is_not_begun_again_unless_it_was_searched_for_long_enough() -> None:
    begun = [seen for seen in _where(Action.CREATE) if seen.ticket is TicketState.CREATING]
    assert begun
    assert all(seen.create_again and seen.issue in (IssueState.NOT_FOUND, IssueState.DELETED) for seen in begun)


def test_what_is_open_is_never_created_beside() -> None:
    created = _where(Action.CREATE)
    assert all(seen.ticket is not TicketState.OPEN for seen in created)
    assert all(seen.issue is not IssueState.OPEN for seen in created if seen.ticket not in NOTHING_OPEN)


def test_nothing_is_written_to_an_issue_that_was_not_read_in_the_same_pass() -> None:
    assert all(seen.issue in (IssueState.OPEN, IssueState.CLOSED_BY_US) for seen in _where(*WRITES))
    assert all(seen.issue is IssueState.OPEN for seen in _where(*(WRITES - {Action.REOPEN})))


def test_what_a_user_deleted_is_recorded_at_once_and_never_read_again() -> None:
    states = (TicketState.OPEN, TicketState.CLOSED_BY_USER)
    gone = {answer for seen, answer in _answered() if seen.issue is IssueState.DELETED and seen.ticket in states}
    assert gone == {Action.RECORD_DELETED, Action.MERGE_DUPLICATES}
    after = {answer for seen, answer in _answered() if seen.ticket is TicketState.DELETED}
    assert after == {Action.CREATE, Action.DROP_OVER_CAUSES, Action.NOTHING}


def test_what_a_user_closed_is_never_reopened() -> None:
    reopened = _where(Action.REOPEN)
    assert all(seen.ticket is TicketState.CLOSED_BY_US for seen in reopened)
    assert all(seen.issue is IssueState.CLOSED_BY_US for seen in reopened)
    assert all(seen.closed_recently and seen.need is Need.NEEDED for seen in reopened)


def test_only_an_issue_without_cause_is_closed_and_only_after_a_comment() -> None:
    assert all(seen.need is Need.NOT_NEEDED and seen.closing_commented for seen in _where(Action.CLOSE))


def test_an_issue_that_says_what_is_so_is_left_alone() -> None:
    quiet = [
        answer
        for seen, answer in _answered()
        if seen.ticket is TicketState.OPEN
        and seen.need is not Need.NOT_NEEDED
        and seen.text is TextState.SAME
        and seen.issue in (IssueState.UNREAD, IssueState.OPEN)
        and not (seen.unreported or seen.parts_due or seen.read_due or seen.maybe_twice)
    ]
    assert set(quiet) == {Action.NOTHING}
