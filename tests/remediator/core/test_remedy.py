"""The one command that changes what happens to a node: what a user has stopped comes before what waits for one."""

from dataclasses import replace

import pytest

from remediator.core import remedy
from remediator.core.case import Block, Phase
from remediator.core.reasons import Reason
from tests.builders import a_case


@pytest.mark.parametrize(
    ("reasons", "begins"),
    [
        ((), "remediator hold gpu-1"),
        ((Reason.BUDGET_SPENT,), "remediator hold gpu-1"),
        ((Reason.DRY_RUN, Reason.OPTED_OUT), "kubectl label node gpu-1 remediator.dev/exclude-"),
        ((Reason.OPTED_OUT, Reason.PAUSED), "kubectl annotate ns ours remediator.dev/paused-"),
        ((Reason.DRY_RUN, Reason.BUDGET_SPENT), "kubectl patch rp gpu-lost "),
        ((Reason.HELD_BY_USER, Reason.APPROVAL_NEEDED), "remediator hold gpu-1 --off"),
        ((Reason.APPROVAL_NEEDED,), "remediator approve gpu-1"),
        ((Reason.POLICY_FAILING,), "remediator close-breaker policy/gpu-lost"),
    ],
)
def test_the_widest_stop_of_a_user_is_undone_first(reasons, begins):
    case = replace(a_case(), name="case-1", policy="gpu-lost", blocks=tuple(Block(each, "") for each in reasons))
    assert remedy.command(case, "ours").startswith(begins)


TRUST = "kubectl annotate --overwrite rp gpu-lost remediator.dev/trusted-criteria=LinkNew,NvmlHung"
HOLD = "remediator hold gpu-1   # nothing new starts"


@pytest.mark.parametrize(
    ("message", "others", "expected"),
    [
        (f"it is new; to let it act now: {TRUST}; look at what it shows", (), TRUST),
        (f"it is new; to let it act now: {TRUST}", (), TRUST),
        (f"it is new; to let it act now: {TRUST}; look", (Reason.BUDGET_SPENT,), TRUST),
        (f"it is new; to let it act now: {TRUST}; look", (Reason.OPTED_OUT,), "kubectl label node gpu-1 "),
        ("words of a controller that names no command", (), HOLD),
    ],
)
@pytest.mark.parametrize("reason", [Reason.NEW_CRITERION, Reason.CRITERION_MUTED])
def test_what_is_new_is_let_act_by_the_command_of_the_hold_after_what_a_user_has_stopped(
    reason, message, others, expected
):
    blocks = (*(Block(each, "") for each in others), Block(reason, message))
    command = remedy.command(replace(a_case(), policy="gpu-lost", blocks=blocks), "ours")
    assert command.startswith(expected)
    assert command == expected or expected.endswith(" ")


def test_a_case_that_a_person_has_ends_by_its_release():
    case = replace(a_case(), phase=Phase.ESCALATED, blocks=(Block(Reason.PAUSED, ""),))
    assert remedy.command(case, "ours") == "remediator release gpu-1   # once it is repaired"
