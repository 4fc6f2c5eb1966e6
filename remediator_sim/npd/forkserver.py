"""The warm process behind Zygote: forks for each run of a Python program, in place of starting an interpreter.

Runs alone, `python -I -S forkserver.py SOCKET PARENT`, with the standard library only. Each packet on the socket is a
JSON object. Asked {run, path, args, env, cwd}, with the write ends for stdout and stderr, it answers {run, pid}, or
{run, errno} where the kernel would not start such a file, or only {run} where it is no Python program that can be run
here. Asked {wait: pid} it answers {ended: pid, code} after that program's end; until then the id stays taken.

What the forked child sees is what a fresh interpreter would: argv, path, environment, folder, standard streams, no
other descriptors. It differs in sys.flags, which nobody can set, in having more modules loaded, of the standard library
and of the packages beside its folder, and in that all runs share one hash seed. An installed module of one file that it
imports, pynvml, has been executed before. A Python program that it starts by
subprocess.Popen is forked in the same way.
"""

import argparse
import ast
import atexit
import ctypes
import gc
import importlib.util
import io
import json
import os
import re
import select
import shutil  # noqa: F401  argparse imports it when it is used: here, once for all
import signal
import socket
import stat
import subprocess
import sys
import sysconfig
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple, TextIO

PR_SET_PDEATHSIG = 1
PACKET = 1 << 20
KEY = "__key__"  # of a module: what its file was
KEPT = 64  # programs whose code is kept
SOURCES = 256  # files whose code is kept: programs share most of their neighbours
# "#!/usr/bin/env -S python3 -E -s -S" or "#!/usr/bin/python3 -IS"; what asks for more of Python is left to the kernel.
FIRST_LINE = re.compile(
    rb"""\#! [ \t]* (?: \S*/env [ \t]+ -S [ \t]+ \S* PYTHON ( (?: [ \t]+ -[EsSIBP]+ )+ )
                   | /\S* PYTHON [ \t]+ ( -[EsSIBP]+ ) ) [ \t]* \n""".replace(b"PYTHON", rb"python3 (?: \.\d+ )?"),
    re.VERBOSE,
)
OPTIONS = re.compile("-([EsSIBP]+)")
OWN_WAYS = {"shell", "executable", "preexec_fn", "close_fds"}  # of Popen, to start something else than we would
LIBRARIES = "LD_LIBRARY_PATH"  # of the dynamic linker's variables the one that can be obeyed after its start
_libc = ctypes.CDLL(None)

Key = tuple[int, int, int]
Modules = dict[str, types.ModuleType]


class Program(NamedTuple):
    """One program and its neighbours, ready to run: `codes` and `keys` (what the files were) by path.

    `wanted`: modules of packages by the folder that holds the package; `modules`: those of them that are imported.
    `strangers`: what it imports besides these and the standard library.
    """

    flags: frozenset[str]
    codes: dict[str, types.CodeType]
    keys: dict[str, Key | None]
    wanted: dict[str, set[str]]
    modules: Modules
    strangers: set[str]


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
        self._packages: dict[str, Package] = {}
        self.installed: Modules = {}  # by file

    def program(self, path: str) -> Program | None:
        """The program in that file; None where it is not for us. Raises OSError where no kernel would start it."""
        executable(path)
        known = self._programs.get(path)
        if known is None or any(key(file) != was for file, was in known.keys.items()):
            known = load(path)
            if known:
                self._import(known)
            while len(self._programs) >= KEPT:
                del self._programs[next(iter(self._programs))]
            self._programs[path] = known
        return known

    def _import(self, program: Program) -> None:
        for folder, names in program.wanted.items():
            package = self._packages.get(folder)
            if package is None or package.has_changed():
                package = self._packages[folder] = Package({})
            package.load(folder, names)
            program.modules.update(package.modules)
        for path in filter(None, map(_installed, sorted(program.strangers))):
            if path not in self.installed or _has_changed(self.installed[path]):
                self.installed.update(_execute(path))


