"""When a Condition of ours is written, and when it is said again."""

from dataclasses import replace

import pytest

from remediator.core.case import Phase
from remediator.core.node import NodeCondition, Status
from remediator.core.own_condition import BEAT, OwnCondition, beat, due
from tests.builders import a_case, at, minutes

TAINTED = OwnCondition("GpuDeviceTainted", Status.TRUE, "xid", "gpu-3")
STANDING = NodeCondition("GpuDeviceTainted", Status.TRUE, "xid", at(0), at(0), "gpu-3")


def test_the_first_word_is_written_since_now():
    assert due(None, TAINTED, at(7), BEAT) == replace(STANDING, since=at(7), heartbeat=at(7))


def test_the_same_is_said_again_after_five_minutes_and_not_before():
    assert due(STANDING, TAINTED, at(4.9), BEAT) is None
    again = due(STANDING, TAINTED, at(5), BEAT)
    assert again is not None
    assert (again.since, again.heartbeat) == (at(0), at(5))


@pytest.mark.parametrize("change", [{"reason": "gpu-lost"}, {"message": "gpu-4"}])
def test_another_reason_or_message_is_written_at_once_and_holds_since_then(change):
    written = due(STANDING, TAINTED._replace(**change), at(1), BEAT)
    assert written is not None
    assert (written.since, written.heartbeat) == (at(0), at(1))


def test_another_status_holds_since_now():
    written = due(STANDING, TAINTED._replace(status=Status.FALSE), at(1), BEAT)
    assert written is not None
    assert written.since == at(1)


def test_a_heartbeat_from_the_future_is_no_word_of_ours():
    ahead = replace(STANDING, heartbeat=at(9))
    written = due(ahead, TAINTED, at(1), BEAT)
    assert written is not None
    assert written.heartbeat == at(1)


@pytest.mark.parametrize("phase", Phase)
def test_it_is_said_every_minute_while_the_node_is_under_repair_and_else_every_five(phase):
    repaired = phase in (Phase.DRAINING, Phase.OPERATING, Phase.VERIFYING)
    assert beat([a_case(phase=Phase.HELD), a_case(phase=phase)]) == minutes(1 if repaired else 5)
