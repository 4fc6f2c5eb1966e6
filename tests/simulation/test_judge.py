"""The judge reports each sentence once, as soon as it is true."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from remediator.clock import Clock
from remediator_sim.invariants.results import Checked
from remediator_sim.invariants.tracked import Limits
from remediator_sim.simulation import cluster
from remediator_sim.simulation.judge import Judge

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)


def test_a_violation_of_i1_after_one_of_i13_is_reported_and_each_of_them_once():
    reported, broken = [], {"I1": (), "I13": ()}
    server = cluster.fresh(Clock(lambda: NOW, lambda: 0.0), 1)
    judge = Judge(server.cluster, Limits(10, timedelta(minutes=10)), lambda event: None, reported.append, lambda: NOW)
    checks = lambda: {name: Checked(name, "", 1, found) for name, found in broken.items()}  # noqa: E731
    judge._checker = SimpleNamespace(hear=lambda event: True, report=checks)
    for name in ("I13", "I1", "I1"):
        broken[name] = (*broken[name], f"violation {len(broken[name]) + 1}")
        judge.killed()
    assert reported == ["I13: violation 1", "I1: violation 1", "I1: violation 2"]
