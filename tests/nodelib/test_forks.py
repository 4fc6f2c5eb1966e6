"""One process does the runs of all detectors: each as if it had been started itself, and none hinders another."""

import _socket
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from nodelib.forks import ask, wire
from nodelib.state.slots import SHARES, TURNS
from tests.detectors.node import DETECTORS
from tests.harness import node_programs

SECONDS, PATIENCE = 60.0, 0.3
PATIENT = ("SOON, LATEST = 4.0, 8.0", "SOON, LATEST = 60.0, 60.0")
HASTY = "SOON, LATEST = 0.5, 60.0"
# A detector that tells who runs it and how, or does what its last option says.
PROGRAM = """
import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()

import json
import os
import signal
import textwrap
from pathlib import Path

WORD = "one"


def tell():
    descriptors = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    print(json.dumps({
        "pid": os.getpid(), "parent": os.getppid(), "group": os.getpgrp(), "options": sys.argv[1:], "word": WORD,
        "folder": os.getcwd(), "setting": os.environ.get("SETTING"), "module": __name__, "file": __file__,
        "in_fork": slots.in_fork, "stdin": os.readlink("/proc/self/fd/0"), "most": descriptors[-2],
        "nice": os.getpriority(os.PRIO_PROCESS, 0), "path": sys.path, "known": textwrap.__name__,
        "flags": [sys.flags.isolated, sys.flags.no_site],
    }))


if __name__ == "__main__":
    Path(sys.argv[2], str(os.getpid())).touch()
    match sys.argv[3]:
        case "tell":
            tell()
        case "hang":
            signal.pause()
        case "fail":
            raise ValueError("some cause")
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "end":
            print("a line", flush=True)
            print("more", file=sys.stderr)
            sys.exit(int(sys.argv[4]))
"""


@pytest.fixture
def node(tmp_path):
    """A checkout with that detector, less patient, and a state folder."""
    made = Copy(tmp_path)
    try:
        yield made
    finally:
        made.end()


