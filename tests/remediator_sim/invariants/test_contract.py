"""What the judge reads from a node: whether it is ill, and for how long it has said so."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from remediator_sim.invariants import clauses, contract

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MONITOR = {"namespace": "monitoring", "matchLabels": {"app": "monitor"}}
SIGN = "ReportedBy/monitoring/app=monitor"


def entry(kind: str, status: str, since: float = 0, beat: float = 0) -> dict[str, Any]:
    """One Condition; its times in minutes before now."""
    times = {"lastTransitionTime": since, "lastHeartbeatTime": beat}
    return {"type": kind, "status": status} | {
        key: (NOW - timedelta(minutes=ago)).isoformat() for key, ago in times.items()
    }


def node(*entries: dict[str, Any]) -> dict[str, Any]:
    """A node that shows these."""
    return {"status": {"conditions": entries}}


@pytest.mark.parametrize(("stale", "sick"), [("False", True), ("True", None), ("Unknown", None), ("", None)])
def test_a_fault_is_believed_while_its_detectors_are_known_to_work(stale: str, sick: bool | None) -> None:
    shown = node(entry("GpuLost", "True"), entry("Ready", "True"), entry("DetectorStale", stale))
    policy = {"spec": {"when": [{"condition": "GpuLost"}]}}
    assert clauses.sick(shown, policy, NOW, contract.STALE) is sick


@pytest.mark.parametrize(("ready", "sick"), [("True", True), ("Unknown", None)])
def test_a_test_that_failed_is_believed_whatever_detectors_do_while_the_kubelet_reports(ready: str, sick: bool) -> None:
    shown = node(entry("IdleTestFailed", "True"), entry("Ready", ready), entry("DetectorStale", "True"))
    policy = {"spec": {"when": [{"condition": "IdleTestFailed"}]}}
    assert clauses.sick(shown, policy, NOW, contract.STALE) is sick


@pytest.mark.parametrize(("clause", "minutes"), [({}, 0), ({"staleAfter": "0s", "reportedBy": MONITOR}, 6)])
def test_who_writes_on_change_alone_says_by_their_own_heartbeats_that_it_is_still_so(
    clause: dict[str, Any], minutes: int
) -> None:
    ready, sign = entry("Ready", "True", since=60), entry(SIGN, "True", since=60, beat=1)
    shown = node(entry("GpuLost", "False", since=7, beat=7), ready, sign)
    policy = {"spec": {"when": [{"condition": "GpuLost", **clause}]}}
    assert min(clauses.lasted(shown, policy)) == timedelta(minutes=minutes)
