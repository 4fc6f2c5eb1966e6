"""Lint of Events that must be silent for longer than a repair is waited for."""

from dataclasses import replace
from datetime import timedelta

import pytest

from remediator.core.node_events import EventRule
from remediator.core.policy import Clause, When
from remediator.kube.manifests import quiet_events
from tests.builders import a_policy, minutes


@pytest.mark.parametrize(("timeout", "warned"), [(24, True), (25, True), (26, False)])
def test_a_timeout_that_ends_before_silence_is_proven_is_named(timeout: float, warned: bool) -> None:
    """Twenty minutes of silence, then five minutes to settle."""
    rules = [EventRule("IOError", 3, minutes(10)), EventRule("TaskHung", 3, minutes(20))]
    policy = a_policy("hung", *(When((Clause(rule.condition),), timedelta(0)) for rule in rules))
    verify = replace(policy.verify, settle=minutes(5), timeout=minutes(timeout))
    needs = "TaskHung must be silent for event.within 20m and then verify.settle, which is 25m"
    late = f"but verify.timeout is {timeout}m: no repair is in time to count as one"
    warning = f"policy hung: {needs}, {late}; write a longer verify.timeout, or a shorter event.within"
    policies = [replace(policy, verify=verify), a_policy("gpu-lost")]
    assert list(quiet_events.warnings(policies)) == ([warning] if warned else [])
