"""The table of lives: total, without a dead row, and lawful over everything that can be observed."""

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from typing import get_type_hints

import pytest

from remediator.tickets.reconcile.actions import ACTIONS
from remediator.tickets.reconcile.states import ROWS, Action, Cause, Seen, Sight, State, Text, action

ASKED = tuple(field.name for field in fields(Seen))
PEOPLES = (State.LEFT, State.LOST)  # what a person ended
NOTHING = (State.ABSENT, State.LOST)  # no issue that could be open
WRITES = {Action.EDIT, Action.LABEL, Action.TELL, Action.CLOSE, Action.REOPEN}


def _everything() -> Iterator[Seen]:
    hints = get_type_hints(Seen)
    values = [(False, True) if hints[name] is bool else tuple(hints[name]) for name in ASKED]
    return (Seen(*combination) for combination in itertools.product(*values))


ALL = [(seen, action(seen)) for seen in _everything()]


def test_the_table_answers_everything_that_can_be_observed() -> None:
    assert len(ALL) == 6 * 3 * 6 * 3 * 2**9
    assert {type(answer) for _, answer in ALL} == {Action}


@pytest.mark.parametrize("state", State)
def test_every_row_is_the_first_that_fits_somewhere(state: State) -> None:
    rows = ROWS[state]
    first = Counter(
        next(
            number
            for number, (asks, _) in enumerate(rows)
            if all(getattr(seen, name) == value for name, value in asks.items())
        )
        for seen, _ in ALL
        if seen.state is state
    )
    assert set(first) == set(range(len(rows)))


def test_every_action_is_reached_and_has_its_deed() -> None:
    assert {answer for _, answer in ALL} == set(Action)
    assert set(ACTIONS) == set(Action) - {Action.REST, Action.WAIT}


def test_rows_ask_only_about_what_is_observed_in_its_own_words() -> None:
    hints = get_type_hints(Seen)
    for asks, _ in itertools.chain.from_iterable(ROWS.values()):
        for name, value in asks.items():
            assert isinstance(value, hints[name])


def _where(*answers: Action) -> list[Seen]:
    found = [seen for seen, answer in ALL if answer in answers]
    assert found
    return found


def test_nothing_is_created_without_a_cause() -> None:
    assert all(seen.cause is Cause.STANDS for seen in _where(Action.CREATE) if seen.state not in PEOPLES)
    assert all(seen.fresh for seen in _where(Action.CREATE) if seen.state in PEOPLES)  # only causes are fresh


def test_what_was_begun_is_not_begun_again_unless_it_was_looked_for_long_enough() -> None:
    begun = [seen for seen in _where(Action.CREATE) if seen.state is State.CREATING]
    assert begun
    assert all(seen.waited and seen.sight in (Sight.NONE, Sight.GONE) for seen in begun)


def test_what_is_open_is_never_created_beside() -> None:
    assert all(seen.state is not State.OPEN for seen in _where(Action.CREATE))
    assert all(seen.sight is not Sight.OPEN for seen in _where(Action.CREATE) if seen.state not in NOTHING)


def test_nothing_is_written_to_an_issue_that_was_not_read_in_the_same_pass() -> None:
    assert all(seen.sight in (Sight.OPEN, Sight.CLOSED) for seen in _where(*WRITES))
    assert all(seen.sight is Sight.OPEN for seen in _where(*(WRITES - {Action.REOPEN})))


def test_what_a_person_deleted_is_recorded_at_once_and_never_looked_at_again() -> None:
    gone = {answer for seen, answer in ALL if seen.sight is Sight.GONE and seen.state in (State.OPEN, State.LEFT)}
    assert gone == {Action.LOSE, Action.SETTLE}
    after = {answer for seen, answer in ALL if seen.state is State.LOST}
    assert after == {Action.CREATE, Action.REMEMBER, Action.REST}


def test_what_a_person_closed_is_never_reopened() -> None:
    assert all(seen.state is State.CLOSED and seen.sight is Sight.CLOSED for seen in _where(Action.REOPEN))
    assert all(seen.recent and seen.cause is Cause.STANDS for seen in _where(Action.REOPEN))


def test_only_what_nothing_stands_behind_is_closed_and_only_after_a_word() -> None:
    assert all(seen.cause is Cause.NONE and seen.closing_commented for seen in _where(Action.CLOSE))


def test_an_issue_that_says_what_is_so_is_left_alone() -> None:
    quiet = [
        answer
        for seen, answer in ALL
        if seen.state is State.OPEN
        and seen.cause is not Cause.NONE
        and seen.text is Text.SAME
        and seen.sight in (Sight.UNREAD, Sight.OPEN)
        and not (seen.untold or seen.relabel or seen.look or seen.doubt)
    ]
    assert set(quiet) == {Action.REST}
