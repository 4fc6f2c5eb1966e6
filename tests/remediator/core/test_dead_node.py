"""A node whose kubelet does not report: what may start there, and what holds it."""

from dataclasses import replace

import pytest

from remediator.core import names
from remediator.core.case import AttemptOutcome
from remediator.core.dead_node import ZONE, DeadNodes, Zone, in_service, on_target, unreachable
from remediator.core.guard import FleetContext, preconditions
from remediator.core.node import Status
from remediator.core.policy import Clause, Urgency
from remediator.core.reasons import Reason
from remediator.core.template import RunOn
from tests.builders import a_case, a_node, a_policy, a_template, an_attempt, at, condition, when
from tests.harness.replica import empty_cache

SILENT = a_node("gpu-1", condition("Ready", "Unknown"), labels={ZONE: "a"})
POLICY = a_policy(
    "node-unreachable",
    when(Clause("Ready", Status.UNKNOWN), tolerance=1),
    ladder=(("power-cycle", 1), ("reboot", 1)),
)
ELSEWHERE = replace(POLICY, ladder=POLICY.ladder[:1])
KNOWN = FleetContext(frozenset({"power-cycle", "reboot"}), paused=False, controller_nodes=frozenset())
EXPIRED = {"gpu-1": ""}


def reasons(policy=ELSEWHERE, node=SILENT, case=None, **dead):
    known = {"on_target": frozenset({"reboot"}), "zones": {"a": Zone(20, 2)}, "leases": EXPIRED}
    fleet = replace(KNOWN, dead=DeadNodes(**known | dead))
    return [block.reason for block in preconditions(case or a_case(), node, policy, [], fleet, at(5))]


def test_what_runs_elsewhere_may_start_once_the_lease_has_expired():
    assert reasons() == []


@pytest.mark.parametrize(
    ("dead", "reason"),
    [
        ({"policy": POLICY}, Reason.NEEDS_KUBELET),
        ({"leases": {"gpu-1": "its Lease was renewed"}}, Reason.LEASE_RENEWED),
        ({"leases": {}}, Reason.LEASE_RENEWED),
        ({"zones": {"a": Zone(20, 11)}}, Reason.ZONE_UNREACHABLE),
        ({"zones": {"": Zone(3, 3), "a": Zone(4, 2)}}, None),
    ],
)
def test_each_thing_that_stands_against_it_by_itself(dead, reason):
    assert reasons(**dead) == ([reason] if reason else [])


def test_a_policy_that_only_calls_a_person_is_asked_none_of_it():
    calls = replace(POLICY, urgency=Urgency.NEVER)
    assert reasons(policy=calls, leases={}, zones={"a": Zone(3, 3)}) == [Reason.TICKET_ONLY]


def test_other_policies_are_asked_none_of_it():
    node = a_node("gpu-1", condition("Ready"), condition("GpuLost", "True"), labels={ZONE: "a"})
    policy = a_policy(ladder=(("reboot", 1),))
    assert reasons(policy=policy, node=node, leases={}, zones={"a": Zone(3, 3)}) == []


def test_a_template_runs_on_the_node_also_where_only_what_completes_it_does():
    elsewhere = [a_template(name, run_on=RunOn.ELSEWHERE) for name in ("power-cycle", "plain")]
    known = [replace(elsewhere[0], after=("check",)), elsewhere[1], a_template("check")]
    assert on_target(known) == {"power-cycle", "check"}
    assert on_target([a_template("restart-kubelet", run_on=RunOn.WATCHDOG)]) == set()


@pytest.mark.parametrize(
    ("node", "counts"),
    [
        (SILENT, True),
        (replace(SILENT, unschedulable=True, cordoned_by="case"), True),
        (replace(SILENT, unschedulable=True), False),
        (a_node("gpu-1", condition("Ready", "False")), False),
    ],
)
def test_a_node_that_a_user_keeps_out_of_service_says_nothing_of_its_zone(node, counts):
    assert unreachable(node) is counts


def unstarted(*minutes_ago, reason=Reason.IMAGE_NOT_PULLED, now=100):
    """A case whose attempts had Pods that never started, and ended so many minutes ago."""
    why = {"reason": reason.value, "message": "ErrImagePull"}
    attempts = [an_attempt(0, AttemptOutcome.CANCELLED, started=now - ago - 1, **why) for ago in minutes_ago]
    return a_case(attempts=tuple(attempts))


@pytest.mark.parametrize(
    ("ago", "held"),
    [
        ((9,), True),
        ((11,), False),
        ((30, 19), True),
        ((30, 21), False),
        ((300, 200, 150, 99, 59), True),
        ((61,), False),
    ],
)
def test_after_a_pod_that_never_started_the_next_one_waits_ten_minutes_then_twice_as_long(ago, held):
    fleet = replace(KNOWN, dead=DeadNodes(leases=EXPIRED))
    blocks = preconditions(unstarted(*ago), SILENT, ELSEWHERE, [], fleet, at(100))
    assert [block.reason for block in blocks] == ([Reason.IMAGE_NOT_PULLED] if held else [])
    assert all(block.until and "ErrImagePull" in block.message for block in blocks)


def test_an_attempt_whose_pod_never_started_is_none():
    case = unstarted(5)
    assert (case.tries, case.counted) == ((), ())
    assert unstarted(5, reason=Reason.POD_NOT_STARTED).counted


def test_a_node_that_reports_and_shows_another_fault_of_the_policy_needs_no_lease_to_expire():
    policy = replace(ELSEWHERE, when=(*ELSEWHERE.when, when()))
    node = a_node("gpu-1", condition("Ready"), condition("GpuLost", "True"), labels={ZONE: "a"})
    assert reasons(policy=policy, node=node, leases={}, zones={"a": Zone(3, 3)}) == []


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (SILENT, (True, True)),
        (a_node(), (True, False)),
        (replace(SILENT, unschedulable=True), (False, False)),
        (replace(SILENT, unschedulable=True, cordoned_by="uid-case-1"), (True, True)),
        (replace(a_node(), unschedulable=True), (False, False)),
        (a_node(labels={names.EXCLUDE: "true"}), (False, False)),
    ],
    ids=["silent", "well", "silent, cordoned by a user", "silent, ours", "well, cordoned by a user", "excluded"],
)
def test_a_node_that_a_user_keeps_out_of_service_counts_on_neither_side_of_the_share(node, expected):
    assert (in_service(node), unreachable(node)) == expected


def test_of_eight_nodes_of_which_three_are_excluded_three_silent_ones_are_a_zone_that_is_cut_off():
    cache = empty_cache()
    silent = [replace(SILENT, name=f"silent-{number}") for number in range(3)]
    well = [a_node(f"well-{number}", labels={ZONE: "a"}) for number in range(2)]
    out = [a_node(f"out-{number}", labels={ZONE: "a", names.EXCLUDE: "true"}) for number in range(3)]
    for node in (*silent, *well, *out):
        cache.nodes.note(node.name, node)
    assert cache.zones.now == {"a": Zone(5, 3)}
    assert reasons(zones=cache.zones.now) == [Reason.ZONE_UNREACHABLE]
    cache.nodes.note("well-1", a_node("well-1", labels={ZONE: "a", names.EXCLUDE: "true"}, version="2"))
    assert cache.zones.now == {"a": Zone(4, 3)}
