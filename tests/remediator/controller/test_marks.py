"""What we write on a node: ours, only ours, and nobody else's away."""

from dataclasses import replace

import msgspec
import pytest

from remediator.controller import marks
from remediator.controller.effects import Retry
from remediator.core import names
from remediator.core.case import Phase
from remediator.core.node import Taint
from remediator.kube.api import decode
from remediator.kube.api.builtin import Node
from tests.builders import a_case, a_node, a_sick_node, at, held_by

CASE = a_case(phase=Phase.DRAINING, started=at(0))
MINE = Taint("maintenance", "alice", "NoSchedule", "2026-01-01T00:00:00Z")
MINE_WRITTEN = {"key": "maintenance", "effect": "NoSchedule", "value": "alice", "timeAdded": "2026-01-01T00:00:00Z"}
OURS_WRITTEN = {"key": names.CASE_TAINT, "effect": "PreferNoSchedule", "value": CASE.uid}
DEGRADED = Taint(names.DEGRADED_TAINT, "", "PreferNoSchedule")
UNDER = {"resourceVersion": "1"}

REASON = f"GpuLost: GPU fell off the bus (remediator {CASE.name})"
NOTED = {
    names.CORDONED_BY: CASE.uid,
    names.CORDON_REASON: REASON,
    names.SCALE_DOWN_DISABLED: "true",
    names.SCALE_DOWN_DISABLED_BY: CASE.uid,
}


def claimed(node, gone=frozenset()):
    """The patch of a claim on the node that was judged."""
    return marks.claim(CASE, node, gone)(node)


def test_a_claim_is_a_cordon_with_our_mark_in_one_write_that_is_bound_to_the_version():
    assert claimed(a_sick_node(taints=[MINE])) == {
        "metadata": UNDER | {"annotations": NOTED},
        "spec": {"unschedulable": True, "taints": [MINE_WRITTEN, OURS_WRITTEN]},
    }


def test_a_claim_replaces_the_mark_of_the_queue_and_that_of_an_older_cordon_for_a_person():
    patch = claimed(a_sick_node(taints=[DEGRADED], kept_cordoned="uid-of-an-older-case"))
    assert patch["spec"]["taints"] == [OURS_WRITTEN]
    assert patch["metadata"]["annotations"] == NOTED | {names.KEPT_CORDONED: None}


@pytest.mark.parametrize("value", ["true", "false"])
def test_what_a_user_has_asked_of_cluster_autoscaler_stays_theirs(value):
    patch = claimed(a_sick_node(scale_down_disabled=value))
    assert patch["metadata"]["annotations"] == {names.CORDONED_BY: CASE.uid, names.CORDON_REASON: REASON}


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(a_sick_node(taints=[held_by(CASE)]), id="claimed already"),
    ],
)
def test_a_claim_writes_nothing_where_there_is_nothing_to_do(node):
    assert claimed(node) is None


OTHER = a_case("other", phase=Phase.DRAINING)


@pytest.mark.parametrize(
    ("judged", "node"),
    [
        pytest.param(a_sick_node(), a_sick_node(uid="other"), id="a namesake"),
        pytest.param(a_sick_node(), a_sick_node(labels={names.EXCLUDE: "true"}), id="excluded meanwhile"),
        pytest.param(a_sick_node(), a_sick_node(unschedulable=True), id="cordoned meanwhile"),
        pytest.param(a_sick_node(), a_sick_node(taints=[held_by(OTHER)]), id="claimed meanwhile"),
        pytest.param(a_sick_node(taints=[held_by(OTHER)]), a_sick_node(taints=[held_by(OTHER)]), id="another's"),
        pytest.param(a_sick_node(unschedulable=True), a_sick_node(unschedulable=True), id="a user's cordon"),
        pytest.param(a_sick_node(cordoned_by="o"), a_sick_node(cordoned_by="o"), id="another's cordon"),
    ],
)
def test_a_claim_takes_no_node_but_the_one_that_was_judged_and_no_other_cases(judged, node):
    assert isinstance(marks.claim(CASE, judged)(node), Retry)


def test_a_claim_goes_on_where_only_a_heartbeat_moved_the_node():
    assert marks.claim(CASE, a_sick_node())(a_sick_node(minute=1, version="2")) is not None


