"""I1: budgets: a history that keeps it is counted as checked, one that breaks it is reported."""

from tests.remediator_sim.invariants.histories import History, breaks, histories, holds, three_nodes
from tests.remediator_sim.invariants.recording import Recording


def one_claim(recording: Recording) -> None:
    three_nodes(recording)
    recording.claims(a="n1")
    recording.taint("n1", "a")


def a_second_claim_where_one_is_allowed(recording: Recording) -> None:
    one_claim(recording)
    recording.claims(a="n1", c="n2")


def a_third_of_three_nodes_is_one(recording: Recording) -> None:
    three_nodes(recording, "10%")
    recording.claims(a="n1")


def two_thirds_of_three_nodes_are_not_two(recording: Recording) -> None:
    three_nodes(recording, "66%")
    recording.claims(a="n1", c="n2")


def half_of_three_nodes_must_stay_and_half_is_two(recording: Recording) -> None:
    three_nodes(recording, maxUnavailable=None, minAvailable="50%")
    recording.claims(a="n1", c="n2")


def a_node_that_is_down_may_be_claimed_beside_another(recording: Recording) -> None:
    three_nodes(recording)
    recording.node("n1", ready="False")
    recording.node("n3", ready="False")
    recording.later(5)
    recording.node("n1", ready="False")
    recording.claims(a="n1")


def a_good_node_is_claimed_while_another_is_down(recording: Recording) -> None:
    three_nodes(recording)
    recording.node("n3", ready="False")
    recording.later(5)
    recording.claims(a="n1")


def a_claim_beside_a_node_that_went_down_a_moment_ago(recording: Recording) -> None:
    three_nodes(recording)
    recording.node("n3", ready="False")
    recording.claims(a="n1")


def came_up(recording: Recording, seconds: float) -> None:
    """n1 was down, came up again, and is claimed so many seconds later, while n3 is down."""
    three_nodes(recording)
    recording.node("n1", ready="False")
    recording.node("n3", ready="False")
    recording.later(12)
    recording.node("n1")
    recording.later(seconds)
    recording.claims(a="n1")


def a_node_that_came_up_a_moment_ago_is_claimed_beside_one_that_is_down(recording: Recording) -> None:
    came_up(recording, 1)


def a_node_that_came_up_5_s_ago_is_claimed_beside_one_that_is_down(recording: Recording) -> None:
    came_up(recording, 5)


def a_claim_that_stands_is_taken_over_by_a_smaller_budget(recording: Recording) -> None:
    three_nodes(recording)
    recording.claims(a="n1")
    recording.taint("n1", "a")
    recording.budget("zero", 0)
    recording.later(5)
    recording.claims("zero", a="n1")


def a_taint_without_an_entry(recording: Recording) -> None:
    three_nodes(recording)
    recording.taint("n1", "a")


def an_entry_in_one_of_two_budgets(recording: Recording) -> None:
    three_nodes(recording)
    recording.budget("b2", 1)
    recording.later(5)
    recording.claims(a="n1")
    recording.taint("n1", "a")


def an_entry_goes_after_its_case(recording: Recording) -> None:
    one_claim(recording)
    recording.case("a", phase="Recovered", endedAt=True)
    recording.taint("n1", "")
    recording.claims()


def an_entry_goes_before_its_case(recording: Recording) -> None:
    one_claim(recording)
    recording.case("a", phase="Draining", startedAt=True)
    recording.taint("n1", "")
    recording.claims()


def an_entry_goes_of_a_case_that_never_marked_its_node(recording: Recording) -> None:
    three_nodes(recording)
    recording.later(5)
    recording.claims(a="n1")
    recording.claims()


def an_entry_goes_before_the_taint(recording: Recording) -> None:
    one_claim(recording)
    recording.case("a", phase="Recovered", endedAt=True)
    recording.claims()


def quarantined(recording: Recording, most: object, seconds: float) -> None:
    """n1 waits for a person since so many seconds when n2 is claimed."""
    three_nodes(recording, 3, maxQuarantined=most)
    recording.claims(a="n1")
    recording.case("a", phase="Escalated", startedAt=True)
    recording.later(seconds)
    recording.claims(a="n1", c="n2")


def a_claim_beside_one_node_in_quarantine_where_one_may_be(recording: Recording) -> None:
    quarantined(recording, 1, 5)


def a_claim_a_moment_after_the_quarantine_is_full(recording: Recording) -> None:
    quarantined(recording, 1, 1)


def a_tenth_of_three_nodes_in_quarantine_is_two(recording: Recording) -> None:
    quarantined(recording, "10%", 5)


def a_claim_beside_a_node_that_a_rung_keeps_out(recording: Recording) -> None:
    three_nodes(recording, 3, maxQuarantined=1)
    kept = {"name": "n1", "uid": "uid-n1", "annotations": {"remediator.dev/kept-cordoned": "uid-b"}}
    recording.write("nodes", "n1", metadata=kept, spec={"unschedulable": True})
    recording.later(5)
    recording.claims(c="n2")


