"""The gates of new nodes: who waits at one, which case is opened, which machine must pass again."""

from dataclasses import replace
from datetime import timedelta

import pytest

from remediator.core import new_node
from remediator.core.breaker import Breaker, starts
from remediator.core.case import NewNode, Phase, reason_to_end
from remediator.core.decide import Healthy, Start, decide
from remediator.core.guard import cooldown_until
from remediator.core.ladder import next_rung
from remediator.core.node import Taint
from remediator.core.policy import Admit, Approval, Mode, Urgency
from remediator.core.reasons import Reason
from tests.builders import a_case, a_node, a_policy, a_sick_node, an_attempt, at, condition

GATE = "remediator.dev/unproven"
TAINT = Taint(GATE, "", "NoSchedule")
POLICY = a_policy(admit=Admit("gpu-check", GATE))
WELL = condition(status="False")
NEW = a_node("gpu-1", WELL, taints=(TAINT,), machine="m1")
PASSED = replace(NEW, admitted=(f"{GATE}=m1",))


def opened(node=NEW, policies=(POLICY,), cases=()):
    """The name of the case that is to be opened, None for none."""
    opening = new_node.opening(node, policies, cases, at(5))
    return opening.name if opening else None


def new_case(reason=None, name="", **more):
    """A case of the new node, over where a reason is given."""
    ended = at(3) if reason else None
    gate = {"policy": POLICY.name, "new_node": NewNode(GATE, "m1"), "node_uid": NEW.uid}
    gate |= {"finalizers": ()} if reason else {}
    return replace(a_case(name or opened() or "", ended=ended, reason=reason, **gate), **more)


def test_a_case_is_opened_for_a_node_with_the_taint_and_under_the_same_name_from_every_replica():
    opening = new_node.opening(NEW, (POLICY,), (), at(5))
    assert opening is not None
    assert (opening.policy, opening.gate) == ("gpu-lost", NewNode(GATE, "m1"))
    assert opening.trigger.message == f"gpu-1 is new: gpu-check must succeed on it before {GATE} is taken off"
    assert new_node.opening(NEW, (POLICY,), (), at(9)).name == opening.name
    assert opened(replace(NEW, machine="m2")) != opening.name
    assert opened(replace(NEW, uid="another")) != opening.name


@pytest.mark.parametrize(
    ("node", "policies"),
    [
        pytest.param(replace(NEW, taints=()), (POLICY,), id="it was there before the gate"),
        pytest.param(PASSED, (POLICY,), id="this machine has passed, and somebody has put the taint on again"),
        pytest.param(NEW, (a_policy(),), id="no policy has a gate"),
        pytest.param(NEW, (replace(POLICY, admit=Admit("gpu-check", "remediator.dev/other")),), id="another gate"),
        pytest.param(replace(NEW, handled=(opened(),)), (POLICY,), id="a user has deleted its case"),
    ],
)
def test_no_case_is_opened_where(node, policies):
    assert opened(node, policies) is None


def test_the_next_case_has_another_name_unless_the_last_is_open_or_was_cancelled():
    first = opened()
    for reason in (Reason.GAVE_WAY, Reason.ADMITTED_BY_USER, Reason.POLICY_MISSING, Reason.VERIFIED, Reason.NODE_GONE):
        assert opened(cases=[new_case(reason)]) not in (first, None), reason
    for reason in (None, Reason.CASE_DELETED, Reason.TAINT_REMOVED_BY_USER):
        assert opened(cases=[new_case(reason)]) is None, reason


@pytest.mark.parametrize(
    ("mode", "more", "opens"),
    [
        pytest.param(Mode.DRY_RUN, {}, True, id="a dry run watches it"),
        pytest.param(Mode.DRY_RUN, {"phase": Phase.ESCALATED}, False, id="it had taken the node before the dry run"),
        pytest.param(Mode.ENFORCE, {}, False, id="a case may repair it at any time"),
        pytest.param(Mode.ENFORCE, {"ended": at(4)}, False, id="that has not given the node back"),
        pytest.param(Mode.ENFORCE, {"ended": at(4), "finalizers": ()}, True, id="that is over"),
    ],
)
def test_a_case_of_another_policy_keeps_the_proof_back_while_it_may_work_on_the_node(mode, more, opens):
    policies = (POLICY, a_policy("disk", mode=mode))
    case = replace(a_case("c1", policy="disk", node_uid=NEW.uid), **more)
    assert (opened(policies=policies, cases=[case]) is not None) == opens
    (line,) = new_node.standing(NEW, policies, [case], at(5))
    assert ("a case opens for it once case c1 is over; to let the node work without: kubectl taint" in line) != opens


def test_nobody_tries_out_what_shows_the_fault_that_a_user_has_released():
    ill = replace(a_sick_node(minute=5), taints=(TAINT,), machine="m1")
    assert opened(ill) is None
    (line,) = new_node.standing(ill, (POLICY,), (), at(5))
    assert "a case opens for it once what policy gpu-lost repairs is over; to let the node work without" in line


def test_of_two_policies_with_one_taint_the_first_by_name_opens_the_gate():
    other = replace(POLICY, name="a-first", admit=Admit("another-check", GATE))
    opening = new_node.opening(NEW, (POLICY, other), (), at(5))
    assert opening is not None
    assert opening.policy == "a-first"


