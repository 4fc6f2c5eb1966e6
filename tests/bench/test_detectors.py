"""What the benchmark of the detectors counts: every process below one, once, and what they hold."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bench.detectors import GPU_DETECTORS, SHIPPED, arguments, children_seconds, descendants, shared_memory
from tests.detectors.node import Node

# Starts a child that starts a child; all of them wait for the end of their input.
CHILD = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()']); print(flush=True); input()"
GRANDPARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}])"


def test_children_and_their_children_are_counted_once_and_one_that_is_no_other_program_yet_holds_nothing() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", GRANDPARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        below = list(descendants(process.pid))
        assert len(below) == len(set(below)) == 2
        assert process.pid not in below
        assert shared_memory(process.pid) == (0, 0), "all run the program that their parent runs"
        os.killpg(process.pid, signal.SIGKILL)


def test_memory_of_another_program_is_counted() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        until = time.monotonic() + 10
        count = held = 0
        while held <= 50_000 and time.monotonic() < until:  # it has little just after it became another program
            count, held = shared_memory(os.getpid())
        process.kill()
    assert count == 1
    assert held > 50_000


@pytest.mark.slow
def test_time_of_children_that_have_ended_is_counted() -> None:
    before = children_seconds(os.getpid())
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True)
    assert 0.25 < children_seconds(os.getpid()) - before < 5


def test_detectors_of_gpus_are_shown_files_and_the_others_this_machine(tmp_path: Path) -> None:
    node = Node(tmp_path)
    names = {json.loads(path.read_text())["rules"][0]["args"][0] for path in SHIPPED}
    assert names > GPU_DETECTORS
    assert f"--proc={tmp_path / 'proc'}" in arguments("gpu_lost", ["--deadline=85", "--dev=/host/dev"], node)
    assert arguments("dns", ["--deadline=6"], node) == ["--deadline=6", f"--state={tmp_path / 'state'}"]
