"""One end of ib_write_bw in a network of its own, joined to the other end by one connection that is handed in.

Both ends of ib_write_bw agree over TCP, and ask nobody who the other one is. So neither can be reached: it listens, or
calls, where there is nothing but loopback, and what it says goes through a connection that the programs of both nodes
have made, and of which each has checked the other side.
"""

import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from nodelib.host.commands import Command, ends_by, run

RELAY, CALLS, LISTENS = "--relay", "calls", "listens"
ON_NODE = ("nsenter", "--target", "1", "--mount", "--")  # the node's programs, in the network of who starts them
LOOPBACK, JOIN_SECONDS, END_SECONDS = "127.0.0.1", 5.0, 2.0
AS_SHELL = 128  # what is added to a signal's number in an exit code


def has_tool() -> bool:
    """Whether the node has ib_write_bw."""
    return run(("sh", "-c", "command -v ib_write_bw"), 5.0).code == 0


def start(program: str, role: str, connection: socket.socket, port: str) -> Command:
    """Start the child of `program` that is this end, of a port DEVICE/NUMBER. It takes the connection with it."""
    device, _, number = port.partition("/")
    inside = ("unshare", "--net", "--", sys.executable, "-I", "-S", program)
    words = (*inside, RELAY, role, str(connection.fileno()), device, number)
    return Command(words, (), fds=(connection.fileno(),))


def relay(words: Sequence[str]) -> int:
    """Be that child: let ib_write_bw run, and carry what both ends say. Returns the exit code of ib_write_bw."""
    role, connection, device, number = words
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(AS_SHELL + signal.SIGTERM))
    if subprocess.run((*ON_NODE, "ip", "link", "set", "lo", "up"), stdin=subprocess.DEVNULL, check=False).returncode:
        print("loopback cannot be switched on")
        return 1
    with socket.socket(fileno=int(connection)) as outside, socket.create_server((LOOPBACK, 0)) as listener:
        outside.setblocking(True)
        port = listener.getsockname()[1]
        if role == LISTENS:
            listener.close()
        tool = subprocess.Popen(
            (*ON_NODE, "ib_write_bw", *told(device, number, port), *([LOOPBACK] if role == CALLS else [])),
            stdin=subprocess.DEVNULL,
        )
        try:
            with join(tool, listener if role == CALLS else None, port) as inside:
                carry(inside, outside)
        except OSError as error:
            print(f"ib_write_bw and its other end do not talk: {error}")
        finally:
            if not ends_by(tool, time.monotonic() + END_SECONDS):
                tool.kill()
        return tool.wait()


def told(device: str, number: str, port: int) -> tuple[str, ...]:
    """What one end of a measurement of two seconds is told."""
    return ("-d", device, "-i", number, "-D", "2", "-F", "--report_gbits", "-p", str(port))


def join(tool: subprocess.Popen[bytes], listener: socket.socket | None, port: int) -> socket.socket:
    """Return the connection with ib_write_bw: it calls `listener`, or is called. Raises OSError where none comes."""
    until = time.monotonic() + JOIN_SECONDS
    while True:
        try:
            if listener is None:
                return socket.create_connection((LOOPBACK, port), 1.0)
            listener.settimeout(0.2)
            return listener.accept()[0]
        except OSError:
            if tool.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.05)


def carry(inside: socket.socket, outside: socket.socket) -> None:
    """Carry bytes both ways until neither side has more to say."""
    inside.setblocking(True)
    other = {inside: outside, outside: inside}
    with selectors.DefaultSelector() as selector:
        for side in other:
            selector.register(side, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                side = key.fileobj
                data = side.recv(65536)
                if data:
                    other[side].sendall(data)
                    continue
                selector.unregister(side)
                with suppress(OSError):
                    other[side].shutdown(socket.SHUT_WR)
