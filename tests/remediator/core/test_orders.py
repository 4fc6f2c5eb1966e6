"""What a user orders about a case on the command line: it does something, or says why it would do nothing."""

import pytest

from remediator.core.case import Attempt, Block, HoldTerms, Phase, SetBy
from remediator.core.orders import ANSWERS, Command, Order, choose
from remediator.core.reasons import Reason
from tests.builders import a_case, at

WAITS = {"phase": Phase.HELD, "blocks": (Block(Reason.APPROVAL_NEEDED, ""),)}
ESCALATED = {"phase": Phase.ESCALATED, "reason": Reason.LADDER_EXHAUSTED}
OPERATING = {"phase": Phase.OPERATING, "attempts": (Attempt("gpu-1-reboot-1", "reboot", 0, at(1)),)}
HELD = {"hold": True, "set_by": SetBy(hold="bob")}


@pytest.mark.parametrize(
    ("command", "case", "text"),
    [
        (Command.HOLD, {}, "starts nothing new until `remediator hold gpu-1 --off`"),
        (Command.HOLD, OPERATING, "the operation that runs goes on to its end"),
        (Command.UNHOLD, HELD, "goes on"),
        (Command.APPROVE, WAITS, "may start"),
        (Command.RELEASE, ESCALATED, "is released: its node takes work again"),
        (Command.RETRY, ESCALATED, "tries again from the rung that it came to last"),
        (Command.CANCEL, OPERATING, "it ends once its operation has ended"),
        (Command.CANCEL, WAITS, "it ends at once"),
    ],
)
def test_an_order_that_does_something_says_what(command, case, text):
    choice = choose([a_case(**case)], Order(command, "ann"), "gpu-1")
    (answer,) = choice.answers
    assert (answer.acts, text in answer.text, choice.nothing) == (True, True, "")


@pytest.mark.parametrize(
    ("command", "case", "why"),
    [
        (Command.HOLD, HELD, "is held already, set by bob"),
        (Command.UNHOLD, {}, "is not held"),
        (Command.APPROVE, WAITS | {"approved": True, "set_by": SetBy(approved="bob")}, "is approved already, by bob"),
        (Command.APPROVE, OPERATING, "waits for no approval (Operating reboot)"),
        (Command.RELEASE, OPERATING, "is Operating, and only an Escalated case waits for this"),
        (Command.RELEASE, ESCALATED | {"release": True}, "is released already"),
        (Command.RETRY, WAITS, "is Held, and only an Escalated case waits for this"),
        (Command.RETRY, ESCALATED | {"retry": 1}, "is about to try again already"),
        (Command.RETRY, ESCALATED | {"retry": 1000, "retries": 1000}, "which is the most"),
        (Command.CANCEL, {"deleting": True}, "is being cancelled already"),
    ],
)
def test_an_order_that_would_do_nothing_says_why(command, case, why):
    choice = choose([a_case(**case)], Order(command, "ann"), "gpu-1")
    assert choice.answers == ()
    assert choice.nothing.startswith("case case-1 on gpu-1 is " if why.startswith("is ") else "case case-1 on gpu-1 ")
    assert why in choice.nothing


def test_every_command_has_its_row():
    assert set(ANSWERS) == set(Command)


def test_who_holds_a_case_may_give_the_hold_another_end_and_nobody_else():
    held = a_case(hold=True, set_by=SetBy(hold="ann"), hold_terms=HoldTerms(at(60), "the PSU is changed"))
    longer = choose([held], Order(Command.HOLD, "ann", at(120), "the PSU is changed"), "gpu-1").answers[0].change
    assert (longer.hold, longer.until, longer.because) == (True, at(120), "the PSU is changed")
    assert "is held already, set by ann until" in choose([held], Order(Command.HOLD, "bob", at(120)), "gpu-1").nothing


def test_of_several_cases_that_can_be_meant_none_obeys_until_one_is_named():
    cases = [a_case("case-1"), a_case("case-2", node="gpu-2"), a_case("case-0", ended=at(9))]
    choice = choose(cases, Order(Command.HOLD, "ann"), "gpu-1, gpu-2")
    assert choice.answers == ()
    assert choice.unclear == (
        "2 cases can be meant: case case-1 on gpu-1 (Waits), case case-2 on gpu-2 (Waits); say which with --case NAME"
    )
    named = choose(cases, Order(Command.HOLD, "ann"), "gpu-1, gpu-2", ["case-2"])
    assert [answer.case.name for answer in named.answers] == ["case-2"]
    one_fits = choose([*cases, a_case("case-3", **ESCALATED)], Order(Command.RELEASE, "ann"), "gpu-1, gpu-2")
    assert [answer.case.name for answer in one_fits.answers] == ["case-3"]


def test_a_node_without_an_open_case_can_be_kept_out_by_its_label():
    choice = choose([a_case(ended=at(9))], Order(Command.HOLD, "ann"), "gpu-1")
    assert choice.nothing == (
        "no case of gpu-1 is open, so there is nothing to do; "
        "to keep Remediator off a node: kubectl label node NODE remediator.dev/exclude=true"
    )
