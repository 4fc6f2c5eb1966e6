"""The benches of storms and heartbeats still measure; how fast anything was is for their reports, never for a test."""

import subprocess
import sys

import pytest

from tests.bench.cluster import ROOT
from tests.harness.benches import report

SIDES = ("remediator", "bare")


@pytest.mark.sampled("benches on a server", on_server=True)
@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_a_small_storm_states_every_number() -> None:
    stated = report("storm", "--nodes", "20", "--faults", "3", "--ended", "5")
    assert (stated["faults"], stated["admitted"], stated["ended_cases"]) == (3, 3, 5)
    for side in SIDES:
        assert sorted(stated[side]["claimed_s"]) == ["max", "p50", "p95", "p99"]
        assert stated[side]["cpu_ms_per_fault"] > 0
    assert sorted(stated["ratio"]) == ["claimed_s"]
    assert stated["writes_per_fault"] >= 2
    assert stated["memory_mib"]["after_storm"]["peak"] > 0


@pytest.mark.sampled("benches", rare=True)
def test_a_small_run_of_heartbeats_states_every_number() -> None:
    stated = report("heartbeat", "--nodes", "20", "--beats", "40", "--idle", "0.5")
    assert (stated["nodes"], stated["line_bytes"] > 10_000) == (20, True)
    assert stated["cpu_us_per_heartbeat"] > 0
    assert stated["memory_mib"]["peak"] > 0


@pytest.mark.slow
def test_more_faults_than_there_are_nodes_for_are_refused_with_the_number_that_would_do() -> None:
    command = [sys.executable, "-m", "tests.bench.storm", "--nodes", "20", "--faults", "11"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "11 faults for each side want at least 22 nodes" in done.stderr
