"""All detectors of a node ask NVML through one child: who comes first starts it, who comes later waits for it."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from nodelib.host.child_process import SETTLE, _take
from nodelib.nvml.client import CHILD
from tests.detectors.node import Node

pytestmark = pytest.mark.sampled("nvml shared")

OK, FAULT, UNKNOWN = 0, 1, 2
FRESH = "--fresh=20"
HELD_SINCE = "2026-01-01T00:00Z"

# A process that holds the lock as a child does, until it is told to answer or is killed.
HOLDER = """
import fcntl, os, sys
lock = open(sys.argv[1], "a")
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
said = sys.stdin.readline()
if said:
    with open(sys.argv[2] + ".new", "w") as draft:
        draft.write(said)
    os.replace(sys.argv[2] + ".new", sys.argv[2])
"""


@pytest.fixture
def node(tmp_path, nvml_library):
    """A healthy node of eight GPUs."""
    return Node(tmp_path, nvml_library, gpus=8)


def starts(node):
    """Return how many children have asked NVML so far."""
    return node.calls().count("init -1")


def since_boot():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def wait_for(condition, seconds=20.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "not in time"
        time.sleep(0.02)


def start(node, detector, *options):
    """Start a detector as node-problem-detector would, and do not wait for it."""
    node.detector = detector
    return subprocess.Popen(
        node.command(*options), env=node.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def end(process):
    """Return exit code and line."""
    out, err = process.communicate(timeout=60)
    assert err == ""
    return process.returncode, out.strip()


def run(node, detector, *options):
    return end(start(node, detector, *options))


def let_wait(process):
    """Wait until a detector takes the lock's holder for the child of another, and not for one who only looks."""
    wait_for(lambda: any(name.endswith("/nvml.lock") for name in open_files(process.pid)))
    with pytest.raises(subprocess.TimeoutExpired):
        process.communicate(timeout=2 * SETTLE)


def open_files(pid):
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # it was closed meanwhile
            yield str(file.readlink())


def good_answer(node):
    """Return what a child says of the healthy node, asked anew."""
    assert run(node, "gpu_ecc")[0] == OK
    return json.loads((node.state / "nvml.answer.json").read_text())


@contextmanager
def held(node, **record):
    """Let another process hold the lock, with this record of it."""
    node.state.mkdir(exist_ok=True)
    (node.state / "nvml.probe.json").write_text(json.dumps(record))
    paths = [str(node.state / name) for name in ("nvml.lock", "nvml.answer.json")]
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, *paths], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        yield holder
    finally:
        holder.kill()
        holder.wait()
        holder.stdin.close()
        holder.stdout.close()


def test_detectors_that_are_started_at_once_start_one_child(node):
    all_of_them = [start(node, name, FRESH) for name in ("gpu_lost", "gpu_ecc", "gpu_recovery") for _ in range(2)]
    assert [end(process)[0] for process in all_of_them] == [OK] * 6
    assert starts(node) == 1
    assert not (node.state / "nvml.probe.json").exists()


def test_an_answer_that_another_detector_got_just_now_is_taken(node):
    run(node, "gpu_lost", FRESH)
    node.orders("gpu 3 remapped 0,1,1,0")
    assert run(node, "gpu_ecc", FRESH)[0] == OK, "it was asked anew"
    assert run(node, "gpu_ecc", "--fresh=0")[0] == FAULT
    assert run(node, "gpu_ecc", FRESH)[0] == FAULT
    assert starts(node) == 2


STALE = {
    "an answer that is too old": {"asked_at": -21.0},
    "an answer from the future": {"asked_at": 5.0},
    "an answer of another boot": {"boot": "another"},
    "an answer that is not done": {"done": False},
    "an answer that does not say when": {"asked_at": None},
}


@pytest.mark.parametrize("change", STALE.values(), ids=STALE.keys())
def test_what_is_not_fresh_is_asked_anew(node, change):
    said = {**good_answer(node), **change}
    if change.get("asked_at"):
        said["asked_at"] = since_boot() + change["asked_at"]
    (node.state / "nvml.answer.json").write_text(json.dumps(said))
    before = starts(node)
    assert run(node, "gpu_ecc", FRESH)[0] == OK
    assert starts(node) == before + 1


@pytest.mark.parametrize(("fresh", "took"), [(FRESH, 1.0), (FRESH, 60.0), ("--fresh=0", 1.0)])
def test_a_child_under_way_is_waited_for_however_long_it_takes(node, fresh, took):
    said = good_answer(node)
    said["gpus"][3]["facts"]["row remap"]["pending"] = 1
    before = starts(node)
    with held(node, asked_at=since_boot(), since=HELD_SINCE) as holder:
        waiting = start(node, "gpu_ecc", fresh, "--deadline=30")
        let_wait(waiting)
        answer = {**said, "asked_at": since_boot() - took, "answered_at": since_boot()}
        holder.communicate(json.dumps(answer).encode() + b"\n", timeout=20)
        code, line = end(waiting)
    assert code == FAULT
    assert line.startswith("row remap pending (reset): ")
    assert starts(node) == before


