"""What a node needs, for every kind of evidence."""

import itertools
from dataclasses import replace

import pytest

from remediator.core.case import Block, Phase
from remediator.core.decide import Busy, Handled, Healthy, Start, Unknown, Unselected, Wait, case_name, decide
from remediator.core.giving_way import OF_POLICY, outranked_by, takes_over
from remediator.core.judgement import ConditionDoubt, judge
from remediator.core.node import Status
from remediator.core.policy import Clause, Mode, Severity, Urgency
from remediator.core.reasons import Reason
from tests.builders import a_case, a_node, a_policy, an_attempt, at, condition, pool, when

NEVER = a_policy("elsewhere", selector=pool("nobody"))
OLD = "has no heartbeat of the last 15 minutes, or the node's clock is behind"
SILENT = "is ignored: the kubelet does not report"


def unclear(why: str, holds: bool = False) -> Unknown:
    """GpuLost proves nothing; `holds` where it shows the fault all the same."""
    return Unknown((ConditionDoubt("GpuLost", why, holds),))


UNKNOWN = unclear("is Unknown")


@pytest.mark.parametrize(
    ("node", "minute", "expected"),
    [
        pytest.param(a_node("n", condition(status="False")), 1, Healthy(), id="a clear False is health"),
        pytest.param(a_node("n", condition(status="Unknown")), 99, UNKNOWN, id="unknown is not health"),
        pytest.param(a_node("n"), 1, unclear("is absent"), id="an absent condition proves nothing"),
        pytest.param(a_node("n", condition()), 1, Wait(at(2), "gpu-lost"), id="before its tolerance it waits"),
        pytest.param(
            a_node("n", condition(heartbeat=1)), 15.9, "starts", id="after its tolerance, still fresh, it starts"
        ),
        pytest.param(a_node("n", condition()), 2, "starts", id="at the very end of its tolerance it starts"),
        pytest.param(a_node("n", condition()), 15, "starts", id="a heartbeat 15 minutes old still counts"),
        pytest.param(a_node("n", condition()), 15.1, unclear(OLD, holds=True), id="an older one proves nothing"),
        pytest.param(a_node("n", condition(status="False")), 15.1, unclear(OLD), id="an old False is no health either"),
        pytest.param(
            a_node("n", condition(), condition("DetectorStale", "True")),
            3,
            unclear("is ignored: DetectorStale is True", holds=True),
            id="a detector that has stopped is not believed",
        ),
        pytest.param(
            a_node("n", condition(), condition("DetectorStale", "Unknown")),
            3,
            unclear("is ignored: DetectorStale is Unknown", holds=True),
            id="one that may have stopped neither",
        ),
        pytest.param(
            a_node("n", condition(), condition("DetectorStale", "False")), 3, "starts", id="one that runs is believed"
        ),
        pytest.param(
            a_node("n", condition(), ready="Unknown"),
            3,
            unclear(SILENT, holds=True),
            id="a silent kubelet hides detectors",
        ),
        pytest.param(a_node("n", condition(), ready="False"), 3, "starts", id="a kubelet that is not ready does not"),
    ],
)
def test_one_policy_over_one_node(node, minute, expected):
    decision = decide(node, [a_policy(), NEVER], [], at(minute))
    if expected == "starts":
        assert isinstance(decision, Start)
        assert (decision.policy, decision.trigger.condition, decision.trigger.since) == ("gpu-lost", "GpuLost", at(0))
    else:
        assert decision == expected


def test_a_node_that_no_policy_selects_is_not_called_healthy():
    assert decide(a_node(), [NEVER], [], at(1)) == Unselected()


