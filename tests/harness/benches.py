"""A bench played small, in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def report(bench: str, *arguments: str, seconds: float = 280) -> Any:
    """What a bench states, which is all of its output; fails with what it says where it does not end well."""
    command = [sys.executable, "-m", f"tests.bench.{bench}", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