def test_a_child_that_ended_early_while_it_was_waited_for_is_a_doubt(node):
    with held(node, asked_at=since_boot(), since=HELD_SINCE) as holder:
        waiting = start(node, "gpu_lost", FRESH, "--deadline=30")
        let_wait(waiting)
        holder.kill()
        assert end(waiting) == (UNKNOWN, "NVML cannot be asked: the probe of another detector ended early")


@pytest.mark.parametrize(
    ("detector", "code"), [("nvml_hung", FAULT), ("gpu_lost", UNKNOWN), ("gpu_ecc", UNKNOWN), ("gpu_recovery", UNKNOWN)]
)
def test_while_a_child_that_was_left_behind_lives_no_second_one_is_started(node, detector, code):
    with held(node, asked_at=since_boot() - 100, since=HELD_SINCE, hung=True):
        began = time.monotonic()
        ran = run(node, detector)
        assert time.monotonic() - began < 10, "a hang that is known need not be waited for"
    assert ran[0] == code
    assert HELD_SINCE in ran[1]
    assert node.calls() == []
    assert run(node, detector)[0] == OK, "it has ended"


def test_a_detector_that_is_killed_leaves_a_child_that_the_next_one_knows(node):
    node.orders("hang init")
    killed = start(node, "gpu_lost", "--deadline=30")
    record = node.state / "nvml.probe.json"
    wait_for(lambda: starts(node) == 1 and "pid" in record.read_text())
    killed.kill()
    killed.communicate()
    child = json.loads(record.read_text())
    try:
        code, line = run(node, "gpu_lost", "--deadline=1.5")
        assert (code, line) == (UNKNOWN, f"NvmlHung: no answer since {child['since']} at init")
        assert starts(node) == 1
        assert json.loads(record.read_text())["hung"] is True
    finally:
        os.kill(child["pid"], signal.SIGKILL)


def test_a_detector_killed_before_it_could_say_whom_it_started_leaves_no_room_for_a_second_child(node):
    with held(node):
        code, line = run(node, "gpu_lost", "--deadline=1.2")
    assert code == UNKNOWN
    assert line.startswith("NvmlHung: no answer since ")
    assert node.calls() == []


def test_nobodys_shorter_deadline_makes_a_gpu_lost(node):
    node.orders("hang handle 3")
    short = start(node, "gpu_ecc", FRESH, "--deadline=6")
    wait_for(lambda: starts(node) == 1)
    code, line = run(node, "gpu_lost", FRESH, "--deadline=40")
    assert end(short)[0] == UNKNOWN
    assert (code, line) == (
        UNKNOWN,
        "NVML cannot be asked: the probe was given up early by a detector with a shorter --deadline",
    )


def test_the_record_of_an_earlier_hang_is_not_held_against_who_starts_the_next_child(tmp_path):
    (tmp_path / "record").write_text(json.dumps({"asked_at": since_boot() - 100, "hung": True}))
    with (tmp_path / "lock").open("a") as starting, (tmp_path / "lock").open("a") as waiting:
        fcntl.flock(starting, fcntl.LOCK_EX)
        release = threading.Timer(SETTLE / 4, fcntl.flock, (starting, fcntl.LOCK_UN))
        release.start()
        taken, waited = _take(waiting.fileno(), tmp_path / "record", 30.0)
        release.join()
    assert taken, waited


def test_a_child_whose_starter_is_gone_ends_itself(node):
    node.orders("hang init")
    node.state.mkdir()
    command = [sys.executable, "-E", "-s", "-S", "-B", str(CHILD), "--limit=3"]
    child = subprocess.Popen([*command, str(node.state / "nvml.answer.json")], env=node.environment())
    assert child.wait(timeout=20) == -signal.SIGALRM
    assert starts(node) == 1


def test_a_hang_in_a_question_keeps_who_every_gpu_is(node):
    node.orders("gpu 5 error 15", "hang sram 3")
    code, line = run(node, "gpu_lost", "--deadline=5")
    assert code == FAULT
    assert line == "NVML at GPU index 5: GPU is lost (code 15)", "the fault of a GPU outranks the hang"
    code, line = run(node, "nvml_hung", "--deadline=5")
    assert code == FAULT
    assert line.endswith(" at GPU index 3, SRAM")


def test_a_driver_that_does_not_know_a_function_refuses_that_question_only(node):
    node.orders("gpu 3 sram error:13")
    second, third = good_answer(node)["gpus"][2:4]
    assert {**second["refused"], "SRAM": 13} == third["refused"]
    assert third["facts"]["row remap"]["pending"] == 0
