"""Which Pods of a node a drain must see gone."""

from datetime import timedelta

import pytest

from remediator.core.pod import Pod, PodPhase, pods_to_drain
from tests.builders import a_pod, at

OURS = "remediator-operations"
NOW, FIVE = at(60), timedelta(minutes=5)
THERE = a_pod("there", namespace="team")


def ending(ago: float) -> Pod:
    """A Pod that should have ended so many minutes ago."""
    return a_pod("ends", namespace="team", deletion=NOW - timedelta(minutes=ago))


@pytest.mark.parametrize(
    ("pod", "skip", "stays"),
    [
        pytest.param(THERE, None, False, id="one that runs"),
        pytest.param(a_pod("mine", namespace=OURS), None, True, id="one of our own"),
        pytest.param(a_pod("d", namespace="team", daemon=True), None, True, id="one of a DaemonSet"),
        pytest.param(a_pod("m", namespace="team", mirror=True), None, True, id="a static one"),
        pytest.param(a_pod("e", PodPhase.SUCCEEDED, namespace="team"), None, True, id="one that has ended"),
        pytest.param(ending(60), None, False, id="overdue by an hour, and waited for"),
        pytest.param(ending(6), FIVE, True, id="overdue by six minutes of five"),
        pytest.param(ending(5), FIVE, False, id="overdue by just five of five"),
        pytest.param(THERE, FIVE, False, id="nobody has asked it to go"),
    ],
)
def test_a_drain_sees_the_pods_gone_that_can_go(pod, skip, stays) -> None:
    assert pods_to_drain([pod], OURS, skip, NOW) == ([] if stays else [pod])