def test_a_policy_on_a_kubelet_condition_needs_no_detector():
    policy = a_policy("pressure", when(Clause("DiskPressure"), tolerance=0))
    node = a_node("n", condition("DiskPressure"), condition("DetectorStale", "True"), ready="Unknown")
    assert isinstance(decide(node, [policy], [], at(1)), Start)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [pytest.param("Xid79", Start, id="a reason that counts"), pytest.param("Other", Healthy, id="one that does not")],
)
def test_only_the_reasons_that_a_policy_names_count(reason, expected):
    policy = a_policy("xid", when(Clause("GpuLost", reasons=frozenset({"Xid79"}))))
    assert isinstance(decide(a_node("n", condition(reason=reason)), [policy], [], at(3)), expected)


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        pytest.param("True", Start, id="both hold"),
        pytest.param("False", Healthy, id="one clearly does not"),
        pytest.param("Unknown", Unknown, id="one is unknown"),
    ],
)
def test_clauses_of_one_entry_must_hold_together(second, expected):
    policy = a_policy("both", when(Clause("A"), Clause("B")))
    node = a_node("n", condition("A"), condition("B", second))
    assert isinstance(decide(node, [policy], [], at(3)), expected)


def test_tolerance_counts_from_the_last_clause_that_came_to_hold():
    policy = a_policy("both", when(Clause("A"), Clause("B"), tolerance=10))
    node = a_node("n", condition("A", since=0, heartbeat=9), condition("B", since=5))
    assert decide(node, [policy], [], at(9)) == Wait(at(15), "both")


def test_of_two_entries_that_hold_the_one_due_first_speaks():
    policy = a_policy("either", when(Clause("A"), tolerance=10), when(Clause("B"), tolerance=1))
    decision = decide(a_node("n", condition("A"), condition("B", since=1)), [policy], [], at(3))
    assert isinstance(decision, Start)
    assert decision.trigger.condition == "B"


ONE, TWO = when(Clause("A"), tolerance=1), when(Clause("B"), tolerance=2)


@pytest.mark.parametrize(
    ("policies", "minute", "winner"),
    [
        pytest.param(
            [a_policy("a", ONE, severity=Severity.INFO), a_policy("z", TWO, severity=Severity.CRITICAL)],
            5,
            "z",
            id="the more severe goes first",
        ),
        pytest.param([a_policy("z", ONE), a_policy("a", TWO)], 5, "z", id="equally severe: the one due first"),
        pytest.param([a_policy("z", ONE), a_policy("a", ONE)], 5, "a", id="due together: the name that sorts first"),
        pytest.param(
            [a_policy("a", ONE), a_policy("z", TWO, severity=Severity.CRITICAL)],
            1.5,
            "a",
            id="a severe one that still waits holds nobody up",
        ),
        pytest.param(
            [a_policy("a", ONE, mode=Mode.DRY_RUN), a_policy("z", TWO)], 5, "a", id="a dry run is decided like the rest"
        ),
    ],
)
def test_several_policies_give_one_case_in_whatever_order_they_come(policies, minute, winner):
    node = a_node("n", condition("A"), condition("B"))
    decisions = [decide(node, order, [], at(minute)) for order in itertools.permutations(policies)]
    assert {decision.policy for decision in decisions} == {winner}
    assert all(decision == decisions[0] for decision in decisions)


def test_of_several_that_wait_the_one_due_first_is_waited_for():
    node = a_node("n", condition("A"), condition("B"))
    assert decide(node, [a_policy("b", TWO), a_policy("a", ONE)], [], at(0.5)) == Wait(at(1), "a")


SEVERE = a_policy("severe", ONE, severity=Severity.CRITICAL)
WAITING = {"phase": Phase.DRAINING, "started": at(1)}


def held_with(*reasons):
    return {"blocks": tuple(Block(reason, "") for reason in reasons)}


