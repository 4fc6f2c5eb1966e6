"""What nodes may have in common, and what becomes of a group once its cause has gone."""

from dataclasses import replace

import pytest

from remediator.core import admission as core_admission
from remediator.core.admission import Basis, StartRequest
from remediator.core.breaker import Breaker
from remediator.core.case import Block, CaseEvent, Phase, Trigger
from remediator.core.census import snapshot
from remediator.core.correlation import SharedCause, shared_causes, under_repair
from remediator.core.policy import Correlation
from remediator.core.reasons import Reason
from tests.builders import GPU, a_budget, a_case, a_node, a_policy, a_sick_node, at, condition, minutes

FULL, OF_AMD = "nvidia.com/cuda.driver-version.full", "amd.com/gpu.driver-version"
OLD = {f"nvidia.com/cuda.driver.{part}": value for part, value in (("major", "570"), ("minor", "86"), ("rev", "15"))}
TEXT = "server 10.0.0.5 does not answer"


@pytest.mark.parametrize(
    ("labels", "version"),
    [
        ({FULL: "570.86.15"}, "570.86.15"),
        (OLD, "570.86.15"),
        ({**OLD, FULL: "580.1"}, "580.1"),
        ({"nvidia.com/cuda.driver.major": "570"}, "570"),
        ({OF_AMD: "6.10.5"}, "6.10.5"),
        ({"nvidia.com/cuda.driver.rev": "15"}, ""),
        ({}, ""),
    ],
    ids=["of today", "before 0.15", "both", "major alone", "AMD", "no major", "none"],
)
def test_the_version_of_the_driver_is_read_from_the_labels_of_feature_discovery(labels, version):
    assert a_node(labels=labels).driver == version


@pytest.mark.parametrize(
    ("key", "values", "together"),
    [
        ("kernelVersion", ("6.8.0-52", "6.8.0-52", "6.8.0-52", "6.8.0-50"), 3),
        ("kernelVersion", ("6.8.0-52", "6.8.0-52", "6.8.0-50", "6.8.0-49"), 0),
        ("driverVersion", ("570.86", "570.86", "570.86", "565.57"), 3),
        ("driverVersion", ("", "", "", ""), 0),
        ("example.com/switch", ("sw-1", "sw-1", "sw-1", "sw-2"), 3),
        ("nvidia.com/gpu.clique", ("a.0", "a.0", "a.0", "a.1"), 3),
        ("topology.kubernetes.io/rack", ("r1", "r1", "r1", "r2"), 3),
    ],
)
def test_three_of_four_nodes_with_one_version_switch_clique_or_rack_have_one_cause(key, values, together):
    """Each node says a message of its own: what they have in common is named by the policy."""
    policy = a_policy(correlation=Correlation(3, minutes(10), ("reason", key)))
    nodes = [_node(number, key, value) for number, value in enumerate(values)]
    causes = shared_causes(policy, nodes, [], at(1))
    assert [len(burst.nodes) for bursts in causes.values() for burst in bursts] == [together] * bool(together)
    assert all(f"{key} {values[0]}" in cause.text for cause in causes)


def _node(number, key, value):
    labels = {FULL: value} if key == "driverVersion" else {key: value}
    node = a_node(f"n{number}", condition(message=f"GPU {number} lost"), labels=labels)
    return replace(node, kernel=value) if key == "kernelVersion" else node


# --- once the cause has gone ----------------------------------------------------------------------------------------


def grouped(name, *, was=True, text=TEXT, **more):
    """A case that was held with others for one cause."""
    held = (CaseEvent(at(1), Reason.SHARED_CAUSE, ""),) if was else ()
    return a_case(name, node=f"node-{name}", trigger=Trigger(GPU, "True", "Xid79", text, at(0)), timeline=held, **more)


def admit(cases, going=()):
    nodes = [a_sick_node(case.node) for case in cases]
    requests = [StartRequest(case, node, 1, ()) for case, node in zip(cases, nodes, strict=True)]
    ledgers, repaired = snapshot([a_budget(most=100)], nodes), under_repair(going)
    basis = Basis(ledgers, [], Breaker(100, minutes(10)), at(9), under_repair=repaired)
    admission = core_admission.admit(requests, basis)
    held = {request.case.name: blocks[0] for request, blocks in admission.held}
    return [request.case.name for request in admission.admitted], held


def test_of_five_nodes_that_stay_sick_one_is_repaired_at_a_time():
    admitted, held = admit([grouped(name) for name in "abcde"])
    assert admitted == ["a"]
    assert {block.reason for block in held.values()} == {Reason.SHARED_CAUSE}
    assert held["b"].message.startswith("its node showed the same as others did; case a goes first;")


@pytest.mark.parametrize(
    ("first", "admitted"),
    [
        ({"phase": Phase.DRAINING}, []),
        ({"phase": Phase.VERIFYING}, []),
        ({"phase": Phase.ESCALATED}, ["b"]),
        ({"phase": Phase.RECOVERED, "ended": at(8)}, ["b"]),
        ({"phase": Phase.OPERATING, "blocks": (Block(Reason.HELD_BY_USER, ""),)}, ["b"]),
        ({"phase": Phase.DRAINING, "text": "another server does not answer"}, ["b"]),
        ({"phase": Phase.DRAINING, "was": False}, ["b"]),
    ],
    ids=["drains", "is verified", "went to a person", "recovered", "is held by a user", "another cause", "no group"],
)
def test_the_next_goes_when_the_one_before_has_recovered_went_to_a_person_or_is_stopped(first, admitted):
    assert admit([grouped("b"), grouped("c")], [grouped("a", started=at(2), **first)])[0] == admitted


def test_cases_that_were_in_no_group_go_together_and_those_of_two_groups_one_each():
    assert len(admit([grouped(name, was=False) for name in "abc"])[0]) == 3
    assert admit([grouped("a"), grouped("b"), grouped("c", text="other"), grouped("d", text="other")])[0] == ["a", "c"]


def test_one_case_is_under_repair_for_each_cause():
    cases = [grouped("a", phase=Phase.DRAINING), grouped("b"), grouped("c", phase=Phase.DRAINING, text="other")]
    causes = {SharedCause("gpu-lost", GPU, TEXT): "a", SharedCause("gpu-lost", GPU, "other"): "c"}
    assert under_repair(cases) == causes
