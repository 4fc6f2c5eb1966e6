"""One run of a detector in a fork: what was asked for, and the process that does it."""

import _socket
import ctypes
import os
import signal
import sys
import time
import traceback
from contextlib import suppress
from types import CodeType, ModuleType

from nodelib.contract.npd import Verdict, one_line
from nodelib.forks import wire
from nodelib.state import slots

PR_SET_PDEATHSIG = 1
PRCTL = ctypes.CDLL(None).prctl  # looked up once, before any fork
MOST_OPEN = 1024  # no descriptor of this process has a higher number


class ForkedRun:
    """`pid`: of the fork, 0 before it has begun.

    A fork writes into files of this process, and has no pipe of whoever asked: one that hangs keeps nobody waiting.
    """

    def __init__(self, connection: _socket.socket, request: wire.Request) -> None:
        self.connection, self.request, self.came = connection, request, time.monotonic()
        self.nice = os.getpriority(os.PRIO_PROCESS, wire.asker(connection))
        self.pid = 0
        self._streams: list[int] = []

    @classmethod
    def asked(cls, connection: _socket.socket) -> "ForkedRun":
        """Return what is asked for at a connection, and say so: whoever asked knows that this process lives.

        Raises OSError or ValueError where nothing is asked for that can be done.
        """
        request = wire.unpacked(connection.recv(wire.MOST_BYTES))
        if request.python != sys.executable:
            raise ValueError(f"{request.python} is not {sys.executable}")
        run = cls(connection, request)
        connection.send(wire.HEARD)
        return run

    def begin(self, code: CodeType) -> None:
        """Fork, and say that it has begun. Raises OSError where no fork can be had, or where nobody hears it.

        It is said last: who hears nothing runs by itself.
        """
        for name in ("stdout", "stderr"):
            self._streams.append(os.memfd_create(name))
        server = os.getpid()
        self.pid = os.fork()
        if not self.pid:
            _end_with(server)
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, 0, self.nice)
            os._exit(_become(self.request, self._streams, code))
        with suppress(OSError):
            os.setpgid(self.pid, self.pid)
        self.connection.send(wire.BEGUN)

    @property
    def is_stuck(self) -> bool:
        """Whether it goes on though whoever asked is no more: it was killed, and the kernel does not end it."""
        return bool(self.pid) and self.connection.fileno() < 0

    def kill(self) -> None:
        """End it and what it has started, as node-problem-detector ends who has not answered in time."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def has_ended(self) -> bool:
        """Whether it has; then tell how, and what it has said. One that a signal has ended has no result to tell."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return False
        code = os.waitstatus_to_exitcode(status)
        out, err = (os.pread(stream, wire.MOST_SAID, 0) for stream in self._streams)
        if code >= 0 and self.connection.fileno() >= 0:
            with suppress(OSError):
                self.connection.send(wire.told(code, out, err))
        self._drop()
        return True

    def close(self) -> None:
        """Say nothing more: one that has not begun is left to whoever asked for it."""
        self.connection.close()
        if not self.pid:
            self._drop()

    def _drop(self) -> None:
        while self._streams:
            os.close(self._streams.pop())


def _end_with(server: int) -> None:
    """Have the kernel end this fork when the shared process ends, and end it here where that has just happened."""
    PRCTL(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != server:
        os._exit(int(Verdict.UNKNOWN))


def _become(request: wire.Request, streams: list[int], code: CodeType) -> int:
    """Be what whoever asked has started, and return its exit code if it returns."""
    try:
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, stream in enumerate((os.open(os.devnull, os.O_RDONLY), *streams)):
            os.dup2(stream, number)
        os.closerange(3, MOST_OPEN)
        os.chdir(request.folder)
        _name(request.program)
        _set_environment(dict(pair.split("=", 1) for pair in request.environment))
        sys.argv = list(request.options)
        sys.path.remove(wire.ROOT)  # the program adds it
        slots.in_fork = True
        return _executed(request.program, code)
    except BaseException as error:
        traceback.print_exc()
        print(one_line(f"{type(error).__name__}: {error}"), flush=True)
        return int(Verdict.UNKNOWN)


def _name(program: str) -> None:
    """Be listed under the name of the detector."""
    with suppress(OSError), open("/proc/self/comm", "w") as file:  # noqa: PTH123
        file.write(os.path.basename(program)[:15])  # noqa: PTH119


def _set_environment(wanted: dict[str, str]) -> None:
    if wanted != dict(os.environ):
        os.environ.clear()
        os.environ.update(wanted)


def _executed(program: str, code: CodeType) -> int:
    """Execute a program as the interpreter does: it ends by itself, or with what it raises."""
    module = sys.modules["__main__"] = ModuleType("__main__")
    module.__file__ = program
    try:
        exec(code, module.__dict__)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0
