"""The issue of a case that a drain has ended names the Pods that kept it, and what each needs."""

from dataclasses import replace

import pytest

from remediator.core.case import Phase
from remediator.core.reasons import Reason
from tests.remediator.tickets.test_render import a_case, section, seen

LEFT = (
    "2 pods left; blocked: team/a (web); team/b (no controller makes it again: annotate it with remediator.dev/evict)"
)


def text(reason: str, phase: Phase = Phase.ESCALATED) -> str:
    case = a_case(phase=phase)
    tried = replace(case.attempts[0], message=LEFT, reason=reason)
    return section(seen(replace(case, attempts=(tried,))))


@pytest.mark.parametrize("reason", [Reason.DRAIN_TIMEOUT, Reason.DRAIN_FAILED])
def test_an_issue_names_the_pods_that_kept_the_last_drain(reason: Reason) -> None:
    step = f"1. Pods kept the drain before `reboot`; let them go as it says: `{LEFT}`."
    assert step in text(reason).splitlines()


def test_what_another_attempt_ended_with_is_none_of_it() -> None:
    assert "kept the drain" not in text(Reason.TIMED_OUT)


def test_while_the_case_goes_on_nobody_is_asked() -> None:
    assert "kept the drain" not in text(Reason.DRAIN_TIMEOUT, Phase.DRAINING)
