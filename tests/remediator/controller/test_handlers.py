"""Each step of a table has one handler: whoever asks what a step does finds it in one look-up."""

import ast
import inspect

import pytest

from remediator.controller import outside_requests
from remediator.controller.handlers import case, operation, request
from remediator.core.case_table import CaseStep
from remediator.core.operation_table import Move
from remediator.core.outside_request import OutsideStep
from remediator.core.request_table import RequestStep
from remediator.tickets.chat import run as chat
from remediator.tickets.chat.decide import Act


@pytest.mark.parametrize(
    ("handlers", "steps"), [(case.HANDLERS, CaseStep), (operation.HANDLERS, Move), (request.HANDLERS, RequestStep)]
)
def test_every_step_has_a_handler_and_no_handler_is_left_over(handlers, steps):
    assert set(handlers) == set(steps)


def test_only_claims_and_starts_need_admission():
    assert {step for step, handler in case.HANDLERS.items() if handler.by_admission} == {CaseStep.CLAIM, CaseStep.START}
    assert not any(handler.by_admission for handler in operation.HANDLERS.values())


def test_only_drains_are_checked_one_at_a_time_so_that_each_counts_the_ones_before_it():
    assert {move for move, handler in operation.HANDLERS.items() if handler.one_at_a_time} == {Move.DRAIN}


@pytest.mark.parametrize(
    ("handlers", "checked"),
    [
        (
            case.HANDLERS,
            {
                CaseStep.RELEASE,
                CaseStep.END,
                CaseStep.RECORD,
                CaseStep.DIAGNOSE,
                CaseStep.ESCALATE,
                CaseStep.OFFER,
                CaseStep.GIVE_WAY,
            },
        ),
        (
            operation.HANDLERS,
            {Move.REJECT, Move.CANCEL, Move.DRAIN, Move.DRAIN_FAILED}
            | {Move.WRITE_INTENT, Move.CREATE_POD, Move.WAIT, Move.TIME_OUT},
        ),
        (request.HANDLERS, {RequestStep.GIVE_UP, RequestStep.REFUSE, RequestStep.OPEN}),
    ],
)
def test_what_the_cache_alone_must_not_decide_is_read_live_first(handlers, checked):
    assert {step for step, handler in handlers.items() if handler.check} == checked


@pytest.mark.parametrize(("module", "steps"), [(outside_requests, OutsideStep), (chat, Act)])
def test_every_step_but_nothing_has_a_case_in_the_one_match_of_its_table(module, steps):
    nodes = list(ast.walk(ast.parse(inspect.getsource(module))))
    (match,) = [node for node in nodes if isinstance(node, ast.Match)]
    patterns = [node for case in match.cases for node in ast.walk(case.pattern) if isinstance(node, ast.Attribute)]
    named = [pattern.attr for pattern in patterns if ast.unparse(pattern).startswith(f"{steps.__name__}.")]
    assert {*named, "NOTHING"} == set(steps.__members__)