def a_claim_at_the_end(listed: bool, settled: int) -> History:
    """A case that holds its node for so many seconds, and whether the budget holds its entry then."""

    def write(recording: Recording) -> None:
        three_nodes(recording)
        recording.claims(a="n1")
        recording.taint("n1", "a")
        recording.case("a", phase="Escalated", startedAt=True)
        recording.remove("nodedisruptionbudgets.remediator.dev", "b")
        recording.budget("b", 1)
        recording.claims(**({"a": "n1"} if listed else {}))
        recording.later(settled)
        recording.end()

    return write


def two_racks(recording: Recording, most: int | str = 1, **groups: str) -> None:
    """n1 and n3 stand in rack a, n2 in rack b; each of these nodes is claimed in the group that is said."""
    three_nodes(recording, most, groupBy="rack")
    for name, rack in (("n1", "a"), ("n2", "b"), ("n3", "a")):
        recording.write("nodes", name, metadata={"name": name, "uid": f"uid-{name}", "labels": {"rack": rack}})
    recording.later(15)
    entries = [{"case": f"uid-{node}", "node": node, "group": group} for node, group in groups.items()]
    recording.write("nodedisruptionbudgets.remediator.dev", "b", status={"claims": entries})


def one_node_of_each_rack(recording: Recording) -> None:
    two_racks(recording, n1="a", n2="b")


def a_node_of_each_rack_where_a_third_of_all_is_one(recording: Recording) -> None:
    two_racks(recording, "34%", n1="a", n2="b")


def two_nodes_of_one_rack(recording: Recording) -> None:
    two_racks(recording, n1="a", n3="a")


def a_node_in_a_rack_in_which_it_is_not(recording: Recording) -> None:
    two_racks(recording, n1="a", n3="b")


def a_node_in_no_rack(recording: Recording) -> None:
    two_racks(recording, n1="")


HOLDS = [
    (one_node_of_each_rack, 2),
    (a_claim_at_the_end(listed=True, settled=11), 2),
    (a_claim_at_the_end(listed=False, settled=9), 2),
    (a_claim_a_moment_after_the_quarantine_is_full, 2),
    (a_tenth_of_three_nodes_in_quarantine_is_two, 2),
    (one_claim, 2),
    (a_third_of_three_nodes_is_one, 1),
    (a_node_that_is_down_may_be_claimed_beside_another, 1),
    (a_claim_beside_a_node_that_went_down_a_moment_ago, 1),
    (a_node_that_came_up_a_moment_ago_is_claimed_beside_one_that_is_down, 1),
    (a_claim_that_stands_is_taken_over_by_a_smaller_budget, 2),
    (an_entry_goes_after_its_case, 3),
    (an_entry_goes_of_a_case_that_never_marked_its_node, 2),
]
BROKEN = [
    (a_node_of_each_rack_where_a_third_of_all_is_one, "made 2 of 3 nodes unavailable where 1 may be (n1, n2)"),
    (two_nodes_of_one_rack, "made 2 of 2 nodes unavailable where 1 may be (n1, n3)"),
    (a_node_in_a_rack_in_which_it_is_not, "n3 was claimed at 12:00:21 in group 'b', in which it is not"),
    (a_node_in_no_rack, "n1 was claimed at 12:00:21 in group '', in which it is not"),
    (a_claim_at_the_end(listed=False, settled=11), "budget b has no entry of case a at the end, which holds its node"),
    (a_claim_beside_one_node_in_quarantine_where_one_may_be, "made with 1 nodes in quarantine, and at 1 nothing"),
    (a_claim_beside_a_node_that_a_rung_keeps_out, "made with 1 nodes in quarantine, and at 1 nothing starts (n1)"),
    (a_second_claim_where_one_is_allowed, "the claim of n2 at 12:00:06 made 2 of 3 nodes unavailable where 1"),
    (two_thirds_of_three_nodes_are_not_two, "made 2 of 3 nodes unavailable where 1 may be (n1, n2)"),
    (half_of_three_nodes_must_stay_and_half_is_two, "made 2 of 3 nodes unavailable where 1"),
    (a_good_node_is_claimed_while_another_is_down, "made 2 of 3 nodes unavailable where 1 may be (n1, n3)"),
    (a_node_that_came_up_5_s_ago_is_claimed_beside_one_that_is_down, "made 2 of 3 nodes unavailable where 1"),
    (a_taint_without_an_entry, "n1 was taken by case uid-a at 12:00:05 without an entry in budget b"),
    (an_entry_in_one_of_two_budgets, "without an entry in budget b2"),
    (an_entry_goes_before_its_case, "the entry of case a went at 12:00:06 while the case still held its node"),
    (an_entry_goes_before_the_taint, "while n1 still carried its taint"),
]


@histories("checks", HOLDS)
def test_a_kept_invariant_is_counted_as_checked_and_not_as_broken(history: History, checks: int) -> None:
    holds("I1", history, checks)


@histories("text", BROKEN)
def test_a_broken_invariant_is_reported_with_what_broke_it(history: History, text: str) -> None:
    breaks("I1", history, text)
