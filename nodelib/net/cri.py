"""Ask a container runtime for its Status over its own socket, with a deadline for all of it.

There is no gRPC here, only as much of HTTP/2 (RFC 9113), of its headers (RFC 7541) and of protobuf as one call without
arguments needs: a request of fixed bytes goes out, frames come in. Of the headers that come back one matters, the
status of the call, and it is found by its name's bytes instead of by decoding all.
"""

import os
import re
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nodelib.net.loopback import left
from nodelib.net.probe_result import ProbeReply

VERSIONS = ("runtime.v1", "runtime.v1alpha2")  # the second one up to containerd 1.5
UNIMPLEMENTED = 12  # a gRPC status: no such service here
NOT_ALLOWED = (7, 16)
MOST_BYTES = 1 << 20

DATA, HEADERS, RST_STREAM, SETTINGS, CONTINUATION = 0, 1, 3, 4, 9
END_STREAM, PADDED, PRIORITY = 0x1, 0x8, 0x20
ACK = 0x1
# The name grpc-status, plain or in Huffman's code, and its value: the code is longer than a digit or two, so it is not
# used for them.
GRPC_STATUS = re.compile(rb"(?:\x0bgrpc-status|\x88\x9a\xca\xc8\xb2\x12\x34\xda\x8f)[\x01\x02]([0-9]{1,2})")


class Ready(NamedTuple):
    """One condition of a runtime, such as RuntimeReady or NetworkReady, and the reason it gives when it is not."""

    ready: bool
    reason: str


class Runtime(NamedTuple):
    """What a runtime said: `reply` as of other services; `conditions` by type, {} unless it answers."""

    reply: ProbeReply
    conditions: dict[str, Ready]


def ask_runtime(path: Path, deadline: float) -> Runtime:
    """Ask the runtime at socket `path` for at most `deadline` seconds. Never raises."""
    until = time.monotonic() + deadline
    try:
        for version in VERSIONS:
            code, body = _call(path, f"/{version}.RuntimeService/Status", until)
            if code != UNIMPLEMENTED:
                break
        return _runtime(code, body)
    except TimeoutError:
        return Runtime(ProbeReply("silent", "no answer in time"), {})
    except BlockingIOError:
        return Runtime(ProbeReply("silent", "it takes no more calls"), {})
    except (ConnectionError, FileNotFoundError) as error:
        return Runtime(ProbeReply("silent", error.strerror or str(error)), {})
    except (OSError, ValueError) as error:
        return Runtime(ProbeReply("unclear", f"{type(error).__name__}: {error}"), {})


def _runtime(code: int | None, body: bytes) -> Runtime:
    if code == UNIMPLEMENTED:
        return Runtime(ProbeReply("silent", "it does not serve CRI"), {})
    if code:
        return Runtime(ProbeReply("unclear" if code in NOT_ALLOWED else "silent", f"gRPC status {code}"), {})
    return Runtime(ProbeReply("answers"), parse_status(body))


