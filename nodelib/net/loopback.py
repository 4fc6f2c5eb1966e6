"""Ask a service on this node's own loopback for its health over plain HTTP, with a deadline for all of it."""

import argparse
import re
import socket
import time

from nodelib.net.probe_result import ProbeReply, left

URL = re.compile(r"http://(localhost|127\.[0-9.]+|\[::1\]):([0-9]{1,5})(/[!-~]*)")
MOST_BYTES = 65_536


def loopback_url(text: str) -> str:
    """Check an option's value: HTTP without TLS goes to this node and nowhere else."""
    match = URL.fullmatch(text)
    if not match or not 0 < int(match[2]) < 65536:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no URL of this node's loopback: write http://127.0.0.1:PORT/PATH"
        )
    return text


def get(url: str, deadline: float) -> tuple[ProbeReply, str]:
    """Return what came of asking `url` for at most `deadline` seconds, and the text that it gave. Never raises.

    2xx and 3xx answer; 5xx and no answer at all are "silent"; what is neither HTTP nor of those is "unclear".
    """
    try:
        status, body = _get(url, time.monotonic() + deadline)
    except TimeoutError:
        return ProbeReply("silent", "no answer in time"), ""
    except ConnectionError as error:
        return ProbeReply("silent", error.strerror or str(error)), ""
    except (OSError, ValueError) as error:
        return ProbeReply("unclear", f"{type(error).__name__}: {error}"), ""
    if 200 <= status < 400:
        return ProbeReply("answers"), body
    return ProbeReply("silent" if status >= 500 else "unclear", f"HTTP {status}"), body


def _get(url: str, until: float) -> tuple[int, str]:
    match = URL.fullmatch(url)
    if not match:
        raise ValueError(f"{url!r} is no URL of this node's loopback")
    host = {"localhost": "127.0.0.1", "[::1]": "::1"}.get(match[1], match[1])
    with socket.create_connection((host, int(match[2])), timeout=left(until)) as connection:
        request = f"GET {match[3]} HTTP/1.0\r\nHost: {match[1]}\r\nConnection: close\r\n\r\n"
        connection.sendall(request.encode("ascii"))
        head, _, body = _read_all(connection, until).partition(b"\r\n\r\n")
    status = re.match(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: |\r|$)", head)
    if not head:
        raise ConnectionResetError("closed without an answer")
    if not status:
        raise ValueError("what listens there does not speak HTTP")
    return int(status[1]), body.decode("ascii", "replace")


def _read_all(connection: socket.socket, until: float) -> bytes:
    data = b""
    while len(data) < MOST_BYTES:
        connection.settimeout(left(until))
        more = connection.recv(MOST_BYTES)
        if not more:
            break
        data += more
    return data
