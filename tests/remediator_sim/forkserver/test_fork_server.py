"""Programs that the fork server runs: what they see, what is seen of them, and that nothing stays behind."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from remediator_sim.forkserver.library import Library
from remediator_sim.forkserver.program import load
from remediator_sim.npd import Processes, plugin
from remediator_sim.npd.config import Monitor, Rule
from remediator_sim.npd.fork_server import PROGRAM
from remediator_sim.npd.status import Exit
from tests.harness.waiting import gone, until
from tests.native import build_stub
from tests.remediator_sim.forkserver.programs import ENV, FIRST_LINES, HANG, PYTHON, program, ran

pytestmark = pytest.mark.sampled("runners")

ROOT = Path(__file__).resolve().parents[3]


def server_of(fork_server):
    """The id of the process of the server."""
    return fork_server._server._process.pid


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


SEES = """
import json, os, signal, sys, threading
print(json.dumps({
    "argv": sys.argv, "path": sys.path, "name": __name__, "file": __file__, "main": sys.modules["__main__"].__file__,
    "env": sorted(os.environ.items()), "cwd": os.getcwd(), "stdin": sys.stdin.read(), "site": "site" in sys.modules,
    "descriptors": sorted(os.listdir("/proc/self/fd"))[:-1], "mask": sorted(signal.pthread_sigmask(0, [])),
    "handlers": [str(signal.getsignal(number)) for number in (2, 13, 15, 17)], "threads": threading.active_count(),
    "isatty": sys.stdout.isatty(), "encoding": sys.stdout.encoding, "buffered": sys.stdout.line_buffering,
    "bytecode": sys.dont_write_bytecode, "group": os.getpgrp() == os.getpid(), "builtins": __builtins__.__name__,
}, sort_keys=True))
"""


@pytest.mark.parametrize("first", FIRST_LINES)
async def test_a_forked_program_sees_what_a_fresh_interpreter_shows_it(fork_server, tmp_path, first):
    path = program(tmp_path / "sees.py", SEES, first)
    env = ENV | {"PYTHONPATH": "/nowhere", "LC_CTYPE": "C.UTF-8"}
    fresh = await ran(Processes(), path, "--a", "b c", env=env)
    forked = await ran(fork_server, path, "--a", "b c", env=env)
    assert fresh[0] == 0, fresh
    assert forked == fresh
    assert children(server_of(fork_server)) == []


ENDS = {
    "nothing": "",
    "None": "sys.exit()",
    "a number": "sys.exit(7)",
    "a large number": "sys.exit(256 + 3)",
    "a negative number": "sys.exit(-1)",
    "a truth": "sys.exit(True)",
    "words": "sys.exit('gave up')",
    "an exception": "def f():\n    raise ValueError('broken')\nf()",
    "no program": "this is no Python",
    "a missing module": "import nowhere_to_be_found",
    "a signal": "os.kill(os.getpid(), 15)",
    "without flushing": "print('lost'); os._exit(3)",
    "a closed output": "sys.stdout.close()",
    "a thread": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print('last'))).start()",
    "a daemon": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "atexit": "import atexit\natexit.register(print, 'farewell')\nsys.exit(1)",
    "an open file": "left = open(sys.argv[1], 'a')\nleft.write('written')",
    "bytes": "sys.stdout.buffer.write(b'\\xff\\x00')",
    "an odd character": "print('\\udcff')",
    "a child": "import subprocess\nprint(subprocess.check_output([sys.executable, '-I', '-S', '-c', 'print(40 + 2)']))",
    "a broken pipe": "import subprocess\nprint(subprocess.check_output('yes | head -1; echo $?', shell=True))",
    "no execution as a module": "print(__name__, __spec__, __package__, __doc__)",
}


@pytest.mark.parametrize("text", ENDS.values(), ids=ENDS)
async def test_a_forked_program_ends_as_a_fresh_one_does(fork_server, tmp_path, text):
    path = program(tmp_path / "ends.py", f"import os, sys\n{text}\n" if text != ENDS["no program"] else text)
    left = tmp_path / "left"
    fresh, wrote = await ran(Processes(), path, str(left)), left.exists() and left.read_text()
    left.unlink(missing_ok=True)
    forked = await ran(fork_server, path, str(left))
    assert forked == fresh
    assert (left.exists() and left.read_text()) == wrote


# Starts a child in each of the ways that programs of nodes do, and leaves traces of its own that no child may see.
STARTS = """
import atexit, fcntl, os, signal, subprocess, sys
sys.path.append(os.path.dirname(__file__))
import word
atexit.register(print, "end of the parent", file=sys.stderr)
signal.signal(signal.SIGTERM, lambda *_: None)
print("not flushed")
child = os.path.join(os.path.dirname(__file__), "child.py")
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
bare = [sys.executable, "-I", "-S", "-B"]
text = "import os, sys; print(sys.argv, sys.path, __name__, sys.stdin.read()); os.kill(os.getpid(), 15)"
elsewhere = {"env": {"LC_CTYPE": "C.UTF-8"}, "cwd": "/", "start_new_session": True}
for words, more in (
    ([*bare, child, "--a", "b c"], {}),
    ([sys.executable, "-E", "-s", "-S", child], elsewhere),
    ([*bare, child], {"pass_fds": (lock,), "stdin": subprocess.DEVNULL}),
    ([*bare, "-c", text, "-c"], {"text": True, "input": "told"}),
    ([*bare, "-c", "import word"], {}),
    ([*bare, "-c", "import sys; sys.exit('gave up')"], {}),
    ([*bare, "-c", "print("], {}),
    ([*bare, "-X", "utf8", "-c", "import sys; print(sys.flags.utf8_mode)"], {}),
    (["/bin/echo", "no Python"], {}),
    ("echo $0", {"shell": True, "env": {}}),
):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    print(done.returncode, done.stdout, done.stderr, sep="\\n")
"""


async def test_a_python_program_that_a_forked_one_starts_is_forked_and_sees_what_a_fresh_one_does(
    fork_server, tmp_path
):
    path, lock = program(tmp_path / "starts.py", STARTS, FIRST_LINES[1]), str(tmp_path / "lock")
    (tmp_path / "word.py").write_text("")
    program(tmp_path / "child.py", SEES)
    env = ENV | {"LC_CTYPE": "C.UTF-8"}
    fresh, forked = [await ran(runner, path, lock, env=env) for runner in (Processes(), fork_server)]
    assert fresh[0] == 0, fresh
    assert fresh[1].count(b'"__main__"') == 3
    assert forked[1].decode().split("\n") == fresh[1].decode().split("\n")
    assert forked == fresh
    assert str(tmp_path / "child.py") in load(str(path)).codes, "compiled before the fork"


SAYS_WHAT_IT_IS = """
import sys, time
print(open("/proc/self/cmdline").read(), flush=True)
time.sleep(60)
"""
DIES = """
import os, subprocess, sys
subprocess.Popen([sys.executable, "-I", "-S", sys.argv[1]])
os.kill(os.getpid(), 9)
"""


async def test_a_child_of_a_forked_program_is_a_fork_and_lives_on_when_its_parent_is_killed(fork_server, tmp_path):
    (tmp_path / "child.py").write_text(SAYS_WHAT_IT_IS)
    running = await fork_server.start([str(program(tmp_path / "dies.py", DIES)), str(tmp_path / "child.py")], ENV)
    try:
        assert await running.ended() == -signal.SIGKILL
        assert str(PROGRAM).encode() in await asyncio.to_thread(running.stdout.read, 4096)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.stdout.close()
        running.stderr.close()


async def test_a_forked_program_and_its_child_find_libraries_where_the_variable_says(fork_server, tmp_path):
    library = build_stub(tmp_path)
    loads = f"import ctypes\nprint(ctypes.CDLL({library.name!r}).nvmlInit_v2 is not None, flush=True)\n"
    (tmp_path / "child.py").write_text(loads)
    start = "import os, subprocess, sys\nsubprocess.run([sys.executable, '-I', '-S', sys.argv[1]], check=True)\n"
    path, itself = program(tmp_path / "starts.py", start), program(tmp_path / "loads.py", loads)
    for runner in (Processes(), fork_server):
        env = ENV | {"LD_LIBRARY_PATH": str(tmp_path)}
        assert await ran(runner, path, str(tmp_path / "child.py"), env=env) == (0, b"True\n", b"")
        assert await ran(runner, itself, env=env) == (0, b"True\n", b"")
        assert [(await ran(runner, *words))[0] for words in ((path, str(tmp_path / "child.py")), (itself,))] == [1, 1]


async def test_an_edited_program_or_neighbour_is_run_as_it_is_now(fork_server, tmp_path):
    path = program(tmp_path / "main.py", "import _near\nprint(_near.WORD)\n")
    (tmp_path / "_near.py").write_text("WORD = 'old'\n")
    assert (await ran(fork_server, path))[1] == b"old\n"
    (tmp_path / "_near.py").write_text("WORD = 'newer'\n")
    assert (await ran(fork_server, path))[1] == b"newer\n"
    program(path, "import _near\nprint(_near.WORD, 'still')\n")
    assert (await ran(fork_server, path))[1] == b"newer still\n"
    assert not (tmp_path / "__pycache__").exists()


async def test_a_module_of_a_package_beside_the_programs_folder_is_run_as_it_is_now(fork_server, tmp_path):
    """As detectors/ and nodelib/ lie beside each other."""
    (tmp_path / "detectors").mkdir()
    (tmp_path / "lib/state").mkdir(parents=True)
    for folder in ("lib", "lib/state"):
        (tmp_path / folder / "__init__.py").touch()
    start = "import os.path, sys\nsys.path.append(os.path.realpath(f'{__file__}/../..'))\n"
    path = program(tmp_path / "detectors/main.py", f"{start}from lib.state import slots\nprint(slots.WORD)\n")
    module = tmp_path / "lib/state/slots.py"
    module.write_text("WORD = 'old'\n")
    assert (await ran(fork_server, path))[1] == b"old\n"
    module.write_text("WORD = 'newer'\n")
    assert (await ran(fork_server, path))[1] == b"newer\n"
    assert str(module) in load(str(path)).codes, "compiled before the fork"
    assert Library().program(str(path)).modules["lib.state.slots"].WORD == "newer", "imported before the fork"
    assert "lib" not in sys.modules
    module.write_text("WORD = []\n")
    program(path, f"{start}from lib.state import slots\nslots.WORD.append('once')\nprint(slots.WORD)\n")
    assert [(await ran(fork_server, path))[1] for _ in range(2)] == [b"['once']\n"] * 2


IMPORTS = """
import site, subprocess, sys
if len(sys.argv) > 2:
    sys.path.insert(0, sys.argv[2])