@pytest.mark.parametrize(
    ("case", "severity", "opens"),
    [
        pytest.param({}, Severity.WARNING, True, id="it has not taken the node"),
        pytest.param(held_with(Reason.HELD_BY_USER), Severity.WARNING, True, id="a user holds it, and it has nothing"),
        pytest.param({}, Severity.CRITICAL, False, id="it is as severe"),
        *(
            pytest.param(WAITING | held_with(reason), Severity.WARNING, True, id=f"it waits: {reason.value}")
            for reason in sorted(OF_POLICY)
        ),
        pytest.param(WAITING, Severity.WARNING, False, id="it does not wait"),
        pytest.param(WAITING | held_with(Reason.HELD_BY_USER), Severity.WARNING, False, id="a user wants it kept"),
        pytest.param(
            WAITING | held_with(Reason.OUTSIDE_WINDOW) | {"attempts": (an_attempt(),)},
            Severity.WARNING,
            False,
            id="it has tried something",
        ),
        pytest.param(
            WAITING | held_with(Reason.OUTSIDE_WINDOW) | {"attempts": (an_attempt(counts=False),)},
            Severity.WARNING,
            True,
            id="nothing ran of what it tried",
        ),
        pytest.param(
            WAITING | held_with(Reason.OUTSIDE_WINDOW) | {"phase": Phase.ESCALATED},
            Severity.WARNING,
            False,
            id="a person has it",
        ),
    ],
)
def test_a_more_severe_fault_opens_a_case_beside_one_that_only_waits(case, severity, opens):
    node = a_node("n", condition("A"), condition("B"))
    policies = [SEVERE, a_policy("mild", TWO, severity=severity)]
    decision = decide(node, policies, [a_case("c", node="n", policy="mild", **case)], at(3))
    assert decision == Busy("c") if not opens else decision.policy == "severe"


def test_the_fault_of_a_case_that_gave_way_gets_another_case_under_another_name_and_one_of_a_user_does_not():
    node, policy = a_node("n", condition()), a_policy()
    first = _named(node, policy)
    gave = a_case(first, node="n", phase=Phase.CANCELLED, ended=at(2), finalizers=(), reason=Reason.GAVE_WAY)
    second = decide(node, [policy], [gave], at(3)).name
    third = decide(node, [policy], [gave, replace(gave, name=second)], at(3)).name
    assert len({first, second, third}) == 3
    over = a_case(second, node="n", phase=Phase.RECOVERED, ended=at(2), finalizers=())
    assert isinstance(decide(node, [policy], [gave, over], at(3)), Handled)
    assert isinstance(decide(replace(node, handled=(first,)), [policy], [gave], at(3)), Handled)


@pytest.mark.parametrize("reason", [Reason.CLEARED_ITSELF, Reason.POLICY_MISSING])
def test_so_does_that_of_one_that_was_over_before_it_had_taken_the_node(reason):
    """Its policy was edited and edited back, or was away for an hour, or the Condition had another reason meanwhile."""
    node, policy = a_node("n", condition()), a_policy()
    first = _named(node, policy)
    over = a_case(first, node="n", phase=Phase.CANCELLED, ended=at(2), finalizers=(), reason=reason)
    again = decide(node, [policy], [over], at(3))
    assert isinstance(again, Start)
    assert again.name != first
    assert isinstance(decide(node, [policy], [replace(over, started=at(1))], at(3)), Handled), "it had taken the node"
    assert isinstance(decide(replace(node, handled=(first,)), [policy], [over], at(3)), Handled), "a user deleted it"
    many = [replace(over, name=f"c{count}", created=at(count / 10)) for count in range(5)]
    assert decide(node, [policy], [over, *many], at(3)) == Wait(at(60), "gpu-lost"), "6 in an hour"


def _named(node, policy):
    return case_name(node, policy, judge(node, policy, at(3)))


def test_an_open_case_keeps_its_node_busy_whatever_else_is_seen():
    node = a_node("n", condition())
    assert decide(node, [a_policy()], [a_case("c", node="n")], at(3)) == Busy("c")


def test_a_case_of_a_namesake_that_is_gone_does_not():
    node = a_node("n", condition(), uid="another")
    assert isinstance(decide(node, [a_policy()], [a_case("c", node="n")], at(3)), Start)


