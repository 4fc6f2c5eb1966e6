"""An operation that a user asks for: what they are told before, in its middle and at its end."""

from dataclasses import replace

import pytest

from remediator.core.asked import Asked, LeftOperation, before, left_alone, nothing_to_do, progress
from remediator.core.case import Phase
from remediator.core.guard import Hosted
from remediator.core.jobs_at_stake import BlastRadius, JobAtStake
from remediator.core.operation import Operation, OperationPhase
from tests.builders import a_case, a_node, a_template, at

REBOOT = a_template("reboot")
WAITING = Operation("reboot-gpu-1-x", "u", "gpu-1", "n", "", "reboot", at(0), requested_by="bob")


def asked(**more) -> Asked:
    return Asked(**{"template": REBOOT, "node": a_node("gpu-1"), "cases": (), "operations": ()} | more)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, ""),
        ({"operations": (WAITING,)}, "reboot of gpu-1 is asked for already by bob: NodeOperation reboot-gpu-1-x"),
        ({"operations": (replace(WAITING, finished=at(1)),)}, ""),
        ({"operations": (replace(WAITING, template="drain"),)}, ""),
        ({"operations": (replace(WAITING, case_uid="of a case"),)}, ""),
        ({"paused": True}, "Paused: all new work is paused"),
        ({"hosted": Hosted(last_replica=True)}, "HostsController: gpu-1 runs our last ready replica"),
        ({"node": a_node("gpu-1", unschedulable=True)}, "CordonedByUser: gpu-1 is cordoned"),
    ],
)
def test_what_would_do_nothing_until_a_user_undoes_something_says_why(more, why):
    told = nothing_to_do(asked(**more), "ann", at(2))
    assert told.startswith(why)
    assert bool(told) == bool(why)


def test_what_will_happen_names_the_jobs_that_end_and_the_case_that_is_waited_for():
    job = JobAtStake("JobSet", "team", "llm", 8, 64, at(0), 120)
    holder = a_case("case-1", phase=Phase.OPERATING)
    lines = list(before(asked(cases=(holder,)), BlastRadius(at(2), (job,), 1, 1, 8, 64, 120)))
    assert lines[0] == "reboot of gpu-1:"
    assert lines[1].startswith(
        "  ends: 1 job on 64 GPUs, 120 GPU-hours (JobSet team/llm: 8 of its 64 GPUs here, since "
    )
    assert "  waits: for case case-1, which holds gpu-1" in lines
    assert lines[-2].startswith("  starts: when budgets, breaker and all else")
    assert (
        list(before(asked(leaderless="no replica leads"), BlastRadius(at(2))))[-2] == "  controller: no replica leads"
    )
    assert lines[-1] == "  afterwards: gpu-1 takes work again, as soon as it is Ready"
    assert next(before(asked(), BlastRadius(at(2), unknown="no answer"))) == "reboot of gpu-1:"


def test_how_far_it_is_stands_in_one_line_with_what_keeps_pods():
    draining = replace(WAITING, phase=OperationPhase.DRAINING)
    of_case = replace(draining, name="gpu-1-reboot-0123456789", left=2, blocked="team/a (pdb web)")
    assert progress(draining, of_case) == "Draining, Pods left: 2 (team/a (pdb web))"
    assert progress(draining, replace(of_case, left=0)) == progress(draining) == "Draining"
    done = replace(WAITING, phase=OperationPhase.SUCCEEDED, left=0, message="new bootID boot-2")
    assert progress(done) == "Succeeded: new bootID boot-2"


def test_who_stops_looking_is_told_what_goes_on_and_how_to_take_it_back():
    """Of several cases of the node, it is the one of this operation that the command takes back."""
    made = LeftOperation("gpu-1", "reboot-gpu-1-x")
    look = "to look: remediator explain gpu-1; to take it back"
    assert list(left_alone(made)) == [
        "NodeOperation reboot-gpu-1-x is made and goes on; nothing more is shown of it",
        f"{look} before it begins: kubectl delete nop reboot-gpu-1-x",
    ]
    begun = replace(made, progress="Draining, Pods left: 2", case="gpu-1-asked-0123456789")
    assert list(left_alone(begun)) == [
        "NodeOperation reboot-gpu-1-x is made and goes on (seen last: Draining, Pods left: 2); "
        "nothing more is shown of it",
        f"{look} before its Pod runs: remediator cancel gpu-1 --case gpu-1-asked-0123456789",
    ]
    drains = f"{look}: remediator cancel gpu-1 --case gpu-1-asked-0123456789"
    assert list(left_alone(replace(begun, drains=True)))[1] == drains
    assert list(left_alone(replace(begun, kept=True)))[1] == f"{look}: remediator put-back gpu-1"
    unknown = "no answer has come: whether an operation for gpu-1 was made is not known; see `kubectl get nop`"
    assert list(left_alone(LeftOperation("gpu-1"))) == [unknown]