site.main()
import pynvml
print(pynvml.__name__, pynvml.__file__, pynvml.__spec__.origin, pynvml.nvmlLib, "__key__" in vars(pynvml), flush=True)
pynvml.nvmlLib = "of this run"
if sys.argv[1] == "again":
    subprocess.run([sys.executable, "-I", "-S", __file__, "once", *sys.argv[2:]])
"""


async def test_an_installed_module_is_executed_before_the_fork_and_each_program_has_one_of_its_own(
    fork_server, tmp_path
):
    path = program(tmp_path / "main.py", IMPORTS, FIRST_LINES[1])
    library = Library()
    library.program(str(path))
    assert [Path(file).name for file in library.installed] == ["pynvml.py"]
    expected = await ran(Processes(), path, "again")
    assert expected[1].count(b"pynvml.py") == 2 * expected[1].count(b"\n") == 4, expected
    assert [await ran(fork_server, path, "again") for _ in range(2)] == [expected] * 2


async def test_a_module_of_the_same_name_in_a_folder_that_comes_first_is_what_is_imported(fork_server, tmp_path):
    path = program(tmp_path / "main.py", IMPORTS, FIRST_LINES[1])
    (tmp_path / "first").mkdir()
    (tmp_path / "first/pynvml.py").write_text("nvmlLib = 'first'\n")
    expected = await ran(Processes(), path, "again", str(tmp_path / "first"))
    assert expected[1].count(b" first ") == 2
    assert await ran(fork_server, path, "again", str(tmp_path / "first")) == expected


@pytest.mark.parametrize(
    "first",
    [
        "/bin/sh",
        "/usr/bin/env python3",
        f"{PYTHON} -E",
        f"{PYTHON} -ESO",
        "/usr/bin/env -S python3 -ES -c print(__name__)",
    ],
)
async def test_what_is_not_for_the_fork_server_is_run_by_the_kernel(fork_server, tmp_path, first):
    path = program(tmp_path / "other", "echo = exit = 0\n", f"#!{first}")
    assert await ran(fork_server, path) == await ran(Processes(), path)


async def test_three_hundred_runs_leave_no_descriptor_no_zombie_and_no_memory(fork_server, tmp_path):
    path = program(tmp_path / "main.py", "import argparse, sys\nprint('x' * 5000)\nsys.exit(1)\n")

    async def many(count):
        results = await asyncio.gather(*(ran(fork_server, path) for _ in range(count)))
        assert {(code, len(said)) for code, said, _ in results} == {(1, 5001)}

    def kept():
        resident = int(Path(f"/proc/{server_of(fork_server)}/statm").read_text().split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )
        return {pid: len(os.listdir(f"/proc/{pid}/fd")) for pid in (os.getpid(), server_of(fork_server))}, resident  # noqa: PTH208

    await many(50)
    before, resident = kept()
    for _ in range(6):
        await many(50)
    after, now = kept()
    assert after == before
    assert now - resident < 1 << 20
    assert children(server_of(fork_server)) == []


async def test_more_runs_at_once_than_a_socket_holds_are_all_done(fork_server, tmp_path):
    path = program(tmp_path / "main.py", "import sys\nprint(sys.argv[1])\n")
    env = ENV | {"LARGE": "x" * 20000}
    results = await asyncio.gather(*(ran(fork_server, path, str(number), env=env) for number in range(60)))
    assert [int(said) for _, said, _ in results] == list(range(60))


async def test_an_end_that_was_not_asked_for_yet_when_its_waiter_was_cancelled_can_be_asked_for_again(
    fork_server, tmp_path
):
    running = await fork_server.start([str(program(tmp_path / "ends", ""))], ENV)
    async with fork_server._server._sending:  # as when its socket is full
        waits = asyncio.ensure_future(running.ended())
        await asyncio.sleep(0)
        waits.cancel()
        await asyncio.wait({waits})
    assert await asyncio.wait_for(running.ended(), 10) == 0
    for pipe in (running.stdout, running.stderr):
        pipe.close()


async def test_a_start_that_nobody_waits_for_any_more_is_undone(fork_server, tmp_path):
    path, told = program(tmp_path / "hang.py", HANG), tmp_path / "told"
    await ran(fork_server, program(tmp_path / "first.py", ""))
    start = asyncio.create_task(fork_server.start([str(path), str(told)], ENV))
    await asyncio.sleep(0)
    start.cancel()
    with suppress(asyncio.CancelledError):
        await start
    await ran(fork_server, program(tmp_path / "last.py", ""))  # answered after the one before
    await until(lambda: children(server_of(fork_server)) == [])


async def test_a_fork_server_that_dies_takes_its_programs_along_and_another_takes_its_place(fork_server, tmp_path):
    path, told = program(tmp_path / "hang.py", HANG), tmp_path / "told"
    rule = Rule("permanent", "A", "Bad", str(path), (str(told),))
    monitor = Monitor("s", (), (rule,), timeout=300)
    task = asyncio.create_task(plugin.run(monitor, rule, fork_server, ENV))
    await until(told.exists)
    os.kill(server_of(fork_server), signal.SIGKILL)
    own, child = map(int, told.read_text().split())
    await until(lambda: gone(own))
    os.kill(child, signal.SIGKILL)  # an orphan that holds the output
    assert (await task).exit is Exit.UNKNOWN
    assert (await ran(fork_server, program(tmp_path / "next.py", "print('again')")))[1] == b"again\n"


OWNER = """
import asyncio, sys
from remediator_sim.npd import ForkServer
async def main():
    fork_server = ForkServer()
    await fork_server.start(sys.argv[1:], {"PATH": "/usr/bin:/bin"})
    print(fork_server._server._process.pid, flush=True)
    await asyncio.sleep(300)
