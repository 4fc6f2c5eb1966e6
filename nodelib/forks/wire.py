"""How a detector's process and the one that all detectors of a node share find and understand each other.

They meet at a socket in a folder that only the user of both can enter; nothing is believed of another user's process.
The name of the socket is that of the mount namespace: the process of another container, with its own files and its own
version, is never met. Nothing but this stands here, because each run of a detector imports it.
"""

import _socket  # socket itself takes longer to import than all that a run asks for
import fcntl
import os
import stat
import sys

MOST_BYTES = 196_608  # of a message: options and environment, or what was said
MOST_SAID = 65_536  # of what a run has written to each of its streams
HEARD, BEGUN = b"heard", b"begun"
BACKLOG = 128
ROOT = os.path.realpath(f"{__file__}/../../..")  # pathlib is half of what is to be saved


class Request:
    """What is to be run: the file, the folder from which, the interpreter, its options, NAME=VALUE of its environment.

    It is no NamedTuple: that takes longer to import than all that a run asks for.
    """

    def __init__(self, program: str, folder: str, python: str, options: list[str], environment: list[str]) -> None:
        self.program, self.folder, self.python = program, folder, python
        self.options, self.environment = options, environment


def packed(request: Request) -> bytes:
    """Return a request as it is sent. Raises OSError for one that is too long."""
    options = request.options
    parts = (request.program, request.folder, request.python, str(len(options)), *options, *request.environment)
    message = b"\0".join(os.fsencode(part) for part in parts)
    if len(message) > MOST_BYTES:
        raise OSError(f"a request of {len(message)} bytes")
    return message


def unpacked(message: bytes) -> Request:
    """Return what was sent. Raises ValueError for what is no request."""
    program, folder, python, count, *rest = (os.fsdecode(part) for part in message.split(b"\0"))
    return Request(program, folder, python, rest[: int(count)], rest[int(count) :])


def told(code: int, out: bytes, err: bytes) -> bytes:
    """Return the message that a run has ended, with its exit code and what it has written."""
    return bytes([code]) + len(out).to_bytes(4, "big") + out + err


def heard(message: bytes) -> tuple[int, bytes, bytes]:
    """Return exit code and both outputs of such a message. Raises ValueError for what is none."""
    if len(message) < 5:
        raise ValueError("no end")
    end = 5 + int.from_bytes(message[1:5], "big")
    return message[0], message[5:end], message[end:]


def own_request() -> Request:
    """Return the request for what this process was started for."""
    program = os.path.realpath(sys.argv[0])
    environment = [f"{name}={value}" for name, value in os.environ.items()]
    return Request(program, os.getcwd(), sys.executable, sys.argv, environment)  # noqa: PTH109


def folder(state: str) -> int:
    """Open the folder of sockets below the state folder, made where it is not there. Raises OSError.

    It raises PermissionError where another user could have put something there.
    """
    path = f"{state}/forks"
    try:
        opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        os.makedirs(path, 0o700, exist_ok=True)  # noqa: PTH103
        opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    owner = os.fstat(opened)
    if owner.st_uid != os.geteuid() or stat.S_IMODE(owner.st_mode) & 0o077:
        os.close(opened)
        raise PermissionError(f"{path} is not ours alone")
    return opened


def name(pid: int | str = "self") -> str:
    """Return the name of the socket in the mount namespace of a process. Raises OSError where that is not seen."""
    return str(os.stat(f"/proc/{pid}/ns/mnt").st_ino)  # noqa: PTH116


def address(opened: int) -> str:
    """Return where the socket is: a path that is short however long that of the state folder is."""
    return f"/proc/self/fd/{opened}/{name()}"


def is_ours(connection: _socket.socket) -> bool:
    """Tell whether the process at the other end is one of our own user's."""
    return _other_end(connection)[1] == os.geteuid()


def asker(connection: _socket.socket) -> int:
    """Return the pid of the process that has connected."""
    return _other_end(connection)[0]


def is_here(connection: _socket.socket) -> bool:
    """Tell whether the process that has connected has our mount namespace: a container has files of its own."""
    try:
        return name(asker(connection)) == name()
    except OSError:
        return False


def _other_end(connection: _socket.socket) -> tuple[int, int]:
    """Return pid and user of the process at the other end."""
    seen = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(seen[:4], sys.byteorder), int.from_bytes(seen[4:8], sys.byteorder)


def log(opened: int) -> int:
    """Open the file in which the process says why it has ended. Raises OSError."""
    flags = os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(f"{name()}.log", flags, 0o600, dir_fd=opened)


def lock(opened: int) -> int:
    """Open the lock of who starts the process. Raises BlockingIOError while another one has it."""
    file = os.open(f"{name()}.lock", os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=opened)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise
    return file