class Copy:
    def __init__(self, root):
        self.root, self.state, self.ran = root / "copy", root / "state", root / "ran"
        for folder in (self.state, self.ran, self.root / "detectors"):
            folder.mkdir(parents=True)
        shutil.copytree(DETECTORS.parent / "nodelib", self.root / "nodelib")
        self.replace("state/slots.py", "PATIENCE, PAUSE = 3.0", f"PATIENCE, PAUSE = {PATIENCE}")
        self.replace("forks/ask.py", *PATIENT)
        self.program = self.root / "detectors/probe.py"
        self.program.write_text(PROGRAM)
        self._started = []

    def replace(self, name, before, after):
        path = self.root / "nodelib" / name
        assert before in path.read_text()
        path.write_text(path.read_text().replace(before, after))

    def start(self, *words, program=None, mark=True, **more):
        environment = {**os.environ, SHARES: "yes", "SETTING": "this"} | more.pop("env", {})
        command = [sys.executable, "-I", "-S", "-B", program or self.program, f"--state={self.state}"]
        command += [self.ran, *words] if mark else words
        started = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment, start_new_session=True, **more,
        )  # fmt: skip
        self._started.append(started)
        return started

    def run(self, *words, **more):
        started = self.start(*words, **more)
        out, err = started.communicate(timeout=SECONDS)
        return started.returncode, out, err

    def told(self, **more):
        """What the detector tells of itself."""
        code, out, err = self.run("tell", **more)
        assert (code, err) == (0, "")
        return json.loads(out)

    def runs(self):
        """The pids of all that have begun."""
        return {int(path.name) for path in self.ran.iterdir()}

    def servers(self):
        """The pids of shared processes of this node, their forks left out."""
        found = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal() and self._is_ours(path)]
        return {pid for pid in found if parent(pid) not in found}

    def _is_ours(self, path):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return f"--state={self.state}".encode() in words and any(word.endswith(b"/forks/serve.py") for word in words)

    def end(self):
        for started in self._started:
            started.kill()
            started.communicate()
        for pid in self.servers() | {pid for pid in self.runs() if is_there(pid)}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def parent(pid):
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def is_there(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def sleeps(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def wait_for(condition, seconds=SECONDS):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


@contextmanager
def hanging(node, count):
    """So many runs that hang."""
    before = len(node.runs())
    found = [node.start("hang") for _ in range(count)]
    wait_for(lambda: len(node.runs()) == before + count)
    yield found


def test_every_run_is_a_fork_of_the_same_process_and_sees_what_one_by_itself_would_see(node, tmp_path):
    first, second = node.told(cwd=tmp_path), node.told(cwd=tmp_path)
    [server] = node.servers()
    assert first["parent"] == second["parent"] == server
    assert first["pid"] != second["pid"]
    alone = node.told(cwd=tmp_path, env={SHARES: ""})
    assert (alone["in_fork"], first["in_fork"]) == (False, True)
    differ = {"pid", "parent", "group", "in_fork", "stdin", "most"}
    assert {name: first[name] for name in set(first) - differ} == {name: alone[name] for name in set(alone) - differ}
    assert first["group"] == first["pid"]
    assert first["stdin"] == "/dev/null"
    assert first["most"] <= 3, "it holds nothing but its three streams and the folder that it lists"


def test_what_node_problem_detector_starts_is_told_which_detector_and_becomes_it_where_nobody_shares(node):
    start = node.root / "nodelib/forks/start.py"
    words = ("probe", f"--state={node.state}", str(node.ran), "tell")
    found = []
    for shares, mode in (("yes", 0o700), ("", 0o700), ("yes", 0o777)):
        (node.state / "forks").mkdir(exist_ok=True)
        (node.state / "forks").chmod(mode)
        env = {**os.environ, SHARES: shares}
        done = subprocess.run([start, *words], capture_output=True, text=True, timeout=SECONDS, check=True, env=env)
        found.append(json.loads(done.stdout))
    assert [one["in_fork"] for one in found] == [True, False, False]
    assert [one["options"] for one in found] == [[*words[1:]]] * 3
    assert [one["flags"] for one in found] == [[1, 1]] * 3


def test_a_run_of_no_detector_is_unknown_with_a_line_since_1_would_be_a_fault(node):
    start = node.root / "nodelib/forks/start.py"
    for words in ([], ["no-such-detector"]):
        done = subprocess.run([start, *words], capture_output=True, text=True, timeout=SECONDS, check=False)
        assert (done.returncode, done.stdout.count("\n")) == (2, 1)
        assert done.stdout.startswith("this run did not begin (")


@pytest.mark.parametrize(
    ("last", "told"),
    [("OSError: caf\u00e9 %s", ": OSError"), ("a.b.Odd", ": a.b.Odd"), ("\x1b[31m%d", ""), ("caf\u00e9: x", "")],
)
def test_of_what_the_shared_process_said_last_the_line_has_the_kind_of_error_alone(node, last, told):
    """What follows may be no ASCII, a format, or another number each time."""
    (node.state / "forks").mkdir(mode=0o700)
    opened = wire.folder(str(node.state))
    log = wire.log(opened)
    os.write(log, f"Traceback\n{last}\n".encode())
    os.close(log)
    os.close(opened)
    assert ask._why(str(node.state), 0.0) == told


def test_output_and_exit_code_are_those_of_the_run(node):
    for code in (0, 1, 2, 143):
        assert node.run("end", str(code)) == (code, "a line\n", "more\n")
    assert len(node.servers()) == 1


def test_what_a_run_raises_is_unknown_and_what_a_signal_ends_is_unknown_with_a_line(node):
    code, out, err = node.run("fail")
    assert (code, out) == (2, "ValueError: some cause\n")
    assert "Traceback" in err
    assert node.run("die") == (2, f"{ask.LOST}\n", "")
    assert node.told()["parent"] in node.servers()


def test_each_detector_says_in_a_fork_what_it_says_by_itself_where_it_can_read_nothing(node, tmp_path):
    paths = sorted(DETECTORS.glob("[a-z]*.py"))
    roots = {path: known(path) for path in paths}
    alone = {}
    for path in paths:
        ran = node_programs.run([str(path), f"--state={tmp_path}/by-itself", *roots[path]])
        alone[path.stem] = (ran.code, ran.out)
    started = {path.stem: node.start(*roots[path], program=path, mark=False) for path in paths}
    shared = {name: (one.communicate(timeout=SECONDS)[0], one.returncode)[::-1] for name, one in started.items()}
    assert len(alone) == 40
    assert shared == {name: (code, out.replace("by-itself", "state")) for name, (code, out) in alone.items()}
    assert len(node.servers()) == 1
    assert not (node.state / "turns").exists(), "nobody has run by itself"


def known(path):
    """The options of a detector that name folders, with folders that are not there."""
    text = node_programs.run([str(path), "--help"]).out
    return [f"--{name}=/nowhere/{name}" for name in ("proc", "sys", "dev") if f"--{name} " in text]


def test_those_that_hang_hinder_no_other_and_not_for_long_even_where_they_keep_all_turns(node):
    with hanging(node, TURNS - 1):
        assert node.told()["in_fork"]
        with hanging(node, 3):
            begun = time.monotonic()
            assert node.told()["in_fork"]
            assert time.monotonic() - begun >= PATIENCE / 2, "it has waited for a turn"


def test_no_more_than_four_run_at_the_same_time_before_they_have_waited_for_too_long(node):
    node.replace("state/slots.py", f"PATIENCE, PAUSE = {PATIENCE}", "PATIENCE, PAUSE = 600.0")
    with hanging(node, TURNS) as found:
        waiting = [node.start("tell") for _ in range(3)]
        assert not any(one.poll() is not None for one in waiting)
        assert len(node.runs()) == TURNS
        found[0].kill()
        assert all(one.wait(SECONDS) == 0 for one in waiting)


def test_the_fork_of_who_is_killed_is_killed_too(node):
    with hanging(node, 1) as [asked]:
        [fork] = node.runs()
        assert parent(fork) in node.servers()
        os.killpg(asked.pid, signal.SIGKILL)
        wait_for(lambda: not is_there(fork))


def test_who_is_killed_before_its_turn_is_never_run(node):
    node.replace("state/slots.py", f"PATIENCE, PAUSE = {PATIENCE}", "PATIENCE, PAUSE = 600.0")
    with hanging(node, TURNS) as found:
        waiting = node.start("tell")
        [server] = node.servers()
        wait_for(lambda: connections(server) == TURNS + 1)
        waiting.kill()
        wait_for(lambda: connections(server) == TURNS)
        found[0].kill()
        assert node.told()["parent"] == server
        assert len(node.runs()) == TURNS + 1


def connections(server):
    """How many sockets a process has open besides the one at which it listens."""
    return len(sockets(server)) - 1


def sockets(pid):
    links = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(str(file.readlink()))
        except OSError:
            continue
    return {link for link in links if link.startswith("socket:")}


def test_a_run_ends_with_the_shared_process_and_is_unknown_and_the_next_has_another_process(node):
    with hanging(node, 1) as [asked]:
        [server], [fork] = node.servers(), node.runs()
        wait_for(lambda: sleeps(server))  # it has said that the run has begun
        os.kill(server, signal.SIGKILL)
        wait_for(lambda: not is_there(fork))
        assert (asked.wait(SECONDS), asked.stdout.read()) == (2, f"{ask.LOST}\n")
    told = node.told()
    assert told["in_fork"]
    assert node.servers() == {told["parent"]} != {server}


def test_a_fork_that_is_made_while_the_shared_process_ends_runs_nothing(node):
    """What the kernel is asked for comes too late there. Whoever asked runs by itself."""
    before = "def _end_with(server: int) -> None:\n"
    dies = "    os.kill(server, signal.SIGKILL)\n    while os.getppid() == server:\n        time.sleep(0.001)\n"
    node.replace("forks/run.py", before, before + dies)
    node.replace("forks/run.py", "        self.connection.send(wire.BEGUN)\n", "        time.sleep(60)\n")
    told = node.told()
    assert not told["in_fork"]
    assert node.runs() == {told["pid"]}


def test_a_process_that_fails_says_why_in_its_log_and_in_the_line_of_the_run_that_it_has_cost(node):
    node.replace(
        "forks/serve.py", "    def _reap(self) -> None:\n", "    def _reap(self) -> None:\n        int(NUMBER)\n"
    )
    line = "NameError: name 'NUMBER' is not defined"
    assert node.run("tell")[:2] == (2, f"{ask.LOST}: NameError\n")
    [log] = (node.state / "forks").glob("*.log")
    told = log.read_text()
    assert told.startswith("The process that runs detectors has ended at 20")
    assert told.endswith(f"{line}\n")
    assert "in _reap" in told


def test_what_an_earlier_process_has_failed_by_is_not_told_of_a_run_that_something_else_has_ended(node):
    node.told()
    [server] = node.servers()
    log = next((node.state / "forks").glob("*.lock")).with_suffix(".log")
    log.write_text("Error: of yesterday\n")
    os.utime(log, (1.0, 1.0))
    assert node.run("die") == (2, f"{ask.LOST}\n", "")
    assert node.servers() == {server}


def test_the_log_of_the_process_begins_anew_when_it_has_grown(node):
    node.told()
    [log] = (node.state / "forks").glob("*.log")
    for size, left in ((ask.MOST_LOG, ask.MOST_LOG), (ask.MOST_LOG + 1, 0)):
        log.write_text("x" * size)
        for server in node.servers():
            os.kill(server, signal.SIGKILL)
        node.told()
        assert log.stat().st_size == left


@pytest.mark.skipif(os.geteuid() != 0, reason="only root takes back that it has given way")
def test_the_process_gives_way_to_nobody_and_a_fork_as_far_as_whoever_asked_for_it(node):
    first = node.told(preexec_fn=lambda: os.setpriority(os.PRIO_PROCESS, 0, 7))
    [server] = node.servers()
    assert os.getpriority(os.PRIO_PROCESS, server) == 0
    second = node.told(preexec_fn=lambda: os.setpriority(os.PRIO_PROCESS, 0, 0))
    assert (first["nice"], second["nice"]) == (7, 0)
    assert second["parent"] == server


def test_who_has_been_heard_waits_on_but_not_for_ever(node):
    node.replace("state/slots.py", f"PATIENCE, PAUSE = {PATIENCE}", "PATIENCE, PAUSE = 600.0")
    node.replace("state/slots.py", "TURNS = 4", "TURNS = 1")
    with hanging(node, 1):
        node.replace("forks/ask.py", PATIENT[1], "SOON, LATEST = 60.0, 1.0")
        begun = time.monotonic()
        assert not node.told()["in_fork"]
        assert 1.0 <= time.monotonic() - begun < SECONDS


# What a detector does that is only imported.
TELLS_THE_OTHERS = """
if __name__ != "__main__":
    import nodelib

    nodelib.known = [*getattr(nodelib, "known", ()), __file__]
"""


def test_what_all_need_is_imported_before_the_first_of_them_begins(node):
    """An import writes to most pages, and a fork of before it would keep the old ones for itself."""
    programs = [node.program.with_name(f"probe{number}.py") for number in range(8)]
    known = PROGRAM.replace('"known": textwrap.__name__', '"known": len(__import__("nodelib").known)')
    for program in programs:
        program.write_text(known + TELLS_THE_OTHERS)
    node.told()
    [server] = node.servers()
    os.kill(server, signal.SIGSTOP)
    try:
        started = [node.start("tell", program=program) for program in programs]
        wait_for(lambda: all(waits_at_a_socket(one) for one in started))
    finally:
        os.kill(server, signal.SIGCONT)
    told = [json.loads(one.communicate(timeout=SECONDS)[0]) for one in started]
    assert [one["known"] for one in told] == [len(programs)] * len(programs)


def waits_at_a_socket(started):
    return sleeps(started.pid) and bool(sockets(started.pid))


def test_a_process_that_answers_nothing_is_not_waited_for(node):
    node.told()
    [server] = node.servers()
    node.replace("forks/ask.py", PATIENT[1], HASTY)
    os.kill(server, signal.SIGSTOP)
    try:
        assert not node.told()["in_fork"]
        before = node.runs()
    finally:
        os.kill(server, signal.SIGCONT)
    node.replace("forks/ask.py", HASTY, PATIENT[1])
    assert node.told()["in_fork"]
    assert len(node.runs()) == len(before) + 1, "who has gone on by itself is not run once more"


def test_a_process_that_hangs_while_its_queue_is_full_is_not_waited_for(node):
    node.replace("forks/wire.py", "BACKLOG = 128", "BACKLOG = 1")
    node.told()
    [server] = node.servers()
    node.replace("forks/ask.py", PATIENT[1], HASTY)
    os.kill(server, signal.SIGSTOP)
    try:
        assert [node.told()["in_fork"] for _ in range(4)] == [False] * 4
    finally:
        os.kill(server, signal.SIGCONT)


def test_where_no_fork_can_be_had_a_detector_runs_by_itself(node):
    node.replace("forks/run.py", "        self.pid = os.fork()\n", "        raise BlockingIOError\n")
    assert not node.told()["in_fork"]
    assert len(node.servers()) == 1


def test_a_process_without_descriptors_ends_and_the_next_run_has_another(node):
    [server] = {node.told()["parent"]}
    resource.prlimit(server, resource.RLIMIT_NOFILE, (3, 3))
    assert not node.told()["in_fork"]
    wait_for(lambda: not is_there(server))
    assert node.told()["in_fork"]


def test_beside_a_run_that_cannot_be_killed_its_detector_runs_by_itself_and_others_are_forked(node, tmp_path):
    kills = "            os.killpg(self.pid, signal.SIGKILL)\n"
    node.replace("forks/run.py", kills, "            pass\n")
    with hanging(node, 1) as [asked]:
        [stuck] = node.runs()
        asked.kill()
        [server] = node.servers()
        wait_for(lambda: connections(server) == 0)
        assert [node.told()["in_fork"] for _ in range(3)] == [False] * 3
        other = node.program.with_name("other.py")
        shutil.copy(node.program, other)
        assert node.told(program=other)["in_fork"]
        assert is_there(stuck)


ASKER = """
import socket, sys
root, address, program, *options = sys.argv[1:]
sys.path.insert(0, root)
from nodelib.forks import wire
asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
asking.settimeout(60)
asking.connect(address)
try:
    asking.send(wire.packed(wire.Request(program, "/", sys.executable, [program, *options], [])))
    print(asking.recv(16).decode(), asking.recv(16).decode())
except ConnectionError:
    print()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has another mount namespace")
def test_a_process_of_another_mount_namespace_has_nothing_run(node):
    """As a Pod that has the folder of sockets mounted, and is root there."""
    server = node.told()["parent"]
    [socket] = [path for path in (node.state / "forks").iterdir() if not path.suffix]
    words = [sys.executable, "-c", ASKER, node.root, socket, node.program, f"--state={node.state}", node.ran, "tell"]
    answers = {}
    for where in ((), ("unshare", "--mount")):
        done = subprocess.run([*where, *words], capture_output=True, text=True, timeout=SECONDS, check=False)
        if "unshare" in done.stderr:
            pytest.skip(done.stderr)
        answers[where] = done.stdout.strip()
    assert answers == {(): "heard begun", ("unshare", "--mount"): ""}
    assert node.told()["parent"] == server


@pytest.mark.parametrize("name", ["detectors/probe.py", "nodelib/contract/npd.py"])
def test_a_file_that_has_changed_ends_the_process_and_the_new_code_is_run(node, name):
    program = node.root / "detectors/probe.py"
    program.write_text(program.read_text().replace("import json\n", "import json\nfrom nodelib.contract import npd\n"))
    assert node.told()["word"] == "one"
    [server] = node.servers()
    program.write_text(program.read_text().replace('"one"', '"two"'))
    with (node.root / name).open("a") as file:
        file.write("\n")
    assert node.told()["word"] == "two"
    wait_for(lambda: not is_there(server))
    assert node.told()["parent"] in node.servers()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o750, 0o701])
def test_a_folder_that_others_may_enter_is_not_believed(node, mode):
    (node.state / "forks").mkdir()
    (node.state / "forks").chmod(mode)
    assert not node.told()["in_fork"]
    assert node.servers() == set()


def test_a_link_in_the_place_of_the_folder_is_not_followed(node, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (node.state / "forks").symlink_to(tmp_path / "elsewhere")
    assert not node.told()["in_fork"]
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize("what", ["folder", "process"])
def test_another_users_folder_and_process_are_not_believed(node, what):
    (node.state / "forks").mkdir(mode=0o700)
    if what == "folder":
        os.chown(node.state / "forks", 65534, 65534)
        assert not node.told()["in_fork"]
        return
    with another_users_process(node.state):
        assert not node.told()["in_fork"]


@contextmanager
def another_users_process(state):
    """A process of another user that listens where the shared one would, and says that it has begun."""
    opened = wire.folder(str(state))
    listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    listener.bind(wire.address(opened))
    pid = os.fork()
    if not pid:
        os.setuid(65534)
        listener.listen(5)
        while True:
            connection = _socket.socket(fileno=listener._accept()[0])
            with suppress(OSError):
                connection.send(wire.BEGUN)
                connection.send(wire.told(0, b"all is well\n", b""))
    try:
        wait_for(lambda: _listens(opened))
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(opened)
        listener.close()


def _listens(opened):
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    try:
        connection.connect(wire.address(opened))
    except ConnectionRefusedError:
        return False
    return True


def test_a_program_of_another_checkout_runs_by_itself(node, tmp_path):
    node.told()
    other = tmp_path / "other/detectors"
    other.mkdir(parents=True)
    shutil.copytree(node.root / "nodelib", tmp_path / "other/nodelib")
    shutil.copy(node.program, other)
    told = node.told(program=other / "probe.py")
    assert (told["in_fork"], told["file"]) == (False, str(other / "probe.py"))


def test_by_hand_nothing_is_handed_over(node):
    code, out, _ = node.run("end", "0", "--explain")
    assert (code, out) == (0, "a line\n")
    assert node.servers() == set()


@pytest.mark.parametrize("state", ["/proc/none", "/dev/null/below", "/dev/null"])
def test_where_the_folder_cannot_be_made_a_detector_runs_by_itself(node, state):
    node.state = Path(state)
    assert not node.told()["in_fork"]


def test_a_state_folder_with_a_long_name_has_a_socket_too(node, tmp_path):
    node.state = tmp_path / ("long" * 40) / ("name" * 40)
    assert node.told()["in_fork"]


def test_twenty_that_come_at_once_find_one_process(node):
    started = [node.start("tell") for _ in range(20)]
    assert [one.wait(SECONDS) for one in started] == [0] * 20
    assert len(node.servers()) == 1


def test_it_ends_when_nobody_asks_and_takes_its_socket_along(node):
    node.replace("forks/serve.py", "IDLE = 660.0", "IDLE = 0.2")
    assert node.told()["in_fork"]
    wait_for(lambda: not node.servers())
    assert [path.suffix for path in (node.state / "forks").iterdir() if path.suffix != ".log"] == [".lock"]
    assert node.told()["in_fork"]


def test_nonsense_is_no_request(node):
    node.told()
    [server] = node.servers()
    opened = wire.folder(str(node.state))
    no_detector = wire.packed(wire.own_request())
    for message in (b"", b"\0", b"x" * 100, b"a\0b\0c\0many\0", no_detector):
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        connection.settimeout(SECONDS)
        connection.connect(wire.address(opened))
        connection.send(message)
        assert connection.recv(16) == (wire.HEARD if message == no_detector else b"")
        assert connection.recv(16) == b""
        connection.close()
    os.close(opened)
    assert node.told()["parent"] == server
    wait_for(lambda: connections(server) == 0)


def test_a_request_and_an_end_survive_the_way():
    assert wire.heard(wire.told(143, b"a", b"bc")) == (143, b"a", b"bc")
    request = wire.Request("/a/b.py", "/", "/bin/python3", ["b.py", "--x=1", ""], ["A=b=c", "B="])
    assert vars(wire.unpacked(wire.packed(request))) == vars(request)
    with pytest.raises(OSError, match="bytes"):
        wire.packed(wire.Request("/a", "/", "/b", ["x" * wire.MOST_BYTES], []))
