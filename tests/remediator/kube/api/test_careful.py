"""A case that a newer version wrote still counts for what it has done."""

import json
from datetime import UTC, datetime

import msgspec
import pytest

from remediator.core.breaker import Breaker, starts
from remediator.core.budget import BreakerRule
from remediator.kube.api.decode import careful

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def unreadable(**status):
    """A case whose rung is a word."""
    wire = {
        "metadata": {"name": "case-1", "uid": "case-1"},
        "spec": {"nodeName": "gpu-1", "nodeUID": "uid-gpu-1", "policyName": "gpu-lost"},
        "status": {"rung": "first", **status},
    }
    return careful.case(msgspec.Raw(json.dumps(wire).encode()))


def test_the_starts_of_a_case_that_cannot_be_read_stay_counted():
    tries = [
        {"operation": f"reboot-{minute}", "startedAt": f"2026-11-20T11:{minute}:00Z", "rung": "one"}
        for minute in (55, 57, 59)
    ]
    case = unreadable(attempts=[*tries, {"operation": "restart", "startedAt": "2026-11-20T11:59:30Z", "follows": "x"}])
    assert [start.at.minute for start in starts([case])] == [55, 57, 59]
    assert Breaker(starts=3).opens([start.at for start in starts([case])], NOON) is not None
    assert Breaker(starts=4).opens([start.at for start in starts([case])], NOON) is None


@pytest.mark.parametrize("attempts", [None, "three", [{"startedAt": "at noon"}], [[]]], ids=repr)
def test_attempts_that_cannot_be_read_either_leave_a_case_that_holds_its_node(attempts):
    case = unreadable(attempts=attempts)
    assert (case.node, case.claimed, case.unreadable, case.attempts) == ("gpu-1", True, True, ())


@pytest.mark.parametrize(
    ("spec", "breaker"),
    [
        ({"breaker": {"starts": 5}, "maxUnavailable": {"a": 1}}, BreakerRule(starts=5)),
        ({"breaker": {"failures": {"of": 6, "most": 3}}, "fallback": "perhaps"}, BreakerRule(of=6, most=3)),
        ({"breaker": {"starts": "many"}}, None),
    ],
    ids=["its starts", "its failures", "nothing of it"],
)
def test_the_breaker_of_a_budget_that_cannot_be_read_stops_what_it_can(spec, breaker):
    """It admits nothing; what holds its node already goes on only as far as the breaker lets it."""
    wire = {"metadata": {"name": "a", "uid": "u"}, "spec": {"selector": {}} | spec}
    budget = careful.budget(msgspec.Raw(msgspec.json.encode(wire)))
    assert (budget.unreadable, budget.adopted, budget.breaker) == (True, False, breaker)