def test_the_mark_of_a_case_that_is_no_more_is_replaced():
    patch = claimed(a_sick_node(taints=[held_by(OTHER)]), frozenset({OTHER.uid}))
    assert patch["spec"]["taints"] == [OURS_WRITTEN]


def test_a_release_takes_only_our_marks_and_leaves_the_name_of_the_case():
    node = a_node(taints=[MINE, held_by(CASE), DEGRADED])
    assert marks.release(CASE, (CASE.name,))(node) == {
        "metadata": UNDER | {"annotations": {names.HANDLED: CASE.name}},
        "spec": {"taints": [MINE_WRITTEN]},
    }


def test_a_release_undoes_our_cordon():
    patch = marks.release(CASE)(a_node(taints=[held_by(CASE)], unschedulable=True, cordoned_by=CASE.uid))
    assert patch["spec"] == {"taints": None, "unschedulable": None}
    assert patch["metadata"]["annotations"][names.CORDONED_BY] is None


def test_a_release_leaves_a_persons_cordon():
    patch = marks.release(CASE)(a_node(taints=[held_by(CASE)], unschedulable=True))
    assert "unschedulable" not in patch["spec"]


def test_a_release_leaves_the_taint_of_another_case():
    other = held_by(a_case("other"))
    patch = marks.release(CASE)(a_node(taints=[other]))
    assert patch["spec"]["taints"] == [{"key": names.CASE_TAINT, "effect": "PreferNoSchedule", "value": other.value}]


def test_a_release_is_done_once():
    assert marks.release(CASE)(a_node(handled=(CASE.name,))) is None
    assert marks.release(CASE)(a_node(uid="other", taints=[held_by(CASE)])) is None


def test_a_case_that_touched_nothing_is_not_remembered_unless_a_person_deleted_it():
    waiting = a_case(phase=Phase.HELD)
    assert marks.release(waiting)(a_node()) is None
    assert marks.release(waiting)(a_node(taints=[DEGRADED]))["metadata"]["annotations"] == {}
    deleted = replace(waiting, deleting=True)
    assert marks.release(deleted, (waiting.name,))(a_node())["metadata"]["annotations"] == {names.HANDLED: waiting.name}


def test_a_case_long_released_leaves_the_mark_of_one_that_waits_now():
    """Ended cases are kept for months; none of them may touch a node again."""
    old = replace(CASE, phase=Phase.RECOVERED, ended=at(1), finalizers=())
    queued = a_sick_node(taints=[DEGRADED], handled=("a-later-one",))
    assert not marks.marked(queued, old)
    assert marks.release(old)(queued) is None


def test_a_node_that_waits_is_marked_once_and_never_beside_a_claim():
    patch = marks.degrade(a_case())(a_sick_node(taints=[MINE]))
    assert [taint["key"] for taint in patch["spec"]["taints"]] == ["maintenance", names.DEGRADED_TAINT]
    for node in (a_sick_node(taints=[DEGRADED]), a_sick_node(taints=[held_by(CASE)]), a_sick_node(uid="other")):
        assert marks.degrade(a_case())(node) is None


@pytest.mark.parametrize(
    ("value", "left"),
    [("true", {names.SCALE_DOWN_DISABLED: None}), ("false", {}), ("", {})],
    ids=["ours", "edited", "taken"],
)
def test_a_release_gives_cluster_autoscaler_its_node_back_unless_a_user_has_spoken_since(value, left):
    node = a_node(taints=[held_by(CASE)], scale_down_disabled=value, scale_down_disabled_by=CASE.uid)
    assert marks.release(CASE)(node)["metadata"]["annotations"] == {names.SCALE_DOWN_DISABLED_BY: None} | left


def test_the_mark_of_a_node_in_service_ends_with_its_case_and_with_the_claim_of_another():
    node = a_node(taints=[held_by(CASE)], in_service=CASE.uid)
    assert marks.release(CASE)(node)["metadata"]["annotations"] == {names.IN_SERVICE: None}
    left = a_sick_node(in_service="uid-of-an-older-case")
    patch = claimed(left, gone=frozenset({"uid-of-an-older-case"}))
    assert patch["metadata"]["annotations"] == NOTED | {names.IN_SERVICE: None}


