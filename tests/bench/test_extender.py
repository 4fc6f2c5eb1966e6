"""The benchmark of the extender still measures; how fast anything was is for its report, never for a test."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

KEYS = ["handler_seen_ms", "http_cpu_ms", "http_seen_ms", "https_cpu_ms", "https_first_ms", "https_seen_ms"]
ROOT = Path(__file__).parents[2]


@pytest.mark.sampled("benches")
def test_the_benchmark_states_every_number_of_a_small_run() -> None:
    arguments = ["--nodes", "50", "--requests", "5", "--rate", "100"]
    command = [sys.executable, "-m", "tests.bench.extender", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert (report["nodes"], report["requests"]) == (50, 5)
    for part in ("quiet", "events"):
        for call in ("filter", "prioritize"):
            assert sorted(report[part][call]) == KEYS
            times = [found for key, found in report[part][call].items() if "_cpu" not in key]
            assert all(found["max"] >= found["p50"] > 0 for found in times)
    assert report["events_seen"] > 0
    assert report["memory_mib"]["peak"] >= report["memory_mib"]["resident"] > 0
    assert "WARN" not in done.stderr.upper(), "no watch broke"