@pytest.mark.parametrize("phase", [Phase.CANCELLED, Phase.ESCALATED, Phase.RECOVERED])
def test_what_has_had_its_case_is_not_opened_again(phase):
    node, policy = a_node("n", condition()), a_policy()
    over = a_case(_named(node, policy), node="n", phase=phase, ended=at(2), finalizers=())
    assert decide(node, [policy], [over], at(3)) == Handled(over.name, "gpu-lost")


def test_nor_when_only_the_node_remembers_the_case():
    node, policy = a_node("n", condition()), a_policy()
    remembering = a_node("n", condition(), handled=(_named(node, policy),))
    assert decide(remembering, [policy], [], at(3)) == Handled(remembering.handled[0], "gpu-lost")


def test_a_new_onset_is_a_new_case():
    node, policy = a_node("n", condition()), a_policy()
    over = a_case(_named(node, policy), node="n", phase=Phase.CANCELLED, ended=at(2), finalizers=())
    again = a_node("n", condition(since=5))
    decision = decide(again, [policy], [over], at(8))
    assert isinstance(decision, Start)
    assert decision.name != over.name


def test_one_that_is_handled_does_not_hide_another_that_is_due():
    node, first, second = a_node("n", condition("A"), condition("B")), a_policy("a", ONE), a_policy("b", TWO)
    over = a_case(_named(node, first), node="n", policy="a", phase=Phase.CANCELLED, ended=at(2), finalizers=())
    assert decide(node, [first, second], [over], at(3)).policy == "b"


@pytest.mark.parametrize(
    ("other", "phase", "starts"),
    [
        pytest.param({"mode": Mode.DRY_RUN}, Phase.HELD, True, id="a dry run"),
        pytest.param({"mode": Mode.PAUSED}, Phase.HELD, True, id="a paused policy"),
        pytest.param({"urgency": Urgency.NEVER}, Phase.HELD, True, id="one that only calls a person"),
        pytest.param({}, Phase.HELD, False, id="one that acts and waits its turn"),
        pytest.param(
            {"mode": Mode.DRY_RUN}, Phase.OPERATING, False, id="one that holds the node, whatever its mode now"
        ),
    ],
)
def test_a_case_that_only_watches_stands_in_no_other_policys_way(other, phase, starts):
    node = a_node("n", condition("A"), condition("B"))
    policies = [a_policy("a", ONE, **other), a_policy("b", TWO)]
    decision = decide(node, policies, [a_case("c", node="n", policy="a", phase=phase)], at(3))
    assert decision.policy == "b" if starts else decision == Busy("c")


@pytest.mark.parametrize(
    ("policies", "node", "phase", "starts"),
    [
        pytest.param([], a_node("n", condition("B")), Phase.HELD, True, id="its policy was deleted"),
        pytest.param(
            [a_policy("a", ONE)], a_node("n", condition("B")), Phase.HELD, True, id="its condition is not said any more"
        ),
        pytest.param(
            [a_policy("a", ONE)],
            a_node("n", condition("A", "Unknown"), condition("B")),
            Phase.HELD,
            True,
            id="its condition is Unknown",
        ),
        pytest.param([], a_node("n", condition("B")), Phase.OPERATING, False, id="but it holds the node"),
    ],
)
def test_a_case_that_holds_nothing_and_whose_fault_is_not_seen_stands_in_no_other_policys_way(
    policies, node, phase, starts
):
    decision = decide(node, [*policies, a_policy("b", TWO)], [a_case("c", node="n", policy="a", phase=phase)], at(3))
    assert decision.policy == "b" if starts else decision == Busy("c")


