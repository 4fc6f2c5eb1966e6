"""I3: nodes of a zone that is cut off are not dead: what is done to one of them is reported."""

import pytest

from tests.remediator_sim.invariants.histories import breaks, holds
from tests.remediator_sim.invariants.recording import Recording, tried

ZONE = "topology.kubernetes.io/zone"


def _zone(recording: Recording, silent: int, nodes: int, *, seconds: float = 5, **marks: object) -> None:
    """So many nodes of a zone of so many do not report; the last of these has `marks`, and the first one a case."""
    recording.policy(when=[{"condition": "Ready", "status": "Unknown", "for": "0s"}])
    for number in range(1, nodes + 1):
        recording.write(
            "nodes", f"n{number}", metadata={"name": f"n{number}", "uid": f"{number}", "labels": {ZONE: "a"}}
        )
        if number == silent:
            recording.mark(f"n{number}", **marks)
        recording.node(f"n{number}", "", ready="Unknown" if number <= silent else "True")
    recording.node("elsewhere", "", ready="True")
    recording.case("a", "n1", "Held")
    recording.later(int(seconds))


def _taken(recording: Recording, silent: int, nodes: int, **how: object) -> None:
    _zone(recording, silent, nodes, **how)
    recording.taint("n1", "a")


@pytest.mark.parametrize(("silent", "nodes"), [(3, 3), (3, 5), (6, 10)])
def test_a_claim_in_a_zone_that_is_cut_off_is_reported(silent, nodes):
    breaks(
        "I3", lambda recording: _taken(recording, silent, nodes), f"{silent} of {nodes} nodes of zone a do not report"
    )


@pytest.mark.parametrize(("silent", "nodes"), [(2, 2), (1, 5), (3, 6), (5, 10)])
def test_a_claim_where_fewer_are_silent_is_counted(silent, nodes):
    holds("I3", lambda recording: _taken(recording, silent, nodes), 2)  # of evidence, too


def test_an_attempt_there_is_reported_too():
    def begins(recording: Recording) -> None:
        _zone(recording, 3, 3)
        recording.case("a", phase="Draining", attempts=tried("reset-a", outcome=""))

    breaks("I3", begins, "reset-a was begun")


def test_nodes_that_fell_silent_a_moment_ago_and_those_that_a_user_keeps_out_do_not_count():
    holds("I3", lambda recording: _taken(recording, 3, 3, seconds=1), 1)  # by evidence
    holds("I3", lambda recording: _taken(recording, 3, 3, unschedulable=True), 2)
