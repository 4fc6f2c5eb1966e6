"""When many nodes have one cause."""

import pytest

from remediator.core.case import Phase, Trigger
from remediator.core.correlation import SharedCause, shared_cause, shared_causes, sharing
from remediator.core.decide import decide
from remediator.core.policy import Correlation
from tests.builders import GPU, a_case, a_node, a_policy, at, condition, minutes, pool, when

TEXT = "server 10.0.0.5 does not answer"
THREE = a_policy(correlation=Correlation(3, minutes(10)))
DEAD = SharedCause("gpu-lost", GPU, TEXT)


def node(name, since=0, message=TEXT, heartbeat=None, **more):
    return a_node(name, condition(since=since, message=message, heartbeat=heartbeat), **more)


def nodes(*begun, message=TEXT, heartbeat=15, **more):
    return [node(f"n{index}", since, message, heartbeat, **more) for index, since in enumerate(begun)]


def sizes(causes):
    """How many nodes each burst has, by cause."""
    return {cause: [len(burst.nodes) for burst in bursts] for cause, bursts in causes.items()}


@pytest.mark.parametrize(
    ("seen", "together"),
    [
        pytest.param(nodes(0, 1), 0, id="two are no pattern"),
        pytest.param(nodes(0, 5, 10), 3, id="three within ten minutes are"),
        pytest.param(nodes(0, 6, 12), 0, id="three over twelve minutes are not"),
        pytest.param(nodes(-400, -399, -398, 9), 3, id="one that comes hours later does not belong to them"),
        pytest.param(nodes(-9, 0, 1, 8), 4, id="those that overlap are one"),
        pytest.param([*nodes(0, 0), node("x", message="server 10.0.0.6 does not answer")], 0, id="other words"),
        pytest.param(nodes(0, 0, 0, message=""), 0, id="silence is nothing in common"),
        pytest.param(
            [*nodes(0, 0), a_node("x", condition(status="Unknown", message=TEXT))], 0, id="unknown is no fault"
        ),
        pytest.param([*nodes(0, 0), a_node("x", condition(status="False", message=TEXT))], 0, id="nor is health"),
    ],
)
def test_nodes_that_say_the_same_within_the_window_have_one_cause(seen, together):
    assert sizes(shared_causes(THREE, seen, [], at(15))) == ({DEAD: [together]} if together else {})


OTHERS_OLD = nodes(0, 1, 2, heartbeat=300)


@pytest.mark.parametrize(
    ("onset", "shown", "shares"),
    [(12, 12, True), (12.1, 12.1, False), (300, 300, False), (-10, -10, True), (-11, -11, False), (2, 300, True)],
)
def test_a_case_shares_its_cause_only_with_nodes_that_came_to_show_it_about_when_its_own_did(onset, shown, shares):
    """Three nodes broke within two minutes, five hours ago; the onset is that of its trigger or that shown now."""
    mine = node("mine", shown, heartbeat=300)
    case = a_case("mine", node="mine", trigger=Trigger(GPU, "True", "Xid79", TEXT, at(onset)))
    three = a_policy(correlation=Correlation(3, minutes(10)))
    causes = shared_causes(three, OTHERS_OLD, [], at(301))
    assert sharing(case, three, mine, causes) == (("n0", "n1", "n2") if shares else ())


@pytest.mark.parametrize(
    ("changes", "together"),
    [
        ({}, True),
        ({"labels": {"remediator.dev/exclude": "true"}}, False),
        ({"unschedulable": True}, False),
        ({"unschedulable": True, "cordoned_by": "uid-of-its-case"}, True),
        ({"heartbeat": -1}, False),
        ({"ready": "Unknown"}, False),
    ],
    ids=["healthy otherwise", "excluded", "cordoned by a user", "cordoned by us", "stale", "its kubelet is silent"],
)
def test_nodes_that_users_keep_out_and_stale_evidence_are_not_counted(changes, together):
    third = node("third", 0, **{"heartbeat": 15} | changes)
    assert bool(shared_causes(THREE, [*nodes(0, 0), third], [], at(15))) is together