@pytest.mark.parametrize(
    ("holder", "newcomer", "severity", "opens"),
    [
        (Urgency.WHEN_IDLE, Urgency.NOW, Severity.WARNING, True),
        (Urgency.WHEN_IDLE, Urgency.WHEN_IDLE, Severity.WARNING, False),
        (Urgency.NOW, Urgency.NOW, Severity.WARNING, False),
        (Urgency.WHEN_IDLE, Urgency.NOW, Severity.INFO, False),
    ],
)
def test_a_case_that_waits_for_its_node_to_be_idle_hides_no_fault_that_is_as_severe_and_due_now(
    holder, newcomer, severity, opens
):
    """A PCIe link waits for a job to end, whose NFS mount has gone stale: the job never ends."""
    node, waiting = a_node("n", condition("A"), condition("B")), (Block(Reason.WAITING_FOR_IDLE, "1 Pod works on n"),)
    link, nfs = a_policy("a", ONE, urgency=holder), a_policy("b", TWO, urgency=newcomer, severity=severity)
    case = a_case("c", node="n", policy="a", phase=Phase.DRAINING, started=at(0), blocks=waiting)
    decision = decide(node, [link, nfs], [case], at(3))
    assert decision.policy == "b" if opens else decision == Busy("c")
    other = a_case("d", node="n", policy="b", blocks=(Block(Reason.NODE_BUSY, "case c holds n"),))
    first = outranked_by(case, link, waiting, [(other, nfs)], node, at(3))
    assert (first == other, takes_over(other.blocks, nfs, [(case, link)])) == (opens, opens)


def test_a_policy_that_only_watches_opens_its_case_beside_one_that_acts_and_never_two():
    node, watcher = a_node("n", condition("A"), condition("B")), a_policy("a", ONE, urgency=Urgency.NEVER)
    acting, own = a_case("c", node="n", policy="b"), a_case("d", node="n", policy="a")
    assert decide(node, [watcher, a_policy("b", TWO)], [acting], at(3)).policy == "a"
    assert decide(node, [watcher, a_policy("b", TWO)], [acting, own], at(3)) == Busy("c")


@pytest.mark.parametrize(
    ("ready", "heartbeat", "expected"),
    [
        pytest.param("Unknown", 0, Start, id="silent, and its last word long ago, as it must be"),
        pytest.param("False", 15, Healthy, id="speaking of trouble, which is another policy's"),
        pytest.param("True", 15, Healthy, id="well"),
        pytest.param("True", 0, Unknown, id="well, but that was long ago"),
    ],
)
def test_a_policy_may_ask_for_a_kubelet_that_is_not_heard_of(ready, heartbeat, expected):
    policy = a_policy("silent", when(Clause("Ready", Status.UNKNOWN), tolerance=10), urgency=Urgency.NEVER, ladder=())
    assert isinstance(decide(a_node("n", ready=ready, heartbeat=heartbeat), [policy], [], at(16)), expected)


def test_a_case_that_has_ended_keeps_the_next_one_out_until_it_has_given_the_node_back():
    """Only then does the node say what a user has cancelled."""
    node, policy = a_node("n", condition()), a_policy()
    over = a_case(_named(node, policy), node="n", phase=Phase.CANCELLED, ended=at(2))
    again = a_node("n", condition(since=5))
    assert decide(again, [policy], [over], at(8)) == Busy(over.name)


@pytest.mark.parametrize(("number", "expected"), [(5, "starts"), (6, Wait(at(61), "gpu-lost"))])
def test_a_node_opens_six_cases_of_a_policy_within_an_hour_and_the_next_when_it_is_over(number, expected):
    past = [
        a_case(f"c{minute}", node="n", finalizers=(), ended=at(9), created=minute) for minute in range(1, number + 1)
    ]
    others = [
        a_case(f"d{minute}", node="n", policy="other", finalizers=(), ended=at(9), created=9) for minute in range(9)
    ]
    node = a_node("n", condition(since=10, heartbeat=13))
    decision = decide(node, [a_policy()], [*past, *others], at(13))
    assert decision == expected or (expected == "starts" and isinstance(decision, Start))
    later = a_node("n", condition(since=10, heartbeat=61), heartbeat=61)
    assert isinstance(decide(later, [a_policy()], past, at(61)), Start)


