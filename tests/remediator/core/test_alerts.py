"""Alerts as evidence: what is said of one on a node, and what that proves."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from remediator.core.alerts import AlertState, node_names, own_condition
from remediator.core.health import Health, health_of
from remediator.core.judgement import judge
from remediator.core.node import NodeCondition, Status
from remediator.core.policy import Clause, When
from tests.builders import a_node, a_policy

NOW = datetime(2026, 11, 26, tzinfo=UTC)
TYPE = "Alert/NodeGpuXid"
FIRING, QUIET = (Status.TRUE, "Firing"), (Status.FALSE, "NotFiring")


def condition(status: Status, minutes: float = 0.0) -> NodeCondition:
    """The Condition, heard of so many minutes ago."""
    return NodeCondition(TYPE, status, "Firing", NOW - timedelta(hours=1), NOW - timedelta(minutes=minutes))


TRUE, FALSE = condition(Status.TRUE), condition(Status.FALSE)
SAID = [  # what all lists say, what the node says, whether it has a case, what is to be said
    (AlertState.ACTIVE, None, False, FIRING),
    (AlertState.ACTIVE, FALSE, False, FIRING),
    (AlertState.ACTIVE, TRUE, True, FIRING),
    (AlertState.SUPPRESSED, None, False, None),
    (AlertState.SUPPRESSED, FALSE, True, None),
    (AlertState.SUPPRESSED, TRUE, False, FIRING),
    (AlertState.ABSENT, None, True, None),
    (AlertState.ABSENT, TRUE, False, QUIET),
    (AlertState.ABSENT, FALSE, True, QUIET),
    (AlertState.ABSENT, FALSE, False, None),
    (AlertState.UNKNOWN, None, True, None),
    (AlertState.UNKNOWN, TRUE, True, None),
    (AlertState.UNKNOWN, FALSE, True, None),
]


@pytest.mark.parametrize(("sign", "before", "has_case", "wanted"), SAID)
def test_what_is_said_of_an_alert(sign: AlertState, before: NodeCondition | None, has_case: bool, wanted: Any) -> None:
    words = own_condition(TYPE, sign, before, has_case)
    assert (words and (words.status, words.reason)) == wanted


PROVEN = [
    (None, Health.HEALTHY),
    (condition(Status.FALSE, minutes=600), Health.HEALTHY),
    (TRUE, Health.UNHEALTHY),
    (condition(Status.TRUE, minutes=14), Health.UNHEALTHY),
    (condition(Status.TRUE, minutes=16), Health.UNKNOWN),  # nobody could tell for a quarter of an hour
]


@pytest.mark.parametrize(("said", "proves"), PROVEN)
def test_what_the_condition_of_an_alert_proves(said: NodeCondition | None, proves: Health) -> None:
    node = a_node("gpu-1", *filter(None, [said]))
    policy = a_policy("gpu-xid", When((Clause(TYPE),), timedelta(0)))
    assert (judge(node, policy, NOW).health, health_of(node, policy, NOW)) == (proves, proves)


def test_only_what_can_be_the_name_of_a_node_is_looked_up_from_the_surest_label_on() -> None:
    labels = {"instance": "gpu-1:9400", "Hostname": "dcgm-exporter-x7k", "node": "gpu_1", "nodename": "gpu-1.example"}
    assert node_names(labels) == ("gpu-1.example", "dcgm-exporter-x7k", "gpu-1")
