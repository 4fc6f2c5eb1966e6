"""The benchmark at full size still measures; how fast anything was is for its report, never for a test."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_benchmark_states_every_number_of_a_small_run() -> None:
    command = [sys.executable, "-m", "tests.bench.scale", "--nodes", "40", "--grouped"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    (report,) = json.loads(done.stdout.splitlines()[-1])
    lines = report["lines"]
    assert (report["nodes"], len(lines)) == (40, 9)
    for name, line in lines.items():
        assert line["cpu_ms"] >= line["stall_ms"] > 0, name
        assert line["turns"] > 1, name
    assert {"a sweep", "an admission pass", "a policy edit", "a lease won"} < set(lines)