COVERS = {"reboot": ("reset-gpu",), "power-cycle": ("reboot",)}


def _ladder(name, *operations, severity=Severity.WARNING, **more):
    return a_policy(name, ladder=[(operation, 1) for operation in operations], severity=severity, **more)


MILD = _ladder("gpu-xid", "reset-gpu", "reboot", severity=Severity.CRITICAL)
STRONG = _ladder("gpu-lost", "reboot")
OTHER = _ladder("disk", "clear-disk", severity=Severity.CRITICAL)


@pytest.mark.parametrize(
    ("policies", "cases", "expected"),
    [
        pytest.param([MILD, STRONG], [], "gpu-lost", id="a reboot resets the GPU, too"),
        pytest.param([MILD, _ladder("z", "power-cycle"), STRONG], [], "z", id="a power cycle is a reboot, too"),
        pytest.param([MILD, STRONG, OTHER], [], "disk", id="what nothing covers keeps its severity"),
        pytest.param([MILD, _ladder("dry", "reboot", mode=Mode.DRY_RUN)], [], "gpu-xid", id="one that only watches"),
        pytest.param([MILD, _ladder("told", "reboot", urgency=Urgency.NEVER)], [], "gpu-xid", id="or only tells"),
        pytest.param(
            [MILD, a_policy("spent", ladder=(("reboot", 1),), attempts=1)],
            [a_case("old", policy="spent", attempts=(an_attempt(started=1),), ended=at(2), finalizers=())],
            "gpu-xid",
            id="one that has nothing left to try",
        ),
    ],
)
def test_of_several_policies_the_one_whose_operation_covers_the_others_starts(policies, cases, expected):
    decision = decide(a_node("gpu-1", condition()), policies, cases, at(3), COVERS)
    assert isinstance(decision, Start)
    assert decision.policy == expected


@pytest.mark.parametrize("waits", [True, False])
def test_a_policy_that_may_not_act_now_covers_nothing(waits):
    decision = decide(
        a_node("gpu-1", condition()), [MILD, STRONG], [], at(3), COVERS, lambda policy: not (waits and policy is STRONG)
    )
    assert decision.policy == ("gpu-xid" if waits else "gpu-lost")


@pytest.mark.parametrize(
    ("reason", "opens"), [(Reason.BUDGET_SPENT, False), (Reason.OUTSIDE_WINDOW, True), (Reason.HELD_BY_USER, True)]
)
def test_beside_an_open_case_that_covers_it_a_more_severe_one_opens_where_that_case_alone_is_held(reason, opens):
    """A budget holds both."""
    held = a_case("c", policy="gpu-lost", **held_with(reason))
    decision = decide(a_node("gpu-1", condition()), [MILD, STRONG], [held], at(3), COVERS)
    assert decision.policy == "gpu-xid" if opens else decision == Busy("c")


def test_templates_that_cover_each_other_leave_the_choice_to_the_severity():
    around = {"reboot": ("reset-gpu",), "reset-gpu": ("reboot",)}
    decision = decide(a_node("gpu-1", condition()), [MILD, STRONG], [], at(3), around)
    assert isinstance(decision, Start)
    assert decision.policy == "gpu-xid"


def test_nodes_of_which_the_same_is_not_known_share_one_answer_and_each_doubt() -> None:
    policies = [a_policy(), a_policy("gpu-hot", when(Clause("GpuHot")))]
    one, other = (decide(a_node(name), policies, [], at(1)) for name in ("gpu-1", "gpu-2"))
    assert one == Unknown((ConditionDoubt("GpuHot", "is absent"), ConditionDoubt("GpuLost", "is absent")))
    assert one is other
