"""How long a target takes to answer a connection over TCP: what the kernel measured, not when this process was woken.

A connection is opened and closed again; nothing is sent. Needs no privilege.
"""

import socket
import struct
import time
from typing import NamedTuple

from nodelib.net.probe_result import ProbeReply, failure, left

CONNECTS = 3  # of which the middle one counts, so that one segment that was lost is none
INFINITE = float("inf")
RTT, AGAIN, LENGTH = 68, 100, 104  # in struct tcp_info: microseconds, segments that were sent again; bytes up to there


class Target(NamedTuple):
    """Whom to ask, and how many milliseconds the answer may take. `host` is an address."""

    host: str
    port: int
    limit: float

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class RoundTrip(NamedTuple):
    """What came of asking a target; `ms`: the middle of its times, infinite unless it answers."""

    reply: ProbeReply
    ms: float = INFINITE


def target(words: str) -> Target:
    """Read ADDRESS:PORT=MS. Raises ValueError that says what is wrong.

    >>> target("10.0.0.5:443=2.5"), str(target("[fd00::1]:443=5"))
    (Target(host='10.0.0.5', port=443, limit=2.5), '[fd00::1]:443')
    """
    place, _, limit = words.rpartition("=")
    host, _, port = place.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    family = socket.AF_INET6 if bare != host else socket.AF_INET
    try:
        socket.inet_pton(family, bare)
        parsed = Target(bare, int(port), float(limit))
    except (OSError, ValueError):
        raise ValueError("it is not ADDRESS:PORT=MS, such as 10.0.0.5:443=2 or [fd00::5]:443=2") from None
    if not 0 < parsed.port < 65536 or not 0 < parsed.limit < 60_000:
        raise ValueError("the port is none, or the limit is not between 0 and 60000 milliseconds")
    return parsed


def measure(asked: Target, deadline: float) -> RoundTrip:
    """Ask a target a few times within `deadline` seconds."""
    until, times, last = time.monotonic() + deadline, [INFINITE] * CONNECTS, ProbeReply("silent", "no answer in time")
    for index in range(CONNECTS):
        try:
            times[index] = connect(asked, min(left(until), deadline / CONNECTS))
        except OSError as error:
            last = failure(error)
    middle = sorted(times)[CONNECTS // 2]
    return RoundTrip(last) if middle == INFINITE else RoundTrip(ProbeReply("answers"), middle)


def connect(asked: Target, timeout: float) -> float:
    """Return the milliseconds until one connection was there. Raises OSError."""
    begun = time.monotonic()
    with socket.create_connection((asked.host, asked.port), timeout) as connection:
        waited = (time.monotonic() - begun) * 1000
        tcp_info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, LENGTH)
    return kernels(tcp_info) or waited


def kernels(tcp_info: bytes) -> float:
    """Return the milliseconds that the kernel measured; 0 where it tells none, or had to send a segment again."""
    if len(tcp_info) < LENGTH:
        return 0.0
    (rtt,), (again,) = struct.unpack_from("I", tcp_info, RTT), struct.unpack_from("I", tcp_info, AGAIN)
    return 0.0 if again else float(rtt) / 1000