asyncio.run(main())
"""


async def test_a_fork_server_and_its_programs_end_with_a_process_that_is_killed(tmp_path):
    path, told = program(tmp_path / "hang.py", HANG, f"#!{PYTHON} -IS"), tmp_path / "told"
    words = [str(PYTHON), "-c", OWNER, str(path), str(told)]
    owner = await asyncio.create_subprocess_exec(*words, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    try:
        fork_server = int(await owner.stdout.readline())
        await until(told.exists)
    finally:
        owner.kill()
        await owner.communicate()
    own, child = map(int, told.read_text().split())
    os.kill(child, signal.SIGKILL)
    await until(lambda: gone(fork_server) and gone(own))


def test_a_program_that_ends_when_nobody_listens_any_more_ends_the_server_without_a_word(tmp_path: Path) -> None:
    sleeper = tmp_path / "sleeper.py"
    sleeper.write_text(f"{FIRST_LINES[-1]}\nimport time\ntime.sleep(60)\n")
    sleeper.chmod(0o755)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-I", "-S", PROGRAM, str(theirs.fileno()), str(os.getpid())]
    server = subprocess.Popen(command, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE, text=True)
    theirs.close()
    request = {"run": 1, "path": str(sleeper), "args": [], "env": ENV, "cwd": str(tmp_path)}
    with Path(os.devnull).open("w") as nothing:
        socket.send_fds(ours, [json.dumps(request).encode()], [nothing.fileno(), nothing.fileno()])
    pid = json.loads(ours.recv(4096))["pid"]
    ours.send(json.dumps({"wait": pid}).encode())
    server.send_signal(signal.SIGSTOP)  # both come at once: the end of the program, and that nobody listens
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, server.pid, os.WSTOPPED | os.WNOWAIT)
    while not gone(pid):
        time.sleep(0.01)
    ours.close()
    server.send_signal(signal.SIGCONT)
    assert server.communicate(timeout=30) == (None, "")
    assert server.returncode == 0
