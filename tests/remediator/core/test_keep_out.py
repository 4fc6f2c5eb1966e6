"""Nodes that users take out: until when is told, that it is over is told, and nothing gives them back but a user."""

from datetime import timedelta

import pytest

from remediator.core import failures, keep_out
from remediator.core.actors import ACTORS, Actor
from remediator.core.asked import Asked, before, nothing_to_do
from remediator.core.case import Attempt, AttemptOutcome, Case, CaseEvent, KeepOut, Manual, Phase
from remediator.core.jobs_at_stake import BlastRadius
from remediator.core.open_cases import wait_of
from remediator.core.operation import Operation
from remediator.core.orders import ANSWERS, Command, Order, choose
from remediator.core.past_cases import why_opened
from remediator.core.reasons import Reason
from remediator.core.remedy import command
from tests.builders import a_case, a_node, a_template, at

UNTIL = at(60)
ASKED = Manual("take-out-1", "u", "drain", {}, "olga")
TERMS = KeepOut(UNTIL, "OPS-17")


def a_take_out(phase: Phase = Phase.ESCALATED, **more) -> Case:
    facts = {"policy": "", "trigger": None, "manual": ASKED, "keep_out": TERMS, "phase": phase}
    out = {"reason": Reason.TAKEN_OUT, "timeline": (CaseEvent(at(2), Reason.TAKEN_OUT, ""),)}
    return a_case(**(facts | (out if phase is Phase.ESCALATED else {}) | more))


@pytest.mark.parametrize(
    ("now", "reason", "end"),
    [
        (at(59), Reason.TAKEN_OUT, "give it back with: remediator put-back gpu-1"),
        (at(60), Reason.TAKE_OUT_OVERDUE, "or more time (remediator take-out gpu-1 --for LENGTH)"),
        (at(600), Reason.TAKE_OUT_OVERDUE, "or more time (remediator take-out gpu-1 --for LENGTH)"),
    ],
)
def test_its_case_says_who_has_the_node_until_when_and_changes_its_words_only_when_that_is_over(now, reason, end):
    told, message = keep_out.standing(a_take_out(), now)
    assert told is reason
    assert message.startswith("gpu-1 is taken out by olga until 2026-01-01 13:00:00 UTC: OPS-17; ")
    assert message.endswith(end)


def test_a_person_reads_for_how_long_it_is_overdue_and_nothing_where_nobody_has_the_node():
    assert keep_out.described(a_take_out(), at(59)) == "by olga until 2026-01-01 13:00:00 UTC: OPS-17"
    late = "by olga until 2026-01-01 13:00:00 UTC (overdue by 2 h): OPS-17"
    assert keep_out.described(a_take_out(), at(180)) == late
    bare = a_take_out(manual=Manual("x", "u", "drain", {}), keep_out=KeepOut(UNTIL))
    assert keep_out.described(bare, at(0)) == "by a user until 2026-01-01 13:00:00 UTC"
    assert keep_out.described(a_case(), at(0)) == keep_out.terms(a_case()) == ""
    with pytest.raises(ValueError, match="nobody keeps"):
        keep_out.standing(a_case(), at(0))


@pytest.mark.parametrize(
    ("case", "late"),
    [
        (a_take_out(Phase.HELD), Reason.TAKE_OUT_OVERDUE),
        (a_take_out(Phase.HELD, keep_out=KeepOut(at(61))), None),
        (a_take_out(Phase.DRAINING), None),
        (a_take_out(), None),
        (a_case(), None),
    ],
)
def test_one_that_holds_no_node_when_its_time_is_over_ends_and_one_that_does_goes_on(case, late):
    assert keep_out.too_late(case, at(60)) is late


def test_a_node_is_out_from_the_end_of_its_operation_to_the_end_of_its_case():
    assert keep_out.is_out(a_take_out())
    assert keep_out.is_out(a_take_out(reason=Reason.TAKE_OUT_OVERDUE))
    others = [a_take_out(Phase.DRAINING), a_take_out(ended=at(3)), a_take_out(reason=Reason.VERIFY_TIMEOUT), a_case()]
    assert not any(map(keep_out.is_out, others))
    assert keep_out.was_out(a_take_out(ended=at(3), reason=Reason.RELEASED_BY_USER))
    assert not keep_out.was_out(a_take_out(Phase.DRAINING))


def test_nobody_must_act_until_it_is_overdue_then_an_operator_must():
    assert wait_of(a_take_out())[0].actor is ACTORS[Reason.TAKEN_OUT] is Actor.NOBODY
    assert wait_of(a_take_out(reason=Reason.TAKE_OUT_OVERDUE))[0].actor is Actor.OPERATOR
    assert wait_of(a_take_out())[1] == at(2)
    assert command(a_take_out(), "remediator-system") == "remediator put-back gpu-1"


def test_a_drain_after_which_a_user_keeps_the_node_was_not_in_vain_and_opens_no_breaker():
    drained = Attempt("op", "drain", 0, at(1), at(2), AttemptOutcome.SUCCEEDED)
    ended = {"ended": at(5), "reason": Reason.RELEASED_BY_USER, "attempts": (drained,)}
    assert list(failures.records([a_take_out(attempts=(drained,)), a_take_out(**ended)])) == []
    (record,) = failures.records([a_take_out(keep_out=None, **ended)])
    assert record.in_vain