def _installed(name: str) -> str | None:
    """The file of a module that lies where this interpreter's packages do."""
    prefix = str(Path(sys.executable).parent.parent)  # of a virtual environment, too: sys.prefix needs site for that
    path = f"{sysconfig.get_path('purelib', 'posix_prefix', {'base': prefix})}/{name}.py"
    return path if key(path) else None


def _execute(path: str) -> Modules:
    """The module in that file, by its path; nothing where it cannot be executed: it cannot by the program either."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    module.__dict__[KEY] = key(path)
    sys.modules[spec.name] = module  # while it is executed
    try:
        spec.loader.exec_module(module)
    except Exception:
        return {}
    finally:
        del sys.modules[spec.name]
    return {path: module}


def _has_changed(module: types.ModuleType) -> bool:
    return bool(module.__dict__[KEY] != key(str(module.__file__)))


class Package(NamedTuple):
    """Modules of the packages in one folder, imported once for all programs: what a run makes of them ends with it."""

    modules: Modules

    def has_changed(self) -> bool:
        """Whether a file is another one than was imported."""
        return any(map(_has_changed, self.modules.values()))

    def load(self, folder: str, names: set[str]) -> None:
        """Import modules as a program will that appends the folder to its path; what fails there fails there, too."""
        before = set(sys.modules)
        sys.modules.update(self.modules)
        sys.path.append(folder)
        try:
            for name in sorted(names):
                with suppress(Exception):
                    importlib.import_module(name)
        finally:
            sys.path.remove(folder)
            tops = {name.partition(".")[0] for name in names}
            for name in set(sys.modules) - before:
                if name.partition(".")[0] in tops:
                    module = self.modules[name] = sys.modules.pop(name)
                    module.__dict__.setdefault(KEY, key(str(module.__file__)))


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
    if not is_bare(flags):
        return None
    program = Program(flags, {}, {}, {}, {}, set())
    _compile(path, program)
    return program


def is_bare(flags: frozenset[str]) -> bool:
    """Whether a program that is started with these takes nothing from its surroundings."""
    return "S" in flags and bool(flags & {"E", "I"})


def _compile(path: str, program: Program) -> None:
    program.keys[path] = key(path)
    try:
        source = _source(path)
    except (OSError, SyntaxError, ValueError):
        return  # the program itself will say what is wrong
    program.codes[path] = source.code
    own, nears = Path(path).resolve(), list[Path]()
    for name in source.imports:
        if name.partition(".")[0] in sys.stdlib_module_names:
            with suppress(ImportError):  # what cannot be imported here may never be reached there
                importlib.import_module(name)
        else:
            beside = [own.with_name(f"{name}.py"), *_of_packages(own, name, program)]
            nears += beside
            if "." not in name and not any(map(key, map(str, beside))):
                program.strangers.add(name)
    for near in (*nears, *map(own.with_name, source.programs)):
        if str(near) not in program.keys and key(str(near)):
            _compile(str(near), program)


class Source(NamedTuple):
    """What is compiled of one file: the names that it imports, and the files that it names without a folder."""

    key: Key | None
    code: types.CodeType
    imports: list[str]
    programs: list[str]


_sources: dict[str, Source] = {}


def _source(path: str) -> Source:
    """The file, compiled once for all programs that import it. Raises what reading and compiling raise."""
    known = _sources.pop(path, None)
    if known is None or known.key != key(path):
        was = key(path)
        tree = ast.parse(Path(path).read_bytes(), path)
        code = compile(tree, path, "exec", dont_inherit=True)
        known = Source(was, code, sorted(_imports(tree)), sorted(_programs(tree)))
    while len(_sources) >= SOURCES:
        del _sources[next(iter(_sources))]
    _sources[path] = known
    return known


def _of_packages(path: Path, name: str, program: Program) -> Iterator[Path]:
    """The files of a module that `path` imports from a package beside one of the folders above it."""
    parts = name.split(".")
    for above in path.parents[1:4]:
        if (above / parts[0] / "__init__.py").exists():
            inits = [above.joinpath(*parts[:at], "__init__.py") for at in range(1, len(parts) + 1)]
            module = above.joinpath(*parts[:-1], f"{parts[-1]}.py")
            if module.exists():
                program.wanted.setdefault(str(above), set()).add(name)
            yield from (*inits, module)


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


def _programs(tree: ast.AST) -> set[str]:
    """The files that a program names without a folder: it may start one that lies beside it."""
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {text for text in texts if re.fullmatch(r"\w+\.py", text)}


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
        if program is None or not _links_alike(asked["env"]):
            return {}
        gc.freeze()  # what is shared with children is not to be copied by their garbage collection
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            be(program, self._library.installed, asked, streams, parent)
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


def be(program: Program, installed: Modules, asked: dict[str, Any], streams: list[int], parent: int) -> None:
    """Become the program, in the child; never returns."""
    code = 2  # whatever goes wrong before the program runs is no fault that it has found
    try:
        _take_place(asked, streams, parent)
        path, flags = asked["path"], sorted(f"-{flag}" for flag in program.flags)
        _serve_neighbours(program.codes)
        _serve_installed(dict(installed))
        sys.modules.update(program.modules)
        _fork_programs(program.codes)
        _find_libraries(os.environ.get(LIBRARIES, ""))
        code = _run_as(program.flags, [*flags, path, *asked["args"]], path, program.codes.get(path))
    finally:
        os._exit(code)


def _run_as(flags: frozenset[str], words: list[str], path: str | None, code: types.CodeType | None) -> int:
    """Run a program, the file `path` or where that is None the text after -c, as `python3 *words` would."""
    sys.orig_argv = [sys.executable, *words]
    start = words.index(path or "-c", len(list(takewhile(OPTIONS.fullmatch, words))))
    sys.argv = words[start:] if path else ["-c", *words[start + 2 :]]
    if not flags & {"I", "P"}:
        sys.path.insert(0, str(Path(path).resolve().parent) if path else "")  # the rest is ours: we have -I and -S
    sys.dont_write_bytecode = "B" in flags
    if path is None:
        return _run(None, lambda: compile(words[start + 1], "<string>", "exec", dont_inherit=True))
    return _run(path, lambda: code or compile(Path(path).read_bytes(), path, "exec", dont_inherit=True))


def _take_place(asked: dict[str, Any], streams: list[int], parent: int) -> None:
    """Group, death with the parent, signals, streams, folder and environment, as after fork and exec."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setpgid(0, 0)
    die_with(parent)
    for target, stream in enumerate(streams, start=1):
        os.dup2(stream, target)
    _close_all_but((0, 1, 2))
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])


