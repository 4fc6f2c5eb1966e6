"""What becomes of a case whose policy is edited or deleted in its middle: the rows of the table in docs/cases.md."""

from dataclasses import replace

import pytest

from remediator.controller import case_plan
from remediator.controller.case_proof import WITHOUT_POLICY
from remediator.controller.case_view import case_view
from remediator.controller.handlers.case import HANDLERS
from remediator.core.case import AttemptOutcome, Block, CaseEvent, Diagnosis, Phase
from remediator.core.case_table import CaseStep, case_step
from remediator.core.guard import FleetContext, preconditions
from remediator.core.operation import OperationPhase
from remediator.core.policy import Clause, Mode
from remediator.core.reasons import Reason
from tests.builders import (
    a_case,
    a_node,
    a_policy,
    a_sick_node,
    a_template,
    an_attempt,
    an_operation,
    at,
    condition,
    held_by,
    pool,
    when,
)
from tests.harness.replica import empty_cache

NOW = at(10)
TEMPLATES = ("reset-gpu", "reboot", "power-cycle", "drain", "collect-diagnostics")
POLICY = a_policy(ladder=(("reset-gpu", 1), ("reboot", 1), ("power-cycle", 1)))
HELD = a_case()
TAKEN = a_case(phase=Phase.DRAINING, started=at(1), diagnosis=Diagnosis.SUCCEEDED)
FAILED = replace(TAKEN, phase=Phase.VERIFYING, rung=1, attempts=(an_attempt(1, template="reboot", started=5),))
RUNS = replace(TAKEN, attempts=(an_attempt(0, AttemptOutcome.OPEN, operation="op-1", template="reset-gpu"),))
OURS = {"taints": [held_by(TAKEN)], "unschedulable": True, "cordoned_by": TAKEN.uid, "minute": 10}
DISK = "DiskFault"


def looked_at(case, policy, node=None, operation=None, now=NOW):
    """The view of a case under a policy that says this now."""
    cache = empty_cache()
    found = node or a_sick_node(**(OURS if case.claimed else {"minute": 10}))
    cache.nodes.note(found.name, found)
    cache.cases.note(case.name, case)
    for name in TEMPLATES:
        cache.templates.note(name, a_template(name))
    if policy is not None:
        cache.policies.note(policy.name, policy)
    if operation is not None:
        cache.operations.note(operation.name, operation)
    return case_view(cache, case, now)


def held_with(case, policy, node=None):
    """What holds it when it asks for admission."""
    found = node or a_sick_node(**(OURS if case.claimed else {"minute": 10}))
    blocks = preconditions(case, found, policy, [], FleetContext(frozenset(TEMPLATES), False, frozenset()), NOW)
    return [block.reason for block in blocks]


def ends_with(view, now=NOW):
    """The phase and the reason that its step writes."""
    (save,) = HANDLERS[case_step(view.observation)].plan(view, now)
    return case_step(view.observation), save.after.phase, save.after.reason


def test_a_ladder_that_is_shorter_than_the_rung_calls_a_person_once_what_runs_has_ended():
    shorter = a_policy(ladder=(("reset-gpu", 1),))
    running = replace(RUNS, rung=1, attempts=(an_attempt(1, AttemptOutcome.OPEN, operation="op-1"),))
    assert case_step(looked_at(running, shorter, operation=an_operation()).observation) is CaseStep.WATCH
    assert ends_with(looked_at(FAILED, shorter)) == (CaseStep.ESCALATE, Phase.ESCALATED, Reason.LADDER_EXHAUSTED)


def test_a_rung_is_its_place_a_renamed_one_counts_as_tried_and_what_runs_goes_on():
    renamed = a_policy(ladder=(("reset-gpu", 1), ("power-cycle", 1), ("reboot", 1)))
    assert (
        case_step(looked_at(RUNS, renamed, operation=an_operation(template="reset-gpu")).observation) is CaseStep.WATCH
    )
    view = looked_at(FAILED, renamed)
    assert (case_step(view.observation), view.next.rung) == (CaseStep.START, 2)


@pytest.mark.parametrize(("mode", "reason"), [(Mode.DRY_RUN, Reason.DRY_RUN), (Mode.PAUSED, Reason.POLICY_PAUSED)])
def test_another_mode_stops_what_has_not_touched_the_node_and_lets_what_has_end(mode, reason):
    policy = replace(POLICY, mode=mode)
    assert reason in held_with(HELD, policy)
    assert reason in held_with(FAILED, policy)
    view = looked_at(RUNS, policy, operation=an_operation(template="reset-gpu", phase=OperationPhase.OPERATING))
    assert case_step(view.observation) is CaseStep.WATCH
    assert case_step(looked_at(replace(TAKEN, diagnosis=Diagnosis.PENDING), policy).observation) is CaseStep.HOLD


def test_a_node_that_the_policy_does_not_select_any_more_is_not_taken_and_one_that_is_taken_is_repaired():
    """The labels of a node come and go with its GPUs: half a repair would be worse."""
    elsewhere = replace(POLICY, selector=pool("b"))
    assert held_with(HELD, elsewhere) == [Reason.NOT_SELECTED]
    assert held_with(replace(HELD, trigger=None), elsewhere) == [], "a user has made it for this node"
    assert held_with(FAILED, elsewhere) == []
    assert case_step(looked_at(FAILED, elsewhere).observation) is CaseStep.START


