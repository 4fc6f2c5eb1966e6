"""The first stage of a detector's run: the process that all detectors of the node share does the rest, in a fork.

That process has imported what they need: a run costs a third of what it costs by itself. Nothing is kept of a run, and
each is made when it is asked for. Who finds no such process starts one; where none begins to run it in time a detector
runs by itself, as it does from a checkout.
"""

import _socket
import os
import sys
import time

from nodelib.forks import wire

# Seconds from the start: until the process has heard, and until the fork has begun, which is more than its turn and all
# that is imported before may take where others have the processor. Whoever runs by itself holds twice the memory.
SOON, LATEST = 4.0, 8.0
STARTING, PAUSE = 1.0, 0.01  # seconds that another one may take to open the socket
UNKNOWN = 2
MOST_LOG, MOST_LINE = 65_536, 200
COARSE = 0.1  # seconds that the time of a file may lie before that of the clock
LOST = "this run was ended from outside before it had a result"


def hand_over(state: str) -> None:
    """Have this run done by the shared process, and end as it ends; return where that has not begun it."""
    came = time.monotonic()
    try:
        connection = _asked(state, came)
    except (OSError, ValueError):
        return
    if connection is None:
        return
    os._exit(_end(connection, state))


def _asked(state: str, came: float) -> _socket.socket | None:
    """Return the connection over which the end of the run will be told, None where it has not begun."""
    opened = wire.folder(state)
    try:
        connection = _connected(opened, state)
    finally:
        os.close(opened)
    if _has_begun(connection, came):
        return connection
    connection.close()
    return None


def _has_begun(connection: _socket.socket, came: float) -> bool:
    """Ask for the run, and tell whether it has begun. Raises OSError where the process is silent for too long."""
    connection.settimeout(SOON)
    connection.send(wire.packed(wire.own_request()))
    answer = connection.recv(len(wire.HEARD))
    if answer == wire.HEARD:
        connection.settimeout(max(PAUSE, came + LATEST - time.monotonic()))
        answer = connection.recv(len(wire.BEGUN))
    return answer == wire.BEGUN


def _end(connection: _socket.socket, state: str) -> int:
    """Wait for the end of the run, for as long as whoever started this process lets it, and return the exit code."""
    connection.settimeout(None)
    begun = time.time() - COARSE
    try:
        code, out, err = wire.heard(connection.recv(wire.MOST_BYTES))
    except (OSError, ValueError):
        code, out, err = UNKNOWN, f"{LOST}{_why(state, begun)}\n".encode(), b""
    for number, output in ((1, out), (2, err)):
        while output:
            output = output[os.write(number, output) :]
    return code


def _why(state: str, since: float) -> str:
    """Return what ended the shared process, "" where it has written nothing since then: the log has the whole error."""
    try:
        opened = wire.folder(state)
        log = wire.log(opened)
        os.close(opened)
        seen = os.fstat(log)
        lines = os.pread(log, MOST_LOG, max(0, seen.st_size - MOST_LOG)).decode(errors="replace").split("\n")
        os.close(log)
    except OSError:
        return ""
    last = [line for line in lines if line.strip()][-1:] if seen.st_mtime >= since else []
    kinds = [line.partition(":")[0][:MOST_LINE] for line in last]
    return "".join(f": {kind}" for kind in kinds if kind.isascii() and kind.replace(".", "").isidentifier())


def _connected(opened: int, state: str) -> _socket.socket:
    """Connect to the process, and start it where there is none. Raises BlockingIOError where another hangs at that."""
    until = time.monotonic() + STARTING
    while not (connection := _connect(opened)):
        try:
            lock = wire.lock(opened)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise
            time.sleep(PAUSE)
            continue
        try:
            return _connect(opened) or _start(opened, state)
        finally:
            os.close(lock)
    return connection


def _connect(opened: int) -> _socket.socket | None:
    """Return a connection to the process, None where there is none. Raises BlockingIOError where its queue is full."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    connection.settimeout(SOON)  # without one, connect waits for ever at the queue of a process that hangs
    try:
        connection.connect(wire.address(opened))
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    if not wire.is_ours(connection):
        raise PermissionError("the process is another user's")
    return connection


def _start(opened: int, state: str) -> _socket.socket:
    """Open the socket, be the first to wait at it, and start the process that answers there."""
    try:  # noqa: SIM105 - contextlib is one module more at each start
        os.unlink(wire.name(), dir_fd=opened)  # of a process that has ended
    except FileNotFoundError:
        pass
    listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    listener.bind(wire.address(opened))
    listener.listen(wire.BACKLOG)
    program = f"{wire.ROOT}/nodelib/forks/serve.py"
    command = [sys.executable, "-I", "-S", "-B", program, f"--state={os.path.abspath(state)}"]  # noqa: PTH100
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    connection.connect(wire.address(opened))
    if not os.fork():
        try:
            _become(command, listener.fileno(), opened)
        finally:
            os._exit(1)
    listener.close()
    return connection


def _become(command: list[str], listener: int, opened: int) -> None:
    """Become the shared process: of a session of its own, with the socket as its standard input and nothing of ours."""
    os.setsid()
    os.chdir("/")
    nothing = os.open(os.devnull, os.O_RDWR)
    for source, number in ((listener, 0), (nothing, 1), (_log(opened, nothing), 2)):
        os.dup2(source, number)
    os.closerange(3, 64)
    os.execv(command[0], command)


def _log(opened: int, nothing: int) -> int:
    """Open where the process says why it has ended, begun anew when it has grown; `nothing` where none can be had."""
    try:
        log = wire.log(opened)
        if os.fstat(log).st_size > MOST_LOG:
            os.ftruncate(log, 0)
    except OSError:
        return nothing
    return log