def test_its_history_says_who_kept_the_node_until_when_and_why():
    until = "to keep the node out by olga until 2026-01-01 13:00:00 UTC: OPS-17"
    assert why_opened(a_take_out()) == f"olga asked for drain, {until}"


LATER = Order(Command.TAKE_OUT, "olga", at(120), "")


@pytest.mark.parametrize(
    ("case", "order", "text", "terms"),
    [
        (
            a_take_out(),
            LATER,
            "keeps the node out until 2026-01-01 14:00:00 UTC; before: until",
            KeepOut(at(120), "OPS-17"),
        ),
        (a_take_out(Phase.HELD), LATER, "keeps the node out until 2026-01-01 14:00:00 UTC", KeepOut(at(120), "OPS-17")),
        (
            a_take_out(),
            Order(Command.TAKE_OUT, "olga", UNTIL, "RMA"),
            "keeps the node out until",
            KeepOut(UNTIL, "RMA"),
        ),
        (a_take_out(), Order(Command.TAKE_OUT, "olga", UNTIL, ""), "keeps the node out already, by olga until", None),
        (a_take_out(), Order(Command.TAKE_OUT, "bob", at(120), ""), "keeps the node out already, by olga until", None),
        (a_take_out(release=True), LATER, "is about to give the node back; ask again once it is over", None),
        (a_take_out(deleting=True), LATER, "is about to give the node back; ask again once it is over", None),
        (a_case(), LATER, "keeps no node out for a user", None),
    ],
)
def test_who_asks_again_has_it_for_another_time_and_nobody_else_has(case, order, text, terms):
    answer = ANSWERS[Command.TAKE_OUT](case, order)
    assert answer.text.startswith(text)
    assert (answer.change.keep_out if answer.change else None) == terms


@pytest.mark.parametrize(
    ("case", "text", "deletes"),
    [
        (a_take_out(), "is over: its node takes work again", False),
        (a_take_out(reason=Reason.VERIFY_TIMEOUT), "is over: its node takes work again", False),
        (a_take_out(Phase.HELD), "is cancelled before its node was out: it ends at once", True),
        (
            a_take_out(Phase.OPERATING),
            "is cancelled before its node was out: it ends once its operation has ended",
            True,
        ),
    ],
)
def test_what_is_put_back_is_given_back_or_not_taken_at_all(case, text, deletes):
    (answer,) = choose([case], Order(Command.PUT_BACK, "olga"), "gpu-1").answers
    assert (answer.text, answer.delete, bool(answer.change and answer.change.release)) == (text, deletes, not deletes)


@pytest.mark.parametrize(
    ("cases", "why"),
    [
        (
            [],
            "no case of gpu-1 is open, so there is nothing to do; what is asked for and has no case yet is taken back",
        ),
        ([a_case()], "case case-1 on gpu-1 is no take-out of a user"),
        ([a_take_out(release=True)], "is about to give the node back already"),
        ([a_take_out(Phase.HELD, deleting=True)], "is about to give the node back already"),
    ],
)
def test_a_put_back_that_would_do_nothing_says_why(cases, why):
    assert why in choose(cases, Order(Command.PUT_BACK, "olga"), "gpu-1").nothing


def test_all_nodes_that_are_named_are_put_back():
    cases = [a_take_out(), a_case("case-2", node="gpu-2", manual=ASKED, keep_out=TERMS, phase=Phase.ESCALATED)]
    choice = choose(cases, Order(Command.PUT_BACK, "olga"), "gpu-1, gpu-2")
    assert [answer.case.node for answer in choice.answers] == ["gpu-1", "gpu-2"]


def test_a_node_that_is_out_is_not_drained_again_by_retry():
    assert "is out for a user" in choose([a_take_out()], Order(Command.RETRY, "olga"), "gpu-1").nothing


def test_what_will_happen_says_until_when_and_that_budgets_count_it():
    wanted = Asked(a_template("drain"), a_node("gpu-1"), (), (), keep_out=TERMS)
    lines = list(before(wanted, BlastRadius(at(2))))
    assert lines[0] == "take-out of gpu-1:"
    assert lines[-1] == (
        "  afterwards: gpu-1 stays out, counted by its budgets, until `remediator put-back gpu-1`; after "
        "2026-01-01 13:00:00 UTC it is overdue, and everybody is told"
    )


@pytest.mark.parametrize(
    ("terms", "why"), [(TERMS, "take-out of gpu-1 is asked for already by bob: NodeOperation x"), (None, "")]
)
def test_a_take_out_that_waits_is_not_asked_for_again_and_a_drain_that_waits_is_none(terms, why):
    waiting = Operation("x", "u", "gpu-1", "n", "", "drain", at(0), requested_by="bob", keep_out=terms)
    wanted = Asked(a_template("drain"), a_node("gpu-1"), (), (waiting,), keep_out=KeepOut(at(90) + timedelta(hours=1)))
    assert nothing_to_do(wanted, "olga", at(1)) == why
