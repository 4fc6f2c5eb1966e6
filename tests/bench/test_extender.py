"""The benchmark of the extender still measures; how fast anything was is for its report, never for a test."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

OVER_HTTP = ["http_cpu_ms", "http_seen_ms"]
OVER_TLS = ["https_cpu_ms", "https_first_ms", "https_other_names_ms", "https_seen_ms"]
ROOT = Path(__file__).parents[2]


@pytest.mark.sampled("benches", rare=True)
def test_the_benchmark_states_every_number_of_a_small_run() -> None:
    report, said = run()
    assert (report["nodes"], report["requests"]) == (50, 5)
    for part in ("quiet", "events"):
        for call in ("filter", "prioritize"):
            assert sorted(report[part][call]) == ["handler_seen_ms", *OVER_HTTP, *OVER_TLS]
            times = [found for key, found in report[part][call].items() if "_cpu" not in key]
            assert all(found["max"] >= found["p50"] > 0 for found in times)
    assert report["events_seen"] > 0
    assert report["memory_mib"]["peak"] >= report["memory_mib"]["resident"] > 0
    assert "WARN" not in said.upper(), "no watch broke"


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("go"), reason="Go is not on PATH")
def test_a_bare_extender_in_go_is_asked_the_same_beside_ours() -> None:
    report, _ = run("--beside-go")
    for part in ("quiet", "events"):
        for call in ("filter", "prioritize"):
            sides = report[part][call]["beside_go"]
            assert all(sides[side]["max"] >= sides[side]["p50"] > 0 for side in ("ours", "go"))


def run(*more: str) -> tuple[dict[str, Any], str]:
    """The report of a small run, and all else that it said."""
    arguments = ["--nodes", "50", "--requests", "5", "--rate", "100", *more]
    command = [sys.executable, "-m", "tests.bench.extender", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1]), done.stderr
