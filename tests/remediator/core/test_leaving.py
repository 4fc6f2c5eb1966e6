"""What nodes carry of ours is named with the command that takes it off; who keeps a node is told before."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from remediator.core import names
from remediator.core.case import KeepOut, Phase
from remediator.core.leaving import MOST_NAMED, Leaving, leftovers, named
from remediator.core.node import Node, Taint
from remediator.core.reasons import Reason
from tests.builders import a_case

NODE = Node("gpu-1", "n", {}, {})
ANNOTATE = "kubectl annotate node gpu-1 remediator.dev"


@pytest.mark.parametrize(
    ("marks", "commands"),
    [
        ({}, []),
        ({"taints": (Taint("broken", "true", "NoSchedule"),), "unschedulable": True}, []),
        (
            {"taints": (Taint(names.CASE_TAINT, "c", "PreferNoSchedule"),)},
            ["kubectl taint node gpu-1 remediator.dev/case-"],
        ),
        ({"taints": (Taint(names.DEGRADED_TAINT, "", ""),)}, ["kubectl taint node gpu-1 remediator.dev/degraded-"]),
        ({"taints": (Taint(*names.OUT_OF_SERVICE),)}, []),
        (
            {"taints": (Taint(*names.OUT_OF_SERVICE),), "out_of_service_boot": "b"},
            ["kubectl taint node gpu-1 node.kubernetes.io/out-of-service-", f"{ANNOTATE}/out-of-service-boot-"],
        ),
        (
            {"unschedulable": True, "cordoned_by": "c"},
            [f"kubectl uncordon gpu-1 && {ANNOTATE}/cordoned-by-"],
        ),
        ({"in_service": "c"}, [f"{ANNOTATE}/in-service-"]),
        ({"drain_requested": datetime(2026, 1, 1, tzinfo=UTC)}, [f"{ANNOTATE}/drain-requested-"]),
        (
            {"scale_down_disabled": "true", "scale_down_disabled_by": "c"},
            [
                "kubectl annotate node gpu-1 cluster-autoscaler.kubernetes.io/scale-down-disabled- "
                "remediator.dev/scale-down-disabled-by-"
            ],
        ),
        (
            {"labels": {"nvidia.com/gpu.deploy.dcgm": "paused-for-remediation", "nvidia.com/gpu.deploy.nvsm": "true"}},
            ["kubectl label node gpu-1 --overwrite nvidia.com/gpu.deploy.dcgm=true"],
        ),
    ],
)
def test_each_mark_of_ours_is_told_with_the_command_that_takes_it_off_and_none_of_others(marks, commands):
    left = leftovers(replace(NODE, **marks))
    assert [mark.command for mark in left] == commands
    assert all(mark.blocks for mark in left)


def test_a_cordon_for_a_person_is_told_and_blocks_nothing():
    (left,) = leftovers(replace(NODE, unschedulable=True, kept_cordoned="c"))
    assert (left.blocks, left.command) == (False, "once it is repaired: kubectl uncordon gpu-1")


def test_nodes_that_users_have_taken_out_are_named_apart_from_those_that_nobody_has_repaired():
    terms = KeepOut(datetime(2026, 1, 1, tzinfo=UTC), "OPS-17")
    sick = a_case(node="gpu-1", phase=Phase.ESCALATED)
    out = a_case(node="gpu-2", phase=Phase.ESCALATED, reason=Reason.TAKEN_OUT, keep_out=terms)
    leaving = Leaving((sick, out))
    assert (leaving.quarantined, leaving.taken_out) == (("gpu-1",), ("gpu-2",))
    assert leaving.broken.startswith(
        "nobody has repaired gpu-1; users have taken out gpu-2; a cordon goes with the case"
    )
    assert Leaving((a_case(phase=Phase.HELD),)).broken == ""


def test_not_more_than_twenty_names_stand_in_a_sentence():
    assert named([f"gpu-{number:02}" for number in range(MOST_NAMED + 2)]).endswith("gpu-19 and 2 more")
