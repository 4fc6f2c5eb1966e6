"""NodeDrift: what a node says by it, from never through True and Unknown to False, and what is believed of a node."""

from dataclasses import replace

import pytest

from remediator.core.health import Health, health_of
from remediator.core.node import Node, NodeCondition, Status
from remediator.core.node_drift import GRACE, UPGRADED, own_condition, reason_of, report_of, told_of
from remediator.core.node_versions import MOST_KINDS, NODE_DRIFT, NODE_VERSIONS, versions
from remediator.core.policy import Clause
from remediator.core.trust import STALE_AFTER
from remediator.core.version_groups import SETTLED, GroupsSeen, look
from remediator.core.writers import by_detectors
from tests.builders import a_node, a_policy, at, condition, when

LABELS = ("pool",)
HOURS = GRACE.total_seconds() / 3600
MESSAGE = "vbios b where 9 of 10 nodes of h100 have a"


def a_member(name: str, line: str, *more: NodeCondition, status: str = "True", heard: float = 0, **labels: str) -> Node:
    """A node of the pool that says this."""
    said = condition(NODE_VERSIONS, status, heartbeat=heard, message=line)
    node = a_node(name, said, *more, labels={"pool": "h100"} | labels)
    return replace(node, versions=versions(line))


def stood(status: str = "True", message: str = MESSAGE) -> NodeCondition:
    return condition(NODE_DRIFT, status, reason="VbiosDrift", message=message)


def group(*lines: str, began: float = -60 * HOURS, then: tuple[str, ...] = ()) -> GroupsSeen:
    """What is known of nine nodes and gpu-1 with these lines, since so many minutes ago."""
    seen = None
    for minute, told in ((began, lines), (-SETTLED.total_seconds() / 60, then or lines), (0.0, then or lines)):
        members = [
            a_member(f"n{number}" if number else "gpu-1", line, heard=minute) for number, line in enumerate(told)
        ]
        seen = look(seen, [report_of(member, LABELS, at(minute)) for member in members], at(minute))
    assert seen is not None
    return seen


def said(seen: GroupsSeen, line: str, before: NodeCondition | None = None, **more) -> tuple[Status, str, str] | None:
    node = a_member("gpu-1", line, *filter(None, (before,)), **more)
    words = own_condition(node, seen, report_of(node, LABELS, at(0)), at(0))
    return words and (words.status, words.reason, words.message)


ODD = ("vbios=b", *["vbios=a"] * 9)


def test_a_node_that_never_differed_says_nothing():
    assert said(group(*["vbios=a"] * 10), "vbios=a") is None


def test_a_node_that_differs_says_so_once_its_group_has_stood_still_for_the_grace():
    assert said(group(*ODD), "vbios=b") == (Status.TRUE, "VbiosDrift", MESSAGE)
    assert said(group(*ODD, began=-60 * HOURS + 1), "vbios=b") is None


def test_several_kinds_are_one_text_and_the_first_is_the_reason():
    seen = group("power-limit=350 vbios=b", *["power-limit=700 vbios=a"] * 9)
    status, reason, text = said(seen, "power-limit=350 vbios=b")
    assert (status, reason) == (Status.TRUE, "PowerLimitDrift")
    assert text == f"power-limit 350 where 9 of 10 nodes of h100 have 700; {MESSAGE}"
    assert told_of(stood(message=text)) == {"power-limit", "vbios"}


def test_what_was_told_stays_told_by_a_new_leader_that_knows_no_more_than_now():
    assert said(group(*ODD, began=-1), "vbios=b", stood()) == (Status.TRUE, "VbiosDrift", MESSAGE)


@pytest.mark.parametrize(
    ("line", "then", "why"),
    [
        ("vbios=b", ("vbios=b", "vbios=b", *["vbios=a"] * 8), "it changes on nodes of its group"),
        ("vbios=b", (*["vbios=b"] * 5, *["vbios=a"] * 5), "no value is that of 80 percent of its group"),
        ("vbios=b", ("vbios=b", "vbios=a"), "fewer than 5 nodes of its group tell it"),
        ("kernel=6.8", ODD, "the node does not tell it now"),
    ],
)
def test_what_was_told_is_unknown_where_nobody_can_tell_any_more(line, then, why):
    assert said(group(*ODD, then=then), line, stood()) == (
        Status.UNKNOWN,
        "DriftUnknown",
        f"vbios cannot be compared: {why}",
    )
    assert said(group(*ODD, then=then), line, stood("Unknown", f"vbios cannot be compared: {why}"))[0] is Status.UNKNOWN
    assert said(group(*ODD, then=then), line) is None
    assert said(group(*ODD, then=then), line, stood("False")) is None


def test_it_ends_where_the_node_is_as_nearly_all_or_nobody_tells_the_kind_any_more():
    fine = (Status.FALSE, "NoDrift", "the node runs as nearly all nodes of its group")
    assert said(group(*["vbios=a"] * 10), "vbios=a", stood()) == fine
    assert said(group(*["kernel=6.8"] * 10), "kernel=6.8", stood("Unknown")) == fine
    assert said(group(*["vbios=a"] * 10), "vbios=a", stood("False")) is None, "what is well is not said again"


@pytest.mark.parametrize(
    ("status", "heard"), [("Unknown", 0), ("False", 0), ("True", -STALE_AFTER.total_seconds() / 60), ("True", 10)]
)
def test_what_is_not_said_lately_or_not_by_a_true_is_not_believed(status, heard):
    assert report_of(a_member("gpu-1", "vbios=b", status=status, heard=heard), LABELS, at(0)).versions == ()


def test_a_node_whose_driver_the_gpu_operator_upgrades_says_so_and_one_that_waits_for_its_turn_does_not():
    label = {"nvidia.com/gpu-driver-upgrade-state": "pod-restart-required"}
    states = ("pod-restart-required", "upgrade-required", "upgrade-done", "upgrade-failed")
    upgraded = [
        report_of(a_member("gpu-1", "", **dict.fromkeys(label, state)), LABELS, at(0)).rolling for state in states
    ]
    assert upgraded == [UPGRADED, frozenset(), frozenset(), frozenset()]


@pytest.mark.parametrize(
    "message",
    [
        "",
        "vbios",
        "vbios=a vbios=b",
        "Vbios=a",
        "vbios=a b",
        "vbios=" + "a" * 65,
        " ".join(f"k{n}=1" for n in range(MOST_KINDS + 1)),
    ],
)
def test_a_message_that_is_no_list_of_values_says_nothing(message):
    assert versions(message) == ()


def test_a_reason_is_one_word_that_a_policy_may_name():
    assert [reason_of(kind) for kind in ("vbios", "max-clocks")] == ["VbiosDrift", "MaxClocksDrift"]


def test_to_a_policy_it_proves_health_where_it_is_absent_or_false_and_a_fault_where_it_is_true():
    policy = a_policy("node-drift", when(Clause(NODE_DRIFT, Status.TRUE)))
    found = [
        health_of(a_member("gpu-1", "", *one), policy, at(0))
        for one in ((), (stood("False"),), (stood(),), (stood("Unknown"),))
    ]
    assert found == [Health.HEALTHY, Health.HEALTHY, Health.UNHEALTHY, Health.UNKNOWN]
    assert by_detectors(NODE_DRIFT), "where detectors are stale it is not believed"
