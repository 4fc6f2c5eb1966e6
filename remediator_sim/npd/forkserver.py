"""The warm process behind Zygote: forks for each run of a Python program, in place of starting an interpreter.

Runs alone, `python -I -S forkserver.py SOCKET PARENT`, with the standard library only. Each packet on the socket is a
JSON object. Asked {run, path, args, env, cwd}, with the write ends for stdout and stderr, it answers {run, pid}, or
{run, errno} where the kernel would not start such a file, or only {run} where it is no Python program that can be run
here. Asked {wait: pid} it answers {ended: pid, code} after that program's end; until then the id stays taken.

What the forked child sees is what a fresh interpreter would: argv, path, environment, folder, standard streams, no
other descriptors. It differs in sys.flags, which nobody can set, in having more modules of the standard library loaded,
and in that all runs share one hash seed.
"""

import ast
import atexit
import ctypes
import gc
import importlib
import json
import os
import re
import select
import shutil  # noqa: F401  argparse imports it when it is used: here, once for all
import signal
import socket
import stat
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, NamedTuple, TextIO

PR_SET_PDEATHSIG = 1
PACKET = 1 << 20
KEPT = 64  # programs whose code is kept
# "#!/usr/bin/env -S python3 -E -s -S" or "#!/usr/bin/python3 -IS"; what asks for more of Python is left to the kernel.
FIRST_LINE = re.compile(
    rb"""\#! [ \t]* (?: \S*/env [ \t]+ -S [ \t]+ \S* PYTHON ( (?: [ \t]+ -[EsSIBP]+ )+ )
                   | /\S* PYTHON [ \t]+ ( -[EsSIBP]+ ) ) [ \t]* \n""".replace(b"PYTHON", rb"python3 (?: \.\d+ )?"),
    re.VERBOSE,
)
_libc = ctypes.CDLL(None)

Key = tuple[int, int, int]


class Program(NamedTuple):
    """One program and its neighbours, ready to run: `codes` and `keys` (what the files were) by path."""

    flags: frozenset[str]
    codes: dict[str, types.CodeType]
    keys: dict[str, Key | None]


def key(path: str) -> Key | None:
    """What a file is known again by; None where there is none."""
    try:
        seen = Path(path).stat()
    except OSError:
        return None
    return seen.st_ino, seen.st_size, seen.st_mtime_ns


class Library:
    """Programs that have run before."""

    def __init__(self) -> None:
        self._programs: dict[str, Program | None] = {}

    def program(self, path: str) -> Program | None:
        """The program in that file; None where it is not for us. Raises OSError where no kernel would start it."""
        executable(path)
        known = self._programs.get(path)
        if known is None or any(key(file) != was for file, was in known.keys.items()):
            known = load(path)
            while len(self._programs) >= KEPT:
                del self._programs[next(iter(self._programs))]
            self._programs[path] = known
        return known


def executable(path: str) -> None:
    """Raise the OSError that exec would raise."""
    if not stat.S_ISREG(Path(path).stat().st_mode) or not os.access(path, os.X_OK):
        raise PermissionError(13, os.strerror(13), path)


def load(path: str) -> Program | None:
    """Compile a program and the neighbours that it imports, and import what they need of the standard library."""
    with Path(path).open("rb") as file:
        first = FIRST_LINE.match(file.readline())
    if not first:
        return None
    flags = frozenset(char for char in (first[1] or first[2]).decode() if char.isalpha())
    if "S" not in flags or not flags & {"E", "I"}:
        return None
    program = Program(flags, {}, {})
    _compile(path, program)
    return program