def _close_all_but(kept: Iterable[int]) -> None:
    for opened in {int(name) for name in os.listdir("/proc/self/fd")}.difference(kept):  # noqa: PTH208
        with suppress(OSError):  # the listing's own is closed by now
            os.close(opened)


def _serve_neighbours(codes: dict[str, types.CodeType]) -> None:
    """Let imports find what was compiled before the fork."""
    compiled = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> types.CodeType | None:
        return codes.get(self.path) or compiled(self, fullname)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


def _serve_installed(modules: Modules) -> None:
    """Let imports find what was executed before the fork, once: a program that imports it does not share it."""
    execute = SourceFileLoader.exec_module

    def create_module(self: SourceFileLoader, spec: ModuleSpec) -> types.ModuleType | None:
        module = modules.pop(self.path, None)
        return None if module is None or _has_changed(module) else module

    def exec_module(self: SourceFileLoader, module: types.ModuleType) -> None:
        if module.__dict__.pop(KEY, None) is None:
            execute(self, module)

    SourceFileLoader.create_module = create_module  # type: ignore[method-assign, assignment]
    SourceFileLoader.exec_module = exec_module  # type: ignore[method-assign, assignment]


class Words(NamedTuple):
    """A command that starts Python with a program: the words behind the interpreter; `path`: None for -c and a text."""

    flags: frozenset[str]
    words: list[str]
    path: str | None

    @classmethod
    def read(cls, command: Any, env: Mapping[str, str] | None) -> "Words | None":
        """The command as one that can be forked; None where it is to be left to the kernel."""
        if not isinstance(command, list | tuple) or command[:1] not in ([sys.executable], (sys.executable,)):
            return None
        words = [os.fspath(word) for word in command[1:]]
        options = list(takewhile(OPTIONS.fullmatch, words))
        flags, rest = frozenset("".join(options)) - {"-"}, words[len(options) :]
        if not is_bare(flags) or not rest or not _links_alike(os.environ if env is None else env):
            return None
        if rest[0] == "-c":
            return cls(flags, words, None) if len(rest) > 1 else None
        return None if rest[0].startswith("-") or not Path(rest[0]).is_file() else cls(flags, words, rest[0])


