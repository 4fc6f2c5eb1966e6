"""Ask a cloud's metadata service: plain HTTP to one link-local address, with a deadline for all of it.

No name is looked up, no proxy is asked and no redirect is followed: a request leaves the machine for nobody else. A
test puts a server of its own on the loopback in its place.
"""

import argparse
import re
import socket
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from nodelib.net.probe_result import left

SERVICE = "169.254.169.254:80"
PLACE = re.compile(r"((?:169\.254|127\.[0-9]{1,3})\.[0-9]{1,3}\.[0-9]{1,3}):([0-9]{1,5})")
MOST_BYTES = 65_536
HEAD = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: |\r|$)")
LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]{1,9}) *(?:\r|$)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked *(?:\r|$)", re.IGNORECASE)


class Page(NamedTuple):
    """An answer: its status, and its body."""

    status: int
    body: str


Ask = Callable[..., Page]  # of a path, a method, and headers; raises OSError, ValueError


def place(text: str) -> str:
    """Check an option's value: a metadata service is on a link-local address, or on the loopback for a test."""
    match = PLACE.fullmatch(text)
    if not match or not 0 < int(match[2]) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is no link-local address: write {SERVICE}")
    return text


def asker(service: str, seconds: float) -> Ask:
    """Return what asks `service` for one path after another, for `seconds` in all."""
    until = time.monotonic() + seconds
    host, _, port = service.partition(":")

    def ask(path: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Page:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", "Content-Length: 0"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        with socket.create_connection((host, int(port)), timeout=left(until)) as connection:
            connection.sendall("\r\n".join([*lines, "", ""]).encode("ascii"))
            return parse(_read_all(connection, until))

    return ask


def parse(answer: bytes) -> Page:
    """Read a whole answer. Raises ConnectionError for none, ValueError for what is no answer or not all of it."""
    head, end, body = answer.partition(b"\r\n\r\n")
    if not answer:
        raise ConnectionResetError("closed without an answer")
    status, length = HEAD.match(head), LENGTH.search(head)
    if not status or not end:
        raise ValueError("what listens there does not speak HTTP")
    if CHUNKED.search(head):
        body = _joined(body)
    elif length and len(body) != int(length[1]):
        raise ValueError("the answer is cut off")
    return Page(int(status[1]), body.decode("utf-8", "replace"))


def _joined(body: bytes) -> bytes:
    """Join the chunks of a body."""
    whole = b""
    while True:
        size, end, rest = body.partition(b"\r\n")
        if not end or not re.fullmatch(rb"[0-9A-Fa-f]{1,6}", size):
            raise ValueError("the answer is cut off")
        count = int(size, 16)
        if not count:
            return whole
        if rest[count : count + 2] != b"\r\n":
            raise ValueError("the answer is cut off")
        whole, body = whole + rest[:count], rest[count + 2 :]


def _read_all(connection: socket.socket, until: float) -> bytes:
    data = b""
    while len(data) <= MOST_BYTES:
        connection.settimeout(left(until))
        more = connection.recv(MOST_BYTES)
        if not more:
            return data
        data += more
    raise ValueError("the answer has no end")