@pytest.mark.parametrize(
    ("changes", "together"),
    [({"heartbeat": -1}, True), ({"ready": "Unknown"}, True), ({"uid": "another", "heartbeat": -1}, False)],
    ids=["stale", "its kubelet is silent", "another machine of its name"],
)
def test_a_node_with_an_open_case_counts_on_while_nobody_can_tell_how_it_is(changes, together):
    third = node("third", 0, **{"heartbeat": 15} | changes)
    assert bool(shared_causes(THREE, [*nodes(0, 0), third], [opened_for(TEXT, node="third")], at(15))) is together


def test_a_node_with_an_open_case_that_shows_no_fault_any_more_does_not_count():
    well = a_node("third", condition(status="False", since=0, heartbeat=15), heartbeat=15)
    assert not shared_causes(THREE, [*nodes(0, 0), well], [opened_for(TEXT, node="third")], at(15))


@pytest.mark.parametrize(("phase", "together"), [(Phase.HELD, True), (Phase.VERIFYING, True), (Phase.ESCALATED, False)])
def test_a_node_that_waits_for_a_user_after_its_ladder_is_not_counted(phase, together):
    case = a_case(node="n0", phase=phase)
    assert bool(shared_causes(THREE, nodes(0, 0, 0), [case], at(15))) is together


def test_a_policy_that_does_not_ask_has_no_shared_causes():
    assert shared_causes(a_policy(), nodes(0, 0, 0), [], at(15)) == {}


def test_nodes_that_the_policy_does_not_select_do_not_count():
    policy = a_policy(selector=pool("b"), correlation=Correlation(2, minutes(10)))
    assert shared_causes(policy, nodes(0, 0, 0), [], at(15)) == {}


def opened_for(text, name="c", node="n", **more):
    return a_case(name, node=node, trigger=Trigger(GPU, "True", "Xid79", text, at(0)), **more)


@pytest.mark.parametrize(("ended", "together"), [(5, True), (14, True), (4, False)])
def test_the_last_node_to_notice_that_the_server_is_back_is_no_single_fault(ended, together):
    over = [opened_for(TEXT, f"c{index}", f"n{index}", ended=at(ended)) for index in (1, 2)]
    assert bool(shared_causes(THREE, nodes(0), over, at(15))) is together


def test_a_case_remembers_its_cause_and_none_where_nothing_was_said():
    assert shared_cause(opened_for(TEXT)) == DEAD
    assert shared_cause(opened_for("")) is None


@pytest.mark.parametrize(
    ("by", "together"),
    [
        (("message",), 0),
        (("reason",), 4),
        (("rack",), 3),
        (("reason", "rack"), 3),
        (("row",), 0),
        (("message", "rack"), 0),
    ],
)
def test_nodes_are_compared_by_what_the_policy_names(by, together):
    """Four nodes of the same reason, each with a PCI address of its own; three stand in one rack."""
    policy = a_policy(correlation=Correlation(3, minutes(10), by))
    seen = [node(f"n{n}", message=f"GPU 0000:{n}:00.0 lost", labels={"rack": "a" if n < 3 else "b"}) for n in range(4)]
    assert [*sizes(shared_causes(policy, seen, [], at(1))).values()] == [[together]] * bool(together)


def test_a_case_carries_what_was_compared_so_that_one_ticket_is_about_all_of_them():
    policy = a_policy("p", when(tolerance=0), correlation=Correlation(2, minutes(10), ("reason", "rack")))
    decisions = [decide(node(name, message=name, labels={"rack": "a"}), [policy], [], at(1)) for name in ("n1", "n2")]
    causes = {decision.trigger.cause for decision in decisions}
    assert causes == {"reason Xid79, rack a"}
    case = a_case(policy="p", trigger=decisions[0].trigger)
    assert shared_cause(case) == SharedCause("p", GPU, "reason Xid79, rack a")


def test_what_a_policy_compares_now_counts_for_cases_that_are_open_already():
    """A user adds `by: [reason]` in the middle of a storm: cases that were opened before it hold, too."""
    policy = a_policy(correlation=Correlation(2, minutes(10), ("reason",)))
    seen = [node(f"n{n}", message=f"GPU {n} lost") for n in range(3)]
    case = opened_for("GPU 0 lost", node="n0")
    assert sharing(case, policy, seen[0], shared_causes(policy, seen, [], at(1))) == ("n0", "n1", "n2")