def _call(path: Path, method: str, until: float) -> tuple[int | None, bytes]:
    """Make one call without arguments; return its gRPC status, None where none was found, and its reply's bytes."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(left(until))
        folder = os.open(path.parent, os.O_PATH | os.O_CLOEXEC)
        try:
            connection.connect(f"/proc/self/fd/{folder}/{path.name}")  # a socket's path may have 107 bytes, no more
        finally:
            os.close(folder)
        connection.sendall(request(method))
        return _answer(connection, until)


def request(method: str) -> bytes:
    """Return all that a client says in one call of `method` without arguments."""
    fields = (
        b"\x83\x86"  # :method: POST, :scheme: http
        + b"\x04" + _text(method)  # :path
        + b"\x01" + _text("localhost")  # :authority
        + b"\x0f\x10" + _text("application/grpc")  # content-type
        + b"\x00" + _text("te") + _text("trailers")
    )  # fmt: skip
    return (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + _frame(SETTINGS, 0, 0, b"")
        + _frame(HEADERS, 0x4, 1, fields)  # END_HEADERS
        + _frame(DATA, END_STREAM, 1, bytes(5))  # a message of 0 bytes
    )


def _text(value: str) -> bytes:
    return bytes([len(value)]) + value.encode("ascii")


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload) << 8 | kind) + struct.pack(">BI", flags, stream) + payload


def _answer(connection: socket.socket, until: float) -> tuple[int | None, bytes]:
    """Read frames until stream 1 ends. Raises ConnectionError for an early end, ValueError for what is no HTTP/2."""
    body, headers, ending = b"", b"", False
    for kind, flags, stream, payload in _frames(connection, until):
        if kind == SETTINGS and not flags & ACK:
            connection.sendall(_frame(SETTINGS, ACK, 0, b""))
        if stream != 1:
            continue
        if kind == RST_STREAM:
            raise ConnectionResetError("it refused the call")
        if kind == DATA:
            body += _unpadded(payload, flags)
        elif kind in (HEADERS, CONTINUATION):
            headers += _unpadded(payload, flags) if kind == HEADERS else payload
        ending = ending or (kind in (DATA, HEADERS) and bool(flags & END_STREAM))
        if ending and (kind == DATA or flags & 0x4):
            status = GRPC_STATUS.search(headers)
            return int(status[1]) if status else None, body
    raise ConnectionResetError("closed without an answer")


def _frames(connection: socket.socket, until: float) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield the type, flags, stream and payload of each frame. The first one must be SETTINGS."""
    total, kind = 0, None
    while total < MOST_BYTES:
        head = _receive(connection, 9, until)
        if not head:
            return
        first = kind is None
        word, flags, stream = struct.unpack(">IBI", head)
        size, kind = word >> 8, word & 0xFF
        total += size
        if size > 16_384 or (first and kind != SETTINGS):
            raise ValueError("what listens there does not speak HTTP/2")
        yield kind, flags, stream & 0x7FFFFFFF, _receive(connection, size, until)
    raise ValueError("it does not stop answering")


def _receive(connection: socket.socket, size: int, until: float) -> bytes:
    """Return `size` bytes, or b"" at a clean end. Raises ConnectionResetError for an end in the middle."""
    data = b""
    while len(data) < size:
        connection.settimeout(left(until))
        more = connection.recv(size - len(data))
        if not more and (data or size != 9):
            raise ConnectionResetError("closed in the middle of an answer")
        if not more:
            return b""
        data += more
    return data


def _unpadded(payload: bytes, flags: int) -> bytes:
    pad = payload[0] if flags & PADDED and payload else 0
    start = bool(flags & PADDED) + (5 if flags & PRIORITY else 0)
    return payload[start : len(payload) - pad]


def parse_status(body: bytes) -> dict[str, Ready]:
    """Read gRPC's frame around a StatusResponse. Raises ValueError when it makes no sense or says nothing.

    StatusResponse {1: RuntimeStatus {1: repeated RuntimeCondition {1: type, 2: status, 3: reason, 4: message}}}
    """
    if len(body) < 5 or body[0] or len(body) != 5 + int.from_bytes(body[1:5], "big"):
        raise ValueError("its answer is no message")
    conditions = {}
    for status in _inner(body[5:], 1):
        for condition in _inner(status, 1):
            values = dict(_fields(condition))
            kind, ready, reason = values.get(1, b""), values.get(2, 0), values.get(3, b"")
            if not isinstance(kind, bytes) or not isinstance(ready, int) or not isinstance(reason, bytes):
                raise ValueError("its answer is no status")
            conditions[kind.decode("ascii", "replace")] = Ready(bool(ready), reason.decode("ascii", "replace"))
    if not conditions:
        raise ValueError("its answer holds no condition")
    return conditions


def _inner(message: bytes, number: int) -> Iterator[bytes]:
    """Yield the messages, or texts, in field `number`."""
    for field, value in _fields(message):
        if field == number:
            if not isinstance(value, bytes):
                raise ValueError("its answer is no status")
            yield value


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and value of each field of a protobuf message."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        if tag & 7 == 0:
            value, at = _varint(message, at)
            yield tag >> 3, value
        else:
            size, at = _varint(message, at) if tag & 7 == 2 else ({1: 8, 5: 4}.get(tag & 7, len(message)), at)
            if at + size > len(message):
                raise ValueError("its answer is cut short")
            yield tag >> 3, message[at : at + size]
            at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(message[at : at + 10]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    raise ValueError("its answer is cut short")