@pytest.mark.parametrize(
    ("node", "closes"),
    [
        pytest.param(replace(PASSED, taints=(), machine="m2"), (GATE,), id="another machine"),
        pytest.param(replace(PASSED, taints=()), (), id="the machine that has passed"),
        pytest.param(replace(PASSED, taints=(), machine=""), (), id="nobody can tell which machine it is"),
        pytest.param(replace(PASSED, machine="m2"), (), id="the taint is on already"),
        pytest.param(replace(NEW, taints=(), machine="m2"), (), id="none has ever come through"),
        pytest.param(
            replace(PASSED, taints=(), machine="m2", labels={"pool": "a", "remediator.dev/exclude": "true"}),
            (),
            id="a user has excluded it",
        ),
    ],
)
def test_the_gate_is_shut_again_only_for_another_machine(node, closes):
    assert new_node.closing(node, (POLICY,)) == closes
    assert new_node.closing(node, (replace(POLICY, mode=Mode.DRY_RUN),)) == ()


def test_the_annotation_keeps_one_machine_for_each_gate():
    node = replace(NEW, admitted=("remediator.dev/other=m9", f"{GATE}=m0"))
    assert new_node.admitted(node, GATE) == "m0"
    assert new_node.with_admitted(node, NewNode(GATE, "m1")) == f"remediator.dev/other=m9,{GATE}=m1"
    assert new_node.without(node, {GATE}) == ("remediator.dev/other=m9",)


def test_its_policy_without_ladder_and_all_that_spares_work_rules_the_case():
    strict = replace(POLICY, urgency=Urgency.NEVER, approval=Approval.REQUIRED, cooldown=timedelta(hours=1))
    ruling = new_node.ruling(new_case(), strict)
    assert ruling is not None
    assert (ruling.ladder, ruling.verify.probe, ruling.urgency, ruling.approval) == (
        (),
        "gpu-check",
        Urgency.NOW,
        Approval.NONE,
    )
    assert (ruling.name, ruling.when, ruling.mode) == (POLICY.name, POLICY.when, POLICY.mode)
    assert new_node.ruling(new_case(), a_policy()) is None, "it has no gate any more"
    assert new_node.ruling(a_case(), POLICY) is POLICY


def test_the_case_ends_where_the_taint_is_taken_off_or_the_machine_is_another_one():
    held = replace(NEW, taints=(TAINT, Taint("remediator.dev/case", "uid-x", "PreferNoSchedule")))
    case = new_case(phase=Phase.VERIFYING, uid="uid-x")
    assert reason_to_end(case, held) is None
    assert reason_to_end(case, replace(held, taints=held.taints[1:])) is Reason.ADMITTED_BY_USER
    assert reason_to_end(case, replace(held, machine="m2")) is Reason.NODE_GONE
    assert reason_to_end(case, replace(held, machine="")) is None, "nobody can tell"


def test_the_fault_of_the_policy_goes_first_once_its_tolerance_is_over():
    sick = a_sick_node("gpu-1", minute=1, taints=(TAINT,), machine="m1")
    assert not new_node.fault_goes_first(new_case(), sick, POLICY, at(1))
    assert new_node.fault_goes_first(new_case(), sick, POLICY, at(2))
    assert not new_node.fault_goes_first(new_case(phase=Phase.ESCALATED), sick, POLICY, at(2)), "a person has it"
    assert not new_node.fault_goes_first(a_case(), sick, POLICY, at(2))


@pytest.mark.parametrize("reason", [Reason.VERIFIED, Reason.RELEASED_BY_USER, Reason.RELEASED_HEALTHY])
def test_a_proof_or_a_person_lets_the_node_work_and_nothing_else_does(reason):
    assert new_node.admits(new_case(reason), NEW)
    assert not new_node.admits(new_case(reason), replace(NEW, machine="m2")), "another machine"
    assert not new_node.admits(new_case(Reason.GAVE_WAY), NEW)
    assert not new_node.admits(a_case(reason=reason), NEW), "a repair opens no gate"


def test_the_case_of_a_new_node_counts_for_no_breaker_cooldown_or_ladder_of_its_policy():
    probe = an_attempt(0, probe=True, template="gpu-check", started=1)
    over = {"phase": Phase.RECOVERED, "finalizers": ()}
    case = new_case(Reason.VERIFIED, started=at(1), attempts=(probe,), **over)
    going = new_case(phase=Phase.DRAINING, started=at(1))
    assert starts([case, going]) == []
    assert not Breaker().admitted(going, at(2))
    assert cooldown_until(POLICY, [case], at(5)) is None
    spent = [replace(case, name=f"c{number}", uid=f"u{number}") for number in range(9)]
    assert not isinstance(next_rung(POLICY, a_case(policy=POLICY.name), spent, at(5)), Reason)
    assert isinstance(decide(a_sick_node(minute=5), (POLICY,), spent, at(5)), Start)
    assert isinstance(decide(NEW, (POLICY,), spent, at(5)), Healthy)


def test_what_a_user_reads_names_the_command_that_lets_the_node_work():
    off = f"kubectl taint node gpu-1 {GATE}-"
    (waits,) = new_node.standing(NEW, (POLICY,), (), at(5))
    assert waits == (
        f"new node: {GATE} keeps work off until gpu-check has succeeded (policy gpu-lost); a case opens for it"
    )
    (tried,) = new_node.standing(NEW, (POLICY,), [new_case(name="c1")], at(5))
    assert tried.endswith(f"keeps work off until case c1 is over; to let the node work without: {off}")
    (passed,) = new_node.standing(PASSED, (POLICY,), (), at(5))
    assert f"to let it work: {off}; to have it tried out again: kubectl annotate" in passed
    (cancelled,) = new_node.standing(NEW, (POLICY,), [new_case(Reason.CASE_DELETED)], at(5))
    assert cancelled.endswith(f"to let the node work: {off}")
    assert list(new_node.standing(replace(NEW, taints=()), (POLICY,), (), at(5))) == []
