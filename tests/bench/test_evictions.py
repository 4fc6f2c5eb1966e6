"""The benchmark of evictions still measures; how fast anything was is for its report, never for a test."""

import json
import os
import subprocess
import sys

import pytest

from tests.bench.cluster import ROOT
from tests.bench.workload import calls_of

METRICS = """
apiserver_request_total{code="200",resource="pods",scope="resource",subresource="",verb="GET"} 7
apiserver_request_total{code="201",dry_run="",resource="pods",scope="resource",subresource="eviction",verb="POST"} 12
apiserver_request_total{code="201",dry_run="All",resource="pods",scope="resource",subresource="eviction",verb="POST"} 1
apiserver_request_total{code="429",dry_run="",resource="pods",scope="resource",subresource="eviction",verb="POST"} 3e+02
"""


@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_twelve_pods_on_four_nodes_take_twelve_eviction_calls_of_the_floor_and_twelve_of_the_drains() -> None:
    command = [sys.executable, "-m", "tests.bench.evictions", "--pods", "12", "--drains", "2", "--per-node", "3"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout)
    assert (report["pods"], report["drains_at_once"], report["pods_per_node"]) == (12, 2, 3)
    assert report["floor"]["calls"] == report["drains"]["calls"] == {"201": 12}, "no budget blocks a Pod"
    assert min(report[side]["seconds"] for side in ("drains", "floor")) > 0
    assert min(report["drains"][cost] for cost in ("cpu_seconds", "memory_mib")) > 0
    for quantiles in (report["start_ms"], report["drains"]["drain_ms"]):
        assert sorted(quantiles) == ["max", "p50", "p95", "p99"]


def test_evictions_are_counted_by_the_code_of_the_answer_and_no_other_request_is() -> None:
    assert calls_of(METRICS) == {"201": 13, "429": 300}


def test_pods_that_fill_no_whole_node_are_refused() -> None:
    command = [sys.executable, "-m", "tests.bench.evictions", "--pods", "25", "--per-node", "10"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "25 Pods do not fill nodes of 10 Pods" in done.stderr
