"""The process that all detectors of a node share: `python3 serve.py --state=FOLDER`, with its socket as standard input.

ask.py starts it, nobody by hand. It imports what detectors need, once; for each run that it is asked for it forks, and
the fork runs that detector as if it had been started itself. It reads nothing of the node and waits for none of the
forks, so no detector that hangs hinders it or another. Whoever asked and is no more has its fork ended. It ends when
nobody has asked for some minutes, and when a file has changed that it has imported.
"""

import argparse
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import CodeType

sys.path.append(os.path.realpath(f"{__file__}/../../.."))  # where nodelib/ is: this file is a program, too

import _socket

from nodelib.forks import wire
from nodelib.forks.library import Library
from nodelib.forks.run import ForkedRun
from nodelib.host.child_process import utc
from nodelib.state.slots import PATIENCE, TURNS

IDLE = 660.0  # seconds: twice the longest interval of a detector, and a little


class Server:
    """Answers at `listener` until there is nothing left to do."""

    def __init__(self, listener: _socket.socket, state: str, idle: float) -> None:
        self._listener, self._state, self._idle = listener, state, idle
        self._library = Library()
        self._poll = select.poll()
        self._asking: dict[int, _socket.socket] = {}  # who has connected and asked for nothing yet
        self._runs: dict[int, ForkedRun] = {}  # by the descriptor of the connection
        self._forks: list[ForkedRun] = []  # whose process is there
        self._ended = ended_children()
        self._busy_at, self._is_over = time.monotonic(), False
        self._socket: tuple[int, int] | None = None
        with suppress(OSError), _folder(state) as opened:
            self._socket = _which(opened)
        for number in (listener.fileno(), self._ended):
            self._poll.register(number, select.POLLIN)

    def serve(self) -> None:
        """Answer until nobody has asked for long, or the code is no longer that of the files."""
        while not self._is_over and time.monotonic() - self._busy_at < self._idle:
            self._turn()
            if self._asking or self._runs or self._forks:
                self._busy_at = time.monotonic()
        self._poll.unregister(self._listener.fileno())
        self._remove()
        self._listener.close()
        for run in self._waiting():
            self._forget(run)
        while self._runs:  # those that have begun are told their end
            self._turn()

    def _remove(self) -> None:
        """Take the socket away, if it is ours still: from now on it is another process that is started."""
        with suppress(OSError), _folder(self._state) as opened:
            if self._socket is not None and _which(opened) == self._socket:
                os.unlink(wire.name(), dir_fd=opened)

    def _turn(self) -> None:
        for number, _ in self._poll.poll(1000 * self._patience()):
            self._take(number)
        if not self._has_learnt():
            for run in self._next():
                self._begin(run)

    def _has_learnt(self) -> bool:
        """Import what one of those needs who have come just now, if there is one whose detector is not known yet.

        This comes before a fork: an import writes to most pages, and each fork would keep those of before it.
        """
        for run in self._unknown():
            try:
                self._code(run.request.program)
            except (OSError, ValueError, SyntaxError):
                self._forget(run)
            return True
        return False

    def _unknown(self) -> list[ForkedRun]:
        return [run for run in self._waiting() if run.request.program not in self._library]

    def _waiting(self) -> list[ForkedRun]:
        return [run for run in self._runs.values() if not run.pid]

    def _patience(self) -> float:
        """For how long nothing happens unless somebody speaks."""
        if self._unknown() or self._next():
            return 0.0
        waiting = [run.came + PATIENCE - time.monotonic() for run in self._waiting()]
        return max(0.0, min([*waiting, self._idle])) + 0.01

    def _next(self) -> list[ForkedRun]:
        """Return those whose turn it is; who has waited for too long waits no more. Who hangs for good has no turn."""
        now, free = time.monotonic(), TURNS - sum(not fork.is_stuck for fork in self._forks)
        return [run for place, run in enumerate(self._waiting()) if place < free or now - run.came >= PATIENCE]

    def _take(self, number: int) -> None:
        if number == self._listener.fileno():
            self._accept()
        elif number == self._ended:
            os.read(number, 1024)
            self._reap()
        elif number in self._asking:
            self._hear(self._asking.pop(number))
        elif number in self._runs:  # there is nothing more to say: whoever asked is no more
            run = self._runs[number]
            self._forget(run)
            if run.pid:
                run.kill()

    def _accept(self) -> None:
        """Take who has connected. Where there is no descriptor left, end: it would be asked for again and again."""
        try:
            number, _ = self._listener._accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError:
            self._is_over = True
            return
        connection = _socket.socket(fileno=number)
        connection.setblocking(False)
        if wire.is_ours(connection) and wire.is_here(connection):
            self._asking[number] = connection
            self._poll.register(number, select.POLLIN)
        else:
            connection.close()

    def _hear(self, connection: _socket.socket) -> None:
        """Take a request; who asks for what cannot be done is left alone."""
        try:
            run = ForkedRun.asked(connection)
        except (OSError, ValueError):
            self._poll.unregister(connection.fileno())
            connection.close()
        else:
            self._runs[connection.fileno()] = run

    def _begin(self, run: ForkedRun) -> None:
        """Let a run begin, unless that is not for us; whoever is not there any more has none."""
        try:
            code = self._code(run.request.program)
            run.begin(code)
        except (OSError, ValueError, SyntaxError):
            self._forget(run)
            if run.pid:
                run.kill()
        if run.pid:
            self._forks.append(run)

    def _code(self, program: str) -> CodeType:
        """Raises OSError, ValueError or SyntaxError for what is to run by itself."""
        self._is_over = self._is_over or self._library.has_changed()
        if self._is_over or any(fork.is_stuck and fork.request.program == program for fork in self._forks):
            raise ValueError("not here")  # beside one that hangs for good: they would become more at each interval
        return self._library.code(program)

    def _reap(self) -> None:
        for run in [run for run in self._forks if run.has_ended()]:
            self._forks.remove(run)
            if run.connection.fileno() >= 0:
                self._forget(run)

    def _forget(self, run: ForkedRun) -> None:
        self._poll.unregister(run.connection.fileno())
        del self._runs[run.connection.fileno()]
        run.close()


@contextmanager
def _folder(state: str) -> Iterator[int]:
    """Keep the folder of sockets open for a while. Raises OSError."""
    opened = wire.folder(state)
    try:
        yield opened
    finally:
        os.close(opened)


def _which(opened: int) -> tuple[int, int]:
    """Return what the socket in this folder is known again by. Raises OSError where there is none."""
    seen = os.stat(wire.name(), dir_fd=opened)
    return seen.st_dev, seen.st_ino


def ended_children() -> int:
    """Return a descriptor that can be read when a child has ended. A pidfd would need a kernel of 2019."""
    reading, writing = os.pipe()
    for number in (reading, writing):
        os.set_blocking(number, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reading


def main() -> None:
    """Serve at the socket that is standard input."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--state", required=True, help="where the detectors keep their files")
    options.add_argument("--idle", type=float, default=IDLE, help="seconds after which it ends unless it is asked")
    chosen = options.parse_args()
    listener = _socket.socket(fileno=os.dup(0))
    listener.setblocking(False)
    os.dup2(1, 0)  # /dev/null: what is closed later is open nowhere else
    os.umask(0o022)
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)  # whoever came first may have given way to others: no other need
    try:
        Server(listener, chosen.state, chosen.idle).serve()
    except Exception:
        print(f"The process that runs detectors has ended at {utc()}.", file=sys.stderr)
        raise


if __name__ == "__main__":
    main()