def _compile(path: str, program: Program) -> None:
    program.keys[path] = key(path)
    try:
        tree = ast.parse(Path(path).read_bytes(), path)
        program.codes[path] = compile(tree, path, "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError):
        return  # the program itself will say what is wrong
    for name in sorted(_imports(tree)):
        if name.partition(".")[0] in sys.stdlib_module_names:
            with suppress(ImportError):  # what cannot be imported here may never be reached there
                importlib.import_module(name)
        else:
            for near in _near(Path(path).resolve(), name):
                if str(near) not in program.keys and key(str(near)):
                    _compile(str(near), program)


def _near(path: Path, name: str) -> Iterator[Path]:
    """Where a module may lie that `path` imports: beside it, or in a package beside one of the folders above it."""
    yield path.with_name(f"{name}.py")
    parts = name.split(".")
    for above in path.parents[1:4]:
        if (above / parts[0] / "__init__.py").exists():
            yield from (above.joinpath(*parts[:at], "__init__.py") for at in range(1, len(parts) + 1))
            yield above.joinpath(*parts[:-1], f"{parts[-1]}.py")


def _imports(tree: ast.AST) -> set[str]:
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported.add(node.module)
            if node.module.partition(".")[0] not in sys.stdlib_module_names:
                imported |= {f"{node.module}.{alias.name}" for alias in node.names}  # some are modules
    return imported


class Server:
    """Answers on one socket until its other end is closed."""

    def __init__(self, asking: socket.socket) -> None:
        self._socket = asking
        self._library = Library()
        self._awaited: set[int] = set()
        self._wake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        """Answer until nobody can ask any more, or hears an answer."""
        with suppress(BrokenPipeError):
            self._serve()

    def _serve(self) -> None:
        while True:
            ready, _, _ = select.select([self._socket.fileno(), self._wake], [], [])
            if self._wake in ready:
                os.read(self._wake, 4096)
                for pid in list(self._awaited):
                    self._reap(pid)
            if self._socket.fileno() in ready and not self._hear():
                return

    def _hear(self) -> bool:
        try:
            packet, streams, _, _ = socket.recv_fds(self._socket, PACKET, 2)
        except ConnectionResetError:
            return False
        if not packet:
            return False
        asked = json.loads(packet)
        if "wait" in asked:
            self._awaited.add(asked["wait"])
            self._reap(asked["wait"])
            return True
        try:
            answer = self._start(asked, streams)
        except OSError as error:
            answer = {"errno": error.errno}
        finally:
            for stream in streams:
                os.close(stream)
        self._say({"run": asked["run"], **answer})
        return True

    def _start(self, asked: dict[str, Any], streams: list[int]) -> dict[str, Any]:
        path = asked["path"]
        program = self._library.program(path)
        if program is None:
            return {}
        gc.freeze()  # what is shared with children is not to be copied by their garbage collection
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            be(program, asked, streams, parent)
        with suppress(OSError):  # it may have ended
            os.setpgid(pid, pid)  # here too, lest it be killed by its group before it has one
        return {"pid": pid}

    def _reap(self, pid: int) -> None:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            self._awaited.discard(pid)
            self._say({"ended": pid, "code": os.waitstatus_to_exitcode(status)})

    def _say(self, answer: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(answer).encode())


def be(program: Program, asked: dict[str, Any], streams: list[int], parent: int) -> None:
    """Become the program, in the child; never returns."""
    code = 2  # whatever goes wrong before the program runs is no fault that it has found
    try:
        _take_place(asked, streams, parent)
        path, flags = asked["path"], sorted(f"-{flag}" for flag in program.flags)
        sys.argv = [path, *asked["args"]]
        sys.orig_argv = [sys.executable, *flags, *sys.argv]
        if not program.flags & {"I", "P"}:
            sys.path.insert(0, str(Path(path).resolve().parent))  # the rest is ours: we were started with -I and -S
        sys.dont_write_bytecode = "B" in program.flags
        _serve_neighbours(program.codes)
        code = _run(path, program.codes.get(path))
    finally:
        os._exit(code)


def _take_place(asked: dict[str, Any], streams: list[int], parent: int) -> None:
    """Group, death with the parent, signals, streams, folder and environment, as after fork and exec."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setpgid(0, 0)
    die_with(parent)
    for target, stream in enumerate(streams, start=1):
        os.dup2(stream, target)
    for opened in list(Path("/proc/self/fd").iterdir()):
        if int(opened.name) > 2:
            with suppress(OSError):  # the listing's own is closed by now
                os.close(int(opened.name))
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])


def _serve_neighbours(codes: dict[str, types.CodeType]) -> None:
    """Let imports find what was compiled before the fork."""
    compiled = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> types.CodeType | None:
        return codes.get(self.path) or compiled(self, fullname)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


def _run(path: str, code: types.CodeType | None) -> int:
    """The exit code of the program, which runs as __main__, after all that an interpreter does at its end."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=str(Path(path).absolute()), __cached__=None, __builtins__=__builtins__)
    sys.modules["__main__"] = main
    try:
        exec(code or compile(Path(path).read_bytes(), path, "exec", dont_inherit=True), main.__dict__)
        status = 0
    except SystemExit as end:
        status = _exit_code(end.code)
    except BaseException as error:
        sys.excepthook(type(error), error.with_traceback(_own(error.__traceback__)), None)
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    main.__dict__.clear()  # files that were left open are written by this
    gc.collect()
    return status if _flushed(sys.stdout) and _flushed(sys.stderr) else 120


def _own(trace: types.TracebackType | None) -> types.TracebackType | None:
    """The part of a traceback that is the program's."""
    while trace and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


def _exit_code(value: Any) -> int:
    if value is None or isinstance(value, int):
        return (value or 0) & 0xFF
    print(value, file=sys.stderr)
    return 1


def _flushed(stream: TextIO | None) -> bool:
    try:
        if stream is not None and not stream.closed:
            stream.flush()
    except OSError:
        return False
    return True


def die_with(parent: int) -> None:
    """Be killed when the parent ends, however it ends; at once where it has."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


if __name__ == "__main__":
    die_with(int(sys.argv[2]))
    Server(socket.socket(fileno=int(sys.argv[1]))).serve()
