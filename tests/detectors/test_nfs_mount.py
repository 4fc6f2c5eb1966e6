"""nfs_mount: what hangs or is stale while its server answers is told of; what hangs with its server is not."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nfs_mount import NULL_DEADLINE, TABLE, MountState, compare, decide, judge, key, remember, statfs

from nodelib.contract.npd import Verdict
from nodelib.host.child_process import ChildAnswer, is_alive, start_time
from nodelib.net.nfs import Counters, NfsMount, NfsTarget
from tests.detectors.node import DETECTORS
from tests.detectors.null_server import NullServer, dead_port
from tests.detectors.proc_tree import ProcTree

pytestmark = pytest.mark.sampled("nfs mount")

OK, FAULT, UNKNOWN = 0, 1, 2
DATA = NfsMount("0:52", "/data", "files:/data", NfsTarget("10.0.0.5"), 4)
HOME = NfsMount("0:53", "/home", "files:/home", NfsTarget("10.0.0.6"), 4)
FINE, STALE = MountState("fine"), MountState("stale", "ESTALE")


def stuck(server="answers", moved="stand"):
    return MountState("stuck", "", server, moved)


CASES = {
    "every mount answers": ({DATA: FINE, HOME: FINE}, OK, "every NFS mount answers"),
    "nothing mounted": ({}, OK, "nothing is mounted from NFS"),
    "stale": ({DATA: STALE, HOME: FINE}, FAULT, "NFS mount /data of files:/data is stale (ESTALE)"),
    "stuck for two runs": ({DATA: stuck()}, FAULT, "NFS mount /data of files:/data hangs though its server answers"),
    "stuck for the first time": ({DATA: stuck(moved="first")}, UNKNOWN, "hangs though its server answers (seen once)"),
    "stuck, but operations end": ({DATA: stuck(moved="move")}, OK, "every NFS mount answers"),
    "stuck, operations end and time out": ({DATA: stuck(moved="time out")}, UNKNOWN, "is slow and requests time out"),
    "stuck, counters unreadable": ({DATA: stuck(moved="unreadable")}, UNKNOWN, "its counters cannot be read"),
    "stuck with its server": ({DATA: stuck("silent")}, UNKNOWN, "hangs: its server 10.0.0.5 does not answer"),
    "stuck, server unclear": ({DATA: stuck("unclear")}, UNKNOWN, "hangs, and its server 10.0.0.5 cannot be asked"),
    "soft mount, server silent": (
        {DATA: MountState("failed", "EIO", "silent", "first")},
        UNKNOWN,
        "NFS mount /data of files:/data fails (EIO): its server 10.0.0.5 does not answer",
    ),
    "server refuses": (
        {DATA: MountState("failed", "EACCES", "answers", "first")},
        UNKNOWN,
        "look at its server 10.0.0.5",
    ),
    "not asked": (
        {DATA: MountState("unclear", "a probe of another run is still under way")},
        UNKNOWN,
        "still under way",
    ),
    "a fault outranks a doubt": (
        {DATA: stuck("silent"), HOME: STALE},
        FAULT,
        "NFS mount /home of files:/home is stale",
    ),
    "a doubt outranks health": ({DATA: stuck("silent"), HOME: FINE}, UNKNOWN, "/data"),
    "two faults, in order": (
        {HOME: STALE, DATA: stuck()},
        FAULT,
        "NFS mount /data of files:/data hangs though its server answers; "
        "NFS mount /home of files:/home is stale (ESTALE)",
    ),
}


@pytest.mark.parametrize(("sights", "verdict", "words"), CASES.values(), ids=CASES.keys())
def test_what_is_seen_becomes_a_verdict(sights, verdict, words):
    found, line = judge(sights, garbled=0)
    assert found == verdict
    assert words in line


def test_the_table_is_total_and_every_row_of_it_decides_something():
    ill = itertools.product(("failed", "stuck"), ("answers", "silent", "unclear"), compare_words())
    sights = [MountState(*one) for one in (("fine",), ("stale",), ("unclear",))]
    sights += [MountState(statfs, "", server, moved) for statfs, server, moved in ill]
    said = {decide(sight)[1] for sight in sights}
    assert said == {words for _, _, words in TABLE}


def compare_words():
    return ("first", "stand", "move", "time out", "unreadable")


def test_a_mount_is_at_fault_only_by_a_stale_handle_or_by_a_hang_that_nothing_else_explains():
    faults = {pattern for pattern, verdict, _ in TABLE if verdict is Verdict.FAULT}
    assert faults == {("stale", "*", "*"), ("stuck", "answers", "stand")}


COUNTERS = {
    "not stuck before": (None, Counters(5, 500, 0), "first"),
    "nothing moved": ([5, 500, 0], Counters(5, 500, 0), "stand"),
    "only timeouts": ([5, 500, 0], Counters(5, 500, 9), "stand"),
    "our own killed request was counted": ([5, 500, 0], Counters(6, 500, 0), "stand"),
    "only errors came back": ([5, 500, 0], Counters(5, 700, 0), "stand"),
    "operations ended": ([5, 500, 0], Counters(6, 600, 0), "move"),
    "operations ended and timed out": ([5, 500, 0], Counters(6, 600, 1), "time out"),
    "none now": ([5, 500, 0], None, "unreadable"),
    "none before": ([], Counters(5, 500, 0), "unreadable"),
    "nonsense before": (["x", 1, 2], Counters(5, 500, 0), "unreadable"),
    "another kind of nonsense": (7, Counters(5, 500, 0), "unreadable"),
}


@pytest.mark.parametrize(("before", "now", "word"), COUNTERS.values(), ids=COUNTERS.keys())
def test_counters_tell_slow_from_dead(before, now, word):
    assert compare(before, now) == word


ANSWERS = {
    "fine": (ChildAnswer({"errno": 0, "done": True}), FINE),
    "stale": (ChildAnswer({"errno": 116, "done": True}), STALE),
    "hung": (ChildAnswer({}, silent_since="2026-01-01T00:00Z"), MountState("stuck")),
    "an error of the server": (ChildAnswer({"errno": 5, "done": True}), MountState("failed", "EIO")),
    "an error without a name": (ChildAnswer({"errno": 4000, "done": True}), MountState("failed", "error 4000")),
    "unmounted meanwhile": (ChildAnswer({"errno": 2, "done": True}), MountState("unclear", "ENOENT")),
    "the probe died": (
        ChildAnswer({}, why="the probe ended early (-9)"),
        MountState("unclear", "the probe ended early (-9)"),
    ),
    "the program was killed": (ChildAnswer({"errno": -9, "done": True}), MountState("unclear", "the probe was killed")),
    "nonsense": (ChildAnswer({"errno": "x", "done": True}), MountState("unclear", "the probe was killed")),
}


@pytest.mark.parametrize(("answer", "sight"), ANSWERS.values(), ids=ANSWERS.keys())
def test_the_childs_answer_is_read(answer, sight):
    assert statfs(answer) == sight


def test_a_hang_counts_towards_the_second_run_only_while_the_server_answered():
    counted = stuck(moved="first")._replace(counters=Counters(5, 500, 0))
    assert remember({DATA: counted, HOME: stuck("silent", "first")}) == {key(DATA): [5, 500, 0]}


# The program.


@pytest.fixture
def server():
    server = NullServer()
    yield server
    server.close()


class Node(ProcTree):
    """A node with one mount, and a program that stands for statvfs: a shell script whose text is `probe`."""

    def __init__(self, root, port):
        super().__init__(root)
        self.options = f"vers=4.2,hard,proto=tcp,port={port},addr=127.0.0.1"
        self.port = port
        self.mount("/data", "files:/data", self.options)
        self.probe("exit 0")

    def probe(self, text):
        path = self.write("statfs", f"#!/bin/sh\necho $$ $* >>{self.root}/probes\n{text}\n")
        path.chmod(0o755)
        self.program = f"--statfs={path}"

    def probes(self):
        return [line.split() for line in (self.root / "probes").read_text().splitlines()]

    def look(self, *options):
        return self.run("nfs_mount", self.program, *options)


@pytest.fixture
def node(tmp_path, server):
    return Node(tmp_path, server.port)


HANGS = "exec sleep 60"


def test_mounts_that_answer_are_fine_and_the_program_gets_the_mount_point(node, server):
    assert node.look("--now=12.5")[:2] == (OK, "every NFS mount answers")
    assert [words[1:] for words in node.probes()] == [["/data"]]
    assert json.loads((node.state / "marks/nfs_mount.json").read_text())["finished_at"] == 12.5
    assert server.calls == [], "a server is asked only when a mount does not answer"


def test_a_stale_mount_is_a_fault_at_once_with_evidence_until_it_is_well(node):
    node.probe("exit 116")
    line = "NFS mount /data of files:/data is stale (ESTALE)"
    assert node.look()[:2] == (FAULT, line)
    path = node.state / "evidence/nfs_mount.json"
    kept = json.loads(path.read_text())
    assert (kept["line"], kept["mounts"][0]["mount"]) == (line, "/data")
    assert len(path.read_bytes()) < 4096
    node.probe("exit 0")
    assert node.look().code == OK
    assert not path.exists()


def test_a_hang_with_an_answering_server_is_a_fault_in_the_second_run(node):
    node.probe(HANGS)
    started = time.monotonic()
    first = node.look("--deadline=0.4")
    assert time.monotonic() - started < 8
    assert first[:2] == (UNKNOWN, "NFS mount /data of files:/data hangs though its server answers (seen once)")
    second = node.look("--deadline=0.4")
    assert second[:2] == (FAULT, "NFS mount /data of files:/data hangs though its server answers")
    node.probe("exit 0")
    assert node.look().code == OK
    node.probe(HANGS)
    assert node.look("--deadline=0.4").code == UNKNOWN, "two runs in a row, not two in all"


def test_a_mount_on_which_operations_end_is_slow_and_not_dead(node):
    node.probe(HANGS)
    node.look("--deadline=0.4")
    node.count("/data", "files:/data", done=50)
    assert node.look("--deadline=0.4").code == OK
    node.count("/data", "files:/data", done=50, errors=3, timeouts=3)
    assert node.look("--deadline=0.4").code == FAULT


def test_a_hang_with_a_dead_server_is_cannot_tell_for_ever_and_names_the_server(tmp_path):
    node = Node(tmp_path, port := dead_port())
    node.probe(HANGS)
    line = f"NFS mount /data of files:/data hangs: its server 127.0.0.1:{port} does not answer"
    for _ in range(3):
        assert node.look("--deadline=0.3")[:2] == (UNKNOWN, line)
    server = NullServer()
    try:
        node.mountinfo[-1] = node.mountinfo[-1].replace(str(port), str(server.port))
        node.write_mounts()
        assert node.look("--deadline=0.3").code == UNKNOWN, "a server that is just back is given a run"
    finally:
        server.close()


def test_without_counters_a_hang_is_cannot_tell(node):
    node.probe(HANGS)
    node.write("proc/1/mountstats", "")
    for _ in range(2):
        ran = node.look("--deadline=0.3")
    assert ran.code == UNKNOWN
    assert "counters cannot be read" in ran.line


def test_one_stuck_mount_hides_no_other_and_all_take_one_deadline(node):
    node.mount("/home", "files:/home", node.options, device="0:53")
    for index in range(6):
        node.mount(f"/more{index}", f"files:/more{index}", node.options, device=f"0:{60 + index}")
    node.probe(f"[ $1 = /home ] && exit 116; {HANGS}")
    started = time.monotonic()
    ran = node.look("--deadline=3")
    assert time.monotonic() - started < 12
    assert ran[:2] == (FAULT, "NFS mount /home of files:/home is stale (ESTALE)")
    assert len(node.probes()) == 8


def test_a_probe_that_ignores_sigterm_is_killed_and_leaves_no_pipe_of_ours_open(node):
    node.probe("trap '' TERM; sleep 60 & wait; sleep 60")
    started = time.monotonic()
    assert node.look("--deadline=2").code == UNKNOWN  # subprocess.run returns when both of its pipes are closed
    assert time.monotonic() - started < 15
    [[pid, _]] = node.probes()
    until = time.monotonic() + 10
    while is_alive(int(pid), start_time(int(pid))) and time.monotonic() < until:
        time.sleep(0.02)
    assert not is_alive(int(pid), start_time(int(pid)))


def test_while_an_abandoned_probe_lives_no_second_one_is_started(node):
    stuck = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        record = {"pid": stuck.pid, "start": start_time(stuck.pid), "since": "2026-01-01T00:00Z", "hung": True}
        node.write(f"state/nfs_mount/{key(DATA)}.probe.json", json.dumps(record))
        assert node.look().code == UNKNOWN
        assert node.look().code == FAULT
        assert not (node.root / "probes").exists(), "a second probe was started"
    finally:
        stuck.kill()
        stuck.wait()
    assert node.look().code == OK
    assert len(node.probes()) == 1


def test_a_run_beside_another_starts_no_second_probe(node):
    node.probe(HANGS)
    first = subprocess.Popen(node.command("nfs_mount", node.program, "--deadline=30"), stdout=subprocess.DEVNULL)
    until = time.monotonic() + 20
    while not (node.root / "probes").exists() and time.monotonic() < until:
        time.sleep(0.02)
    try:
        ran = node.look("--deadline=30")
        assert ran.code == UNKNOWN
        assert "still under way" in ran.line
        [[pid, _]] = node.probes()
    finally:
        first.kill()
        first.wait()
    os.killpg(os.getpgid(int(pid)), signal.SIGKILL)


def test_files_of_mounts_that_are_gone_are_dropped(node):
    node.look()
    assert len(list((node.state / "nfs_mount").iterdir())) == 1
    del node.mountinfo[-1]
    node.write_mounts()
    assert node.look()[:2] == (OK, "nothing is mounted from NFS")
    assert list((node.state / "nfs_mount").iterdir()) == []


def test_its_own_child_asks_the_path_as_process_1_sees_it(node):
    assert node.run("nfs_mount")[:2] == (OK, "every NFS mount answers")
    (node.proc / "1/root/data").rmdir()
    ran = node.run("nfs_mount")
    assert ran[:2] == (UNKNOWN, "NFS mount /data of files:/data could not be asked: ENOENT")


def test_a_program_that_is_not_there_is_cannot_tell(node):
    assert node.run("nfs_mount", "--statfs=/nowhere").code == UNKNOWN


@pytest.mark.parametrize("text", ["", "[", '{"stuck": 3, "boot_id": "one"}', '{"stuck": {"x": 1}, "boot_id": "one"}'])
def test_a_state_file_that_makes_no_sense_is_overcome(node, text):
    node.write("state/nfs_mount.json", text)
    assert node.look().code == OK


def test_no_mountinfo_is_cannot_tell_with_its_cause(node):
    (node.proc / "1/mountinfo").unlink()
    ran = node.look()
    assert ran.code == UNKNOWN
    assert ran.line.startswith("FileNotFoundError: ")


def test_explain_shows_each_mount_and_leaves_no_mark(node):
    ran = node.look("--explain")
    assert f"/data: files:/data, server 127.0.0.1:{node.port}: " in ran.line
    assert not (node.state / "marks").exists()


def test_node_problem_detector_waits_longer_than_mount_child_and_server_take():
    rule = json.loads((DETECTORS.parent / "deploy/npd/nfs-mount.json").read_text())["rules"][0]
    [deadline] = [float(one.partition("=")[2]) for one in rule["args"] if one.startswith("--deadline=")]
    assert deadline + 5.2 + NULL_DEADLINE < float(rule["timeout"].removesuffix("s"))


@given(answer=st.dictionaries(st.sampled_from(["errno", "done"]), st.none() | st.integers() | st.text(max_size=3)))
def test_a_childs_garbage_is_never_health(answer):
    sight = statfs(ChildAnswer(answer))
    assert sight.statfs != "fine" or answer["errno"] == 0
