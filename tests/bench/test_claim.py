"""The benchmark of claims still measures; how fast anything was is for its report, never for a test."""

import subprocess
import sys

import pytest

from tests.bench.cluster import ROOT
from tests.harness.benches import report


@pytest.mark.sampled("benches on a server", on_server=True)
@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_the_benchmark_states_every_number_of_a_small_run() -> None:
    stated = report("claim", "--nodes", "20", "--faults", "5", "--idle", "5")
    assert (stated["nodes"], stated["faults"]) == (20, 5)
    for side in ("claim_ms", "floor_ms", "ratio"):
        assert sorted(stated[side]) == ["max", "p50", "p95", "p99"]
        assert all(value > 0 for value in stated[side].values())
    assert stated["memory_mib"]["after_faults"]["peak"] >= stated["memory_mib"]["synced"]["resident"] > 0
    assert stated["writes_per_fault"] >= 4, "the server counts the controller's writes: a claim alone is three"
    assert stated["idle"]["lease_renewals"] > 0, "the server counts renewals in the same way"
    assert stated["idle"]["writes"] == 0, "a controller with nothing to do writes nothing"


@pytest.mark.slow
def test_more_faults_than_there_are_nodes_for_are_refused_with_the_number_that_would_do() -> None:
    command = [sys.executable, "-m", "tests.bench.claim", "--nodes", "20", "--faults", "9"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "9 faults want at least 22 nodes" in done.stderr
