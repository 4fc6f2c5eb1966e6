"""Other systems on a node are known by their signs."""

import pytest

from remediator.core.maintenance import SIGNS, UPGRADING, SignOf, maintained
from remediator.core.node import Taint
from tests.builders import a_node, condition


def with_sign(sign, value=""):
    """A node that has the sign."""
    if sign.where is SignOf.TAINT:
        return a_node("gpu-1", taints=(Taint(sign.key, "", "NoSchedule"),))
    if sign.where is SignOf.LABEL:
        return a_node("gpu-1", labels={sign.key: value})
    return a_node("gpu-1", condition(sign.key, status="True"))


@pytest.mark.parametrize(
    ("sign", "value"), [(sign, value) for sign in SIGNS for value in sorted(sign.values) or [""]], ids=str
)
def test_each_sign_names_who_works_on_the_node(sign, value):
    assert maintained(with_sign(sign, value)) == f"{sign.who} {sign.does} gpu-1 ({sign.where} {sign.key})"


@pytest.mark.parametrize("state", ["", "upgrade-done", "upgrade-required", "upgrade-failed"])
def test_who_only_waits_for_a_turn_or_a_person_or_is_done_holds_nothing(state):
    assert state not in UPGRADING
    assert maintained(a_node("gpu-1", labels={"nvidia.com/gpu-driver-upgrade-state": state})) == ""


@pytest.mark.parametrize(
    "node",
    [
        a_node("gpu-1"),
        a_node("gpu-1", condition("MaintenanceInProgress", status="False")),
        a_node("gpu-1", condition("MaintenanceInProgress", status="Unknown")),
        a_node("gpu-1", taints=(Taint("DeletionCandidateOfClusterAutoscaler", "1", "PreferNoSchedule"),)),
        a_node("gpu-1", taints=(Taint("remediator.dev/case", "u", "PreferNoSchedule"),)),
    ],
)
def test_what_is_no_sign_holds_nothing(node):
    assert maintained(node) == ""


def test_of_two_systems_both_are_named():
    node = a_node("gpu-1", taints=tuple(Taint(sign.key, "", "NoSchedule") for sign in SIGNS[:2]))
    assert maintained(node) == (
        "cluster-autoscaler removes gpu-1 (taint ToBeDeletedByClusterAutoscaler); "
        "Karpenter removes gpu-1 (taint karpenter.sh/disrupted)"
    )
