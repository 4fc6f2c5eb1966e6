"""Open cases in groups: every reason that holds a case says who must act, and a person is told before what waits."""

from dataclasses import replace

import pytest

from remediator.core.actors import ACTORS, Actor
from remediator.core.case import Block, Phase
from remediator.core.open_cases import groups, wait_of
from remediator.core.reasons import PASSING, REMEDY, Reason
from tests.builders import a_case, at


def test_who_must_act_is_told_of_every_reason_that_has_a_remedy():
    assert set(ACTORS) == set(REMEDY)


def test_what_ends_by_itself_at_its_time_asks_for_nobody():
    assert {ACTORS[reason] for reason in PASSING} == {Actor.NOBODY}


@pytest.mark.parametrize(
    ("blocks", "actor", "word"),
    [
        ((), Actor.NOBODY, "Waits"),
        ((Reason.BUDGET_SPENT,), Actor.NOBODY, "BudgetSpent"),
        ((Reason.BUDGET_SPENT, Reason.DRY_RUN), Actor.ADMINISTRATOR, "DryRun"),
        ((Reason.DRY_RUN, Reason.BUDGET_SPENT, Reason.APPROVAL_NEEDED), Actor.OPERATOR, "ApprovalNeeded"),
    ],
)
def test_of_several_reasons_the_one_counts_for_which_a_person_is_needed(blocks, actor, word):
    case = replace(a_case(), phase=Phase.HELD, blocks=tuple(Block(each, "", since=at(1)) for each in blocks))
    assert wait_of(case)[0][:2] == (actor, word)


def test_a_case_that_a_person_has_is_told_by_why_and_once_its_node_looks_healthy_by_that():
    spent = replace(a_case(), phase=Phase.ESCALATED, reason=Reason.ATTEMPTS_SPENT)
    assert wait_of(spent)[0][:2] == (Actor.OPERATOR, "AttemptsSpent")
    healthy = replace(spent, healthy_since=at(5))
    assert (wait_of(healthy)[0].word, wait_of(healthy)[1]) == ("HealthyAgain", at(5))


def test_a_case_that_cannot_be_read_is_told_and_one_that_is_over_is_not():
    shown = groups([replace(a_case(), unreadable=True), replace(a_case(), ended=at(1))])
    assert [(group.wait.word, len(group.cases)) for group in shown] == [("Unreadable", 1)]


def test_who_must_act_first_stands_first_then_the_largest_group_and_in_it_who_has_waited_longest():
    def held(name: str, reason: Reason, minute: int):
        return replace(a_case(), name=name, phase=Phase.HELD, blocks=(Block(reason, "", since=at(minute)),))

    shown = groups(
        [
            held("a", Reason.BUDGET_SPENT, 5),
            held("b", Reason.BUDGET_SPENT, 3),
            held("c", Reason.COOLDOWN, 1),
            held("d", Reason.DRY_RUN, 9),
            held("e", Reason.HELD_BY_USER, 9),
        ]
    )
    assert [(group.wait.word, [case.name for case in group.cases]) for group in shown] == [
        ("HeldByUser", ["e"]),
        ("DryRun", ["d"]),
        ("BudgetSpent", ["b", "a"]),
        ("Cooldown", ["c"]),
    ]
    assert shown[2].since == at(3)
