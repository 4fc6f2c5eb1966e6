"""Detectors that are started in the same instant take turns: never many at a time, and nobody waits for long."""

import ast
import fcntl
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from nodelib.contract.detector import parser
from nodelib.state.slots import STATE, TURNS, state_folder
from tests.detectors.node import DETECTORS

SECONDS, SOON = 30.0, 5.0
# argv: nodelib's parent, patience, its own options. Tells when it comes and how long it waited; stdin's end is its own.
WORKER = """
import sys, time
sys.path.insert(0, sys.argv.pop(1))
from nodelib.state import slots
slots.PATIENCE = float(sys.argv.pop(1))
print("came", flush=True)
begun = time.monotonic()
slots.take()
print(time.monotonic() - begun, flush=True)
sys.stdin.read()
"""
# argv: nodelib's parent, --state, ask or share. Asks a child for something while it has a turn; nothing is answered.
PARENT = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from nodelib.state import slots
slots.take()
from pathlib import Path
from nodelib.host import child_process
more = {"boot": "one", "fresh": 0.0} if sys.argv[2] == "share" else {}
code = "import signal, sys; open(sys.argv[1] + '.ready', 'w').close(); signal.pause()"
command = [sys.executable, "-I", "-S", "-c", code]
getattr(child_process, sys.argv[2])(command, Path(sys.argv[1].removeprefix("--state=")), "child", 60.0, **more)
"""


class Worker:
    """A process that takes a turn."""

    def __init__(self, state, *options, patience=SECONDS):
        words = [WORKER, str(DETECTORS.parent), str(patience), f"--state={state}", *options]
        command = [sys.executable, "-I", "-S", "-B", "-c", *words]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self.process.stdout.readline() == b"came\n"
        os.set_blocking(self.process.stdout.fileno(), False)
        self._told = b""

    @property
    def works(self):
        self._told = self._told or self.process.stdout.read() or b""
        return bool(self._told)

    def waited(self):
        """How long it waited for its turn; waits until it has one."""
        wait_for(lambda: self.works)
        return float(self._told)

    def pauses(self):
        """How often it has gone to sleep so far."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])

    def end(self, number=signal.SIGTERM):
        """End it."""
        self.process.send_signal(number)
        self.process.communicate(timeout=SECONDS)


def wait_for(condition):
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


@contextmanager
def workers(state, count, *options, **more):
    """So many workers, all of which have come."""
    found = []
    try:
        for _ in range(count):
            found.append(Worker(state, *options, **more))
        yield found
    finally:
        for worker in found:
            worker.end(signal.SIGKILL)


def held(state):
    """How many turns somebody holds."""
    return sum(map(is_locked, (state / "turns").iterdir()))


def is_locked(path):
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def all_turns_held(state):
    """By somebody who hangs."""
    (state / "turns").mkdir(parents=True)
    files = [(state / f"turns/{number}").open("w") for number in range(TURNS)]
    for file in files:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        yield
    finally:
        for file in files:
            file.close()


@pytest.mark.slow
def test_no_more_than_four_of_twelve_work_at_the_same_time_and_each_has_its_turn(tmp_path):
    assert TURNS == 4
    with workers(tmp_path, 12) as found:
        waiting, worked = list(found), []
        while waiting:
            wait_for(lambda: sum(worker.works for worker in found) == len(worked) + TURNS)
            waiting = [worker for worker in found if not worker.works]
            for worker in waiting:
                before = worker.pauses()
                wait_for(lambda worker=worker, before=before: worker.pauses() >= before + 3)
            working = [worker for worker in found if worker.works and worker not in worked]
            assert (len(working), held(tmp_path)) == (TURNS, TURNS)
            working[0].end()
            worked.append(working[0])
        assert len(worked) == 12 - TURNS + 1
    assert held(tmp_path) == 0


@pytest.mark.parametrize("patience", [0.0, 0.4])
def test_who_waits_goes_on_without_a_turn_where_those_that_hang_keep_all(tmp_path, patience):
    with all_turns_held(tmp_path), workers(tmp_path, 2, patience=patience) as found:
        assert all(patience <= worker.waited() < patience + SOON for worker in found)


def test_a_turn_ends_with_its_process_however_that_ends(tmp_path):
    with workers(tmp_path, TURNS) as found, workers(tmp_path, 1) as [last]:
        wait_for(lambda: held(tmp_path) == TURNS)
        assert not last.works
        found[3].end(signal.SIGKILL)
        assert last.waited() < SECONDS
        assert held(tmp_path) == TURNS


@pytest.mark.parametrize("state", ["/proc/none", "/dev/null/below", "/dev/null"])
def test_a_folder_that_cannot_be_written_stops_nobody(state):
    with workers(state, 1) as [worker]:
        assert worker.waited() < SOON


def test_a_turn_that_cannot_be_opened_stops_nobody(tmp_path):
    (tmp_path / "turns/0").mkdir(parents=True)
    with workers(tmp_path, 1) as [worker]:
        assert worker.waited() < SOON


@pytest.mark.parametrize("option", ["-h", "--help", "--explain"])
def test_by_hand_nobody_waits_and_nobody_is_kept_waiting(tmp_path, option):
    with all_turns_held(tmp_path), workers(tmp_path, 1, option) as [worker]:
        assert worker.waited() < SOON
    with workers(tmp_path, 1, option) as [worker]:
        worker.waited()
        assert held(tmp_path) == 0


@pytest.mark.parametrize("way", ["ask", "share"])
def test_a_child_that_is_left_behind_holds_no_turn(tmp_path, way):
    command = [sys.executable, "-I", "-S", "-B", "-c", PARENT, str(DETECTORS.parent), f"--state={tmp_path}", way]
    parent = subprocess.Popen(command)
    pids = []
    try:
        wait_for((tmp_path / "child.answer.json.ready").exists)
        pids = children(parent.pid)
        assert len(pids) == 1
        assert held(tmp_path) == 1, "its parent's"
        parent.kill()
        parent.wait(SECONDS)
        files = [str(file.readlink()) for file in Path(f"/proc/{pids[0]}/fd").iterdir()]
        assert held(tmp_path) == 0
        assert not [file for file in files if "/turns/" in file]
        assert (str(tmp_path / "child.lock") in files) == (way == "share"), "this one it does inherit"
    finally:
        parent.kill()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


def children(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize(
    "words",
    [[], ["--state=/a/b"], ["--state", "/a/b"], ["--state=/a", "--state", "/b"], ["--now", "1", "--state=/a=b"]],
)
def test_turns_are_taken_in_the_folder_that_the_detector_is_told(words):
    assert state_folder(words) == str(parser("").parse_args(words).state)
    assert state_folder([]) == STATE


def test_nonsense_in_place_of_a_folder_is_left_to_the_parser():
    assert state_folder(["--state"]) == state_folder(["--state="]) == STATE


@pytest.mark.parametrize("path", sorted(DETECTORS.glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_each_detector_takes_its_turn_before_it_imports_what_costs_memory(path):
    imported = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.If):
            assert ast.unparse(node).splitlines()[1].strip() == "slots.take()"
            break
        if isinstance(node, ast.Import | ast.ImportFrom):
            imported |= {alias.name for alias in node.names}
    assert imported == {"os.path", "sys", "slots"}
