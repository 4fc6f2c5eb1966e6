"""What asks in the place of kube-scheduler, and takes next to no time for it: a socket that blocks, and ready bytes.

kube-scheduler is written in Go: the time of a client in Python, as long as that of the answer, says nothing of it.
"""

import re
import socket
import ssl
import time
from typing import Self
from urllib.parse import urlsplit

PAUSE = 0.004  # between two requests: the scheduler has work of its own
SECONDS = 60.0  # until an answer must be there
LARGEST = 2**22  # bytes of an answer with its head
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)

_LAST = b"\r\n0\r\n\r\n"  # chunk


class Asker:
    """One connection that is kept; `tls`: what it trusts and shows, None for clear text."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        where = urlsplit(url)
        assert where.hostname is not None
        self._host = f"{where.hostname}:{where.port}"
        plain = socket.create_connection((where.hostname, where.port), SECONDS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = tls.wrap_socket(plain, server_hostname=where.hostname) if tls else plain
        self._answer = bytearray(LARGEST)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def post(self, path: str, body: bytes) -> float:
        """Seconds from the first byte sent to the last byte read, after a pause."""
        words = (f"POST {path} HTTP/1.1", f"Host: {self._host}", "Content-Type: application/json")
        sent = "\r\n".join((*words, f"Content-Length: {len(body)}", "", "")).encode() + body
        time.sleep(PAUSE)
        began = time.perf_counter()
        self._socket.sendall(sent)
        self._read()
        return time.perf_counter() - began

    def _read(self) -> None:
        """One answer: its head, and as many bytes as that says, or chunks until the last one."""
        view, got, ends = memoryview(self._answer), 0, -1
        while ends < 0:
            got += self._more(view[got:])
            ends = self._answer.find(b"\r\n\r\n", 0, got)
        head = bytes(view[: ends + 4])
        assert head.startswith(b"HTTP/1.1 200 "), head
        length = _LENGTH.search(head)
        while got < len(head) + int(length[1]) if length else not self._answer.endswith(_LAST, ends, got):
            got += self._more(view[got:])

    def _more(self, room: memoryview) -> int:
        count = self._socket.recv_into(room)
        assert count, "the connection has ended in the middle of an answer"
        return count