def _links_alike(env: Mapping[str, str]) -> bool:
    """Whether the dynamic linker is told nothing that it heeds only when a program starts."""
    return all(name == LIBRARIES or not name.startswith("LD_") for name in env)


def _fork_programs(codes: dict[str, types.CodeType]) -> None:
    """Let the Python programs that this one starts be forked, too. What Popen does before exec is done all the same."""
    base = subprocess.Popen
    fresh = frozenset(sys.modules), list(sys.path)

    class Popen(base):  # type: ignore[valid-type, misc]
        def __init__(self, args: Any, *rest: Any, **options: Any) -> None:
            words = None if rest or OWN_WAYS & set(options) else Words.read(args, options.get("env"))
            if words is not None:
                options["preexec_fn"] = lambda: _be_child(words, codes, options, *fresh)
            super().__init__(args, *rest, **options)

    subprocess.Popen = Popen  # type: ignore[misc]


def _be_child(
    words: Words, codes: dict[str, types.CodeType], options: dict[str, Any], modules: frozenset[str], path: list[str]
) -> None:
    """Become a program that the program started, between fork and exec; never returns. Its folder and streams stand."""
    code = 1
    try:
        _close_all_but((0, 1, 2, *options.get("pass_fds", ())))  # whoever started us waits for this
        gc.freeze()  # nothing of the other program may come to its end here
        kept = sys.stdin, sys.stdout, sys.stderr, dict(sys.modules)
        _forget(modules)
        sys.path[:] = path
        if options.get("env") is not None:
            os.environ.clear()
            os.environ.update(options["env"])
        _find_libraries(os.environ.get(LIBRARIES, ""))
        code = _run_as(words.flags, words.words, words.path, codes.get(words.path or ""))
        del kept
    finally:
        os._exit(code)


def _forget(modules: frozenset[str]) -> None:
    """Drop what another program has made of this interpreter: its modules, ends, handlers of signals and streams."""
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] not in sys.stdlib_module_names:
            del sys.modules[name]
    atexit._clear()
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # what is ignored stays so in a program that is started
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        setattr(sys, name, _stream(descriptor, getattr(sys, f"__{name}__")))


def _stream(descriptor: int, like: io.TextIOWrapper) -> io.TextIOWrapper:
    """A standard stream with nothing in its buffer."""
    binary = open(descriptor, "rb" if descriptor == 0 else "wb", closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(binary, like.encoding, like.errors, line_buffering=like.line_buffering)


def _find_libraries(folders: str) -> None:
    """Look for shared libraries where the variable says: the dynamic linker has read its own before the fork."""
    load = ctypes.CDLL.__init__

    def found(self: ctypes.CDLL, name: str | None, *rest: Any, **options: Any) -> None:
        paths = [f"{folder}/{name}" for folder in folders.split(os.pathsep) if folder and "/" not in (name or "/")]
        load(self, next((path for path in paths if Path(path).exists()), name), *rest, **options)

    if folders:
        ctypes.CDLL.__init__ = found  # type: ignore[method-assign]


def _run(path: str | None, compiled: Callable[[], types.CodeType]) -> int:
    """The exit code of the program, which runs as __main__, after all that an interpreter does at its end."""
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    if path:
        main.__dict__.update(__file__=str(Path(path).absolute()), __cached__=None)
    sys.modules["__main__"] = main
    try:
        exec(compiled(), main.__dict__)
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


def warm() -> None:
    """Have `re` compile what argparse asks for in every program."""
    argparse.ArgumentParser(prog="", description="").parse_known_args([])


if __name__ == "__main__":
    die_with(int(sys.argv[2]))
    sys.dont_write_bytecode = True
    warm()
    Server(socket.socket(fileno=int(sys.argv[1]))).serve()
