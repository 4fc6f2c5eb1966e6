"""A file system that answers statfs as it is told to, or never: `fuse_server.py FOLDER SECONDS`.

Orders on stdin:
  answer N   answer with the errno N (0: fine), those that wait included
  hang       take requests and leave them without an answer: who asks waits in state D, and no signal ends that
  asked      how many times statfs was asked
  abort      end the connection, as a person does through /sys/fs/fuse/connections: who waits gets ENOTCONN

FUSE's messages are those of include/uapi/linux/fuse.h, version 7.31.
"""

import contextlib
import os
import struct
import sys
from pathlib import Path

from private import be_private, converse, mount, unmount

CONTROL = Path("/sys/fs/fuse/connections")
FORGET, STATFS, INIT, INTERRUPT, FORGET_MANY = 2, 17, 26, 36, 42
HEAD, REPLY = struct.Struct("=IIQQIIIHH"), struct.Struct("=IiQ")
STARTED = struct.pack("=IIIIHHIIHHI7I", 7, 31, 4096, 0, 12, 9, 4096, 1, 1, 0, 0, *[0] * 7)
NUMBERS = struct.pack("=5Q4I6I", 1000, 500, 500, 100, 50, 4096, 255, 4096, 0, *[0] * 6)
NOT_KNOWN = 38  # ENOSYS


class Server:
    """One connection. `code`: the errno of every answer, None for no answer."""

    def __init__(self, point: str):
        self.code: int | None = 0
        self.asked = 0
        self._waiting: list[int] = []
        self.device = os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK)
        mount("hanging", point, "fuse", f"fd={self.device},rootmode=40000,user_id=0,group_id=0,allow_other")
        mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        self._number = next(fields[2].split(":")[1] for fields in mounts if fields[4] == point)

    def take(self) -> None:
        """Take one request; after the end of the connection nothing can be taken."""
        try:
            message = os.read(self.device, 1 << 17)
        except (BlockingIOError, FileNotFoundError):  # the latter: who asked has gone before we looked
            return
        _, kind, unique, *_ = HEAD.unpack_from(message)
        if kind == INIT:
            self._reply(unique, 0, STARTED)
        elif kind == STATFS:
            self.asked += 1
            self._waiting.append(unique)
            self._answer_all()
        elif kind not in (FORGET, FORGET_MANY, INTERRUPT):
            self._reply(unique, NOT_KNOWN)

    def obey(self, order: str) -> object:
        """Carry out one order and return what to say."""
        word, _, rest = order.partition(" ")
        if word == "asked":
            return self.asked
        if word == "abort":
            if not (CONTROL / self._number).is_dir():
                mount("control", str(CONTROL), "fusectl")
            (CONTROL / self._number / "abort").write_text("1")
            return word
        self.code = int(rest) if word == "answer" else None
        self._answer_all()
        return word

    def _answer_all(self) -> None:
        while self.code is not None and self._waiting:
            self._reply(self._waiting.pop(), self.code, b"" if self.code else NUMBERS)

    def _reply(self, unique: int, code: int, body: bytes = b"") -> None:
        with contextlib.suppress(OSError):  # nobody waits for it any more
            os.write(self.device, REPLY.pack(REPLY.size + len(body), -code, unique) + body)


def main(point: str, seconds: float) -> None:
    be_private()
    server = Server(point)
    also = {server.device: lambda: take(server, also)}
    try:
        converse(server.obey, seconds, also)
    finally:
        unmount(point)
        os.close(server.device)


def take(server: Server, also: dict) -> None:
    """Take one request, or no more of them once the connection has ended."""
    try:
        server.take()
    except OSError:
        also.clear()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