def test_other_conditions_say_at_once_whether_the_node_is_well():
    other = a_policy("gpu-lost", when(Clause(DISK)), ladder=(("reboot", 2),))
    sick = condition(heartbeat=10)
    well = condition(DISK, "False", heartbeat=10, since=0)
    assert case_step(looked_at(HELD, other, a_node("gpu-1", sick, well, heartbeat=10)).observation) is CaseStep.CLEAR
    assert held_with(HELD, other) == [Reason.HEALTH_UNKNOWN], "the node does not have the other condition"
    ours = {name: value for name, value in OURS.items() if name != "minute"}
    view = looked_at(TAKEN, other, a_node("gpu-1", sick, well, heartbeat=10, **ours))
    assert ends_with(view) == (CaseStep.RECOVER, Phase.RECOVERED, Reason.VERIFIED)


@pytest.mark.parametrize(("before", "minute"), [("True", 10), ("True", -60), ("False", 10)])
def test_another_count_or_time_of_its_events_ends_no_case_before_the_new_rule_has_been_silent(before, minute):
    """Three in 10 minutes were enough; now five in 20 minutes are, and nothing was said of them yet."""
    edited = a_policy("gpu-lost", when(Clause("Event/TaskHung/5-in-1200s")), ladder=(("reboot", 2),))
    said = condition("Event/TaskHung/3-in-600s", before, since=minute, heartbeat=minute)
    assert case_step(looked_at(HELD, edited, a_node("gpu-1", said, heartbeat=10)).observation) is CaseStep.CLAIM
    assert held_with(HELD, edited, a_node("gpu-1", said, heartbeat=10)) == [Reason.HEALTH_UNKNOWN]
    ours = {name: value for name, value in OURS.items() if name != "minute"}
    node = a_node("gpu-1", said, heartbeat=10, **ours)
    assert case_step(looked_at(replace(FAILED, phase=Phase.VERIFYING), edited, node).observation) is CaseStep.VERIFY
    silent = condition("Event/TaskHung/5-in-1200s", "False", since=0, heartbeat=10)
    node = a_node("gpu-1", said, silent, heartbeat=10, **ours)
    assert ends_with(looked_at(FAILED, edited, node)) == (CaseStep.RECOVER, Phase.RECOVERED, Reason.VERIFIED)


def test_a_case_that_holds_no_node_ends_half_an_hour_after_its_policy_was_deleted():
    missing = CaseEvent(at(0), Reason.POLICY_MISSING, "no policy gpu-lost")
    held = replace(HELD, timeline=(missing,))
    assert held_with(held, None) == [Reason.POLICY_MISSING]
    assert case_step(looked_at(held, None, now=at(29)).observation) is CaseStep.CLAIM
    assert ends_with(looked_at(held, None, now=at(0) + WITHOUT_POLICY)) == (
        CaseStep.END,
        Phase.CANCELLED,
        Reason.POLICY_MISSING,
    )


def test_a_case_that_holds_its_node_says_that_its_policy_is_missing_and_goes_to_a_person_half_an_hour_later():
    assert case_step(looked_at(RUNS, None, operation=an_operation(template="reset-gpu")).observation) is CaseStep.WATCH
    (first,) = case_plan.verify(looked_at(FAILED, None, now=at(6)), at(6))
    assert (first.after.phase, first.after.reason) == (Phase.VERIFYING, Reason.POLICY_MISSING)
    assert [(block.reason, block.since) for block in first.after.blocks] == [(Reason.POLICY_MISSING, at(6))]
    view = looked_at(first.after, None, now=at(35))
    assert case_step(view.observation) is CaseStep.VERIFY
    assert case_plan.verify(view, at(35)) == (), "it is written once"
    assert ends_with(looked_at(first.after, None, now=at(36)), at(36)) == (
        CaseStep.ESCALATE,
        Phase.ESCALATED,
        Reason.POLICY_MISSING,
    )


def test_a_policy_that_is_deleted_and_made_again_at_once_calls_no_person_however_long_the_case_has_waited():
    waits = replace(TAKEN, blocks=(Block(Reason.WAITING_FOR_IDLE, "one Pod works on gpu-1", since=at(2)),))
    (gone,) = case_plan.verify(looked_at(waits, None, now=at(300)), at(300))
    assert case_step(looked_at(gone.after, None, now=at(329)).observation) is CaseStep.VERIFY
    ours = {name: value for name, value in OURS.items() if name != "minute"}
    unsure = a_node("gpu-1", heartbeat=300, **ours)
    (back,) = case_plan.verify(looked_at(gone.after, POLICY, unsure, now=at(301)), at(301))
    assert back.after.blocks == (), "the next time is counted anew"


def test_under_a_policy_that_was_made_again_the_case_goes_on_by_what_it_says_now():
    missing = CaseEvent(at(0), Reason.POLICY_MISSING, "no policy gpu-lost")
    again = a_policy(ladder=(("reset-gpu", 1), ("reboot", 1), ("power-cycle", 2)), generation=1)
    assert held_with(replace(HELD, timeline=(missing,)), again) == []
    view = looked_at(FAILED, again, now=at(36), node=a_sick_node(**OURS | {"minute": 36}))
    assert (case_step(view.observation), view.next.rung) == (CaseStep.START, 2)


def test_fewer_attempts_call_a_person_before_the_next_one():
    assert ends_with(looked_at(FAILED, replace(POLICY, attempts_max=1))) == (
        CaseStep.ESCALATE,
        Phase.ESCALATED,
        Reason.ATTEMPTS_SPENT,
    )