def test_a_cordon_for_a_person_outlives_the_case():
    node = a_node(taints=[held_by(CASE)], unschedulable=True, kept_cordoned=CASE.uid)
    patch = marks.release(CASE)(node)
    assert "unschedulable" not in patch["spec"]
    assert names.KEPT_CORDONED not in patch["metadata"].get("annotations", {})


def test_a_cordon_that_a_user_has_taken_off_is_not_called_ours_any_more():
    node = a_node(taints=[held_by(CASE)], cordoned_by=CASE.uid)
    assert marks.disown(CASE)(node)["metadata"]["annotations"] == {names.CORDONED_BY: None}
    assert marks.disown(CASE)(a_node(unschedulable=True, cordoned_by=CASE.uid)) is None


@pytest.mark.parametrize("text", ["maintenance of rack 7", "(remediator case-0) and more"])
def test_the_reason_that_a_user_gave_slurm_stays_theirs(text):
    assert names.CORDON_REASON not in claimed(a_sick_node(cordon_reason=text))["metadata"]["annotations"]
    given_back = marks.release(CASE)(a_node(taints=[held_by(CASE)], cordoned_by=CASE.uid, cordon_reason=text))
    assert given_back["metadata"]["annotations"] == {names.CORDONED_BY: None}


def test_the_reason_goes_with_the_cordon_and_stays_with_a_cordon_for_a_person():
    ours = a_node(taints=[held_by(CASE)], cordoned_by=CASE.uid, cordon_reason=REASON, unschedulable=True)
    gone = {names.CORDONED_BY: None, names.CORDON_REASON: None}
    assert marks.release(CASE)(ours)["metadata"]["annotations"] == gone
    assert marks.disown(CASE)(replace(ours, unschedulable=False))["metadata"]["annotations"] == gone
    kept = replace(ours, cordoned_by="", kept_cordoned=CASE.uid)
    assert names.CORDON_REASON not in marks.release(CASE)(kept)["metadata"].get("annotations", {})
    again = claimed(a_sick_node(kept_cordoned="uid-case-0", cordon_reason="GpuEcc: row 7 (remediator case-0)"))
    assert again["metadata"]["annotations"][names.CORDON_REASON] == REASON


def test_a_node_that_has_filled_its_memory_of_cases_is_released_all_the_same():
    rubbish = ["z" * 261_900, "Not A Name", "", "-dash", "y" * 254]
    known = [f"known-{number}" for number in range(40)]
    annotations = {names.HANDLED: ",".join([*rubbish, *known, *rubbish, "x" * 253])}
    wire = {
        "metadata": {"name": "gpu-1", "uid": "uid-gpu-1", "annotations": annotations},
        "spec": {"taints": [OURS_WRITTEN]},
    }
    node = decode.node(msgspec.convert(wire, Node))
    assert node.handled == (*known[14:], "x" * 253)
    written = marks.release(CASE, (CASE.name,))(node)["metadata"]["annotations"][names.HANDLED]
    assert written.split(",") == [*known[14:], "x" * 253, CASE.name]


def test_what_is_handled_is_a_bounded_set_that_forgets_first_what_does_not_show_any_more():
    before = tuple(f"old-{number}" for number in range(marks.MOST_HANDLED))
    standing = frozenset(before[:5])
    written = marks.release(CASE, (CASE.name,), standing)(a_node(taints=[held_by(CASE)], handled=before))
    kept = written["metadata"]["annotations"][names.HANDLED].split(",")
    assert (len(kept), kept[-1], kept[:6]) == (marks.MOST_HANDLED, CASE.name, [*before[:5], before[6]])


def test_a_claim_that_is_taken_back_twice_is_another_text_each_time_so_that_each_write_moves_the_version():
    at_two_versions = [replace(a_sick_node(), version=version) for version in ("7", "8")]
    first, second = (marks.withdraw(CASE)(node) for node in at_two_versions)
    assert first["metadata"]["annotations"] != second["metadata"]["annotations"]
    assert marks.withdraw(CASE)(a_sick_node(taints=[held_by(CASE)])) is None
