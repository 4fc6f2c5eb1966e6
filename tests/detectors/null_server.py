"""A file server that knows one procedure, NULL, on 127.0.0.1; its mood says how it answers."""

import contextlib
import socket
import struct
import threading

from tests.detectors.listening import Listening

PROGRAM = 100003


class NullServer(Listening):
    """`mood`: answers, denies, other-version, other-call, no-program, silent, drip, hangs-up or garbage.

    `calls` is what it was asked. It reads calls by the rules of RFC 5531, on its own, and answers no other.
    """

    def __init__(self, mood: str = "answers"):
        self.mood = mood
        self.calls: list[tuple[int, ...]] = []
        super().__init__(socket.create_server(("127.0.0.1", 0)))
        self.port = self.listener.getsockname()[1]

    def _answer(self, connection: socket.socket) -> None:
        threading.Thread(target=self._reply, args=(connection,), daemon=True).start()

    def _reply(self, connection: socket.socket) -> None:
        (mark,) = struct.unpack(">I", connection.recv(4, socket.MSG_WAITALL))
        words = struct.unpack(">10I", connection.recv(mark & 0x7FFFFFFF, socket.MSG_WAITALL))
        assert words[1:4] == (0, 2, PROGRAM)
        assert words[4] in (3, 4)
        assert words[5:] == (0, 0, 0, 0, 0)
        self.calls.append(words)
        body = {
            "answers": struct.pack(">6I", words[0], 1, 0, 0, 0, 0),
            "other-version": struct.pack(">8I", words[0], 1, 0, 0, 0, 2, 3, 3),
            "no-program": struct.pack(">6I", words[0], 1, 0, 0, 0, 1),
            "denies": struct.pack(">5I", words[0], 1, 1, 1, 5),
            "other-call": struct.pack(">6I", words[0] ^ 1, 1, 0, 0, 0, 0),
            "garbage": b"HTTP/1.1 400 Bad Request\r\n",
        }.get(self.mood, b"")
        if self.mood == "drip":
            connection.sendall(struct.pack(">I", 1 << 31 | 24))
        elif self.mood != "silent":
            if self.mood != "hangs-up":
                connection.sendall(body if self.mood == "garbage" else struct.pack(">I", 1 << 31 | len(body)) + body)
            connection.close()


_held: list[socket.socket] = []


def dead_port(host: str = "127.0.0.1") -> int:
    """Return a port of `host` at which everybody is refused, over TCP and UDP, as long as this process lives.

    It is held by sockets of ours, or somebody else would get it: one does not listen, one hears nobody but itself.
    """
    while True:
        stream, datagrams = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
        _held.extend((stream, datagrams))
        stream.bind((host, 0))
        with contextlib.suppress(OSError):  # somebody has it over UDP
            datagrams.bind(stream.getsockname())
            datagrams.connect(stream.getsockname())
            return int(stream.getsockname()[1])
