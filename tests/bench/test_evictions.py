"""The benchmark of evictions still measures; how fast anything was is for its report, never for a test."""

import subprocess
import sys

import pytest

from tests.bench.cluster import ROOT
from tests.bench.workload import calls_of
from tests.harness.benches import report

METRICS = """
apiserver_request_total{code="200",resource="pods",scope="resource",subresource="",verb="GET"} 7
apiserver_request_total{code="201",dry_run="",resource="pods",scope="resource",subresource="eviction",verb="POST"} 12
apiserver_request_total{code="201",dry_run="All",resource="pods",scope="resource",subresource="eviction",verb="POST"} 1
apiserver_request_total{code="429",dry_run="",resource="pods",scope="resource",subresource="eviction",verb="POST"} 3e+02
"""


@pytest.mark.sampled("benches on a server", on_server=True)
@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_twelve_pods_on_four_nodes_take_twelve_eviction_calls_of_the_floor_and_twelve_of_the_drains() -> None:
    stated = report("evictions", "--pods", "12", "--drains", "2", "--per-node", "3")
    assert (stated["pods"], stated["drains_at_once"], stated["pods_per_node"]) == (12, 2, 3)
    assert stated["floor"]["calls"] == stated["drains"]["calls"] == {"201": 12}, "no budget blocks a Pod"
    assert min(stated[side]["seconds"] for side in ("drains", "floor")) > 0
    assert min(stated["drains"][cost] for cost in ("cpu_seconds", "memory_mib")) > 0
    for quantiles in (stated["start_ms"], stated["drains"]["drain_ms"]):
        assert sorted(quantiles) == ["max", "p50", "p95", "p99"]


def test_evictions_are_counted_by_the_code_of_the_answer_and_no_other_request_is() -> None:
    assert calls_of(METRICS) == {"201": 13, "429": 300}


@pytest.mark.slow
def test_pods_that_fill_no_whole_node_are_refused() -> None:
    command = [sys.executable, "-m", "tests.bench.evictions", "--pods", "25", "--per-node", "10"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "25 Pods do not fill nodes of 10 Pods" in done.stderr
