"""Ask a name server one question over plain sockets, with a deadline, and read resolv.conf. Judges nothing.

Any answer shows that a server works, also that there is no such name; the answer's records are not looked at.
"""

import errno
import ipaddress
import os
import socket
import struct
import time
from typing import Any, NamedTuple

from nodelib.net.probe_result import SILENCE, ProbeReply, failure, left

PORT = 53
SENDS = 3  # a datagram may be lost; the C library sends two
UDP_SHARE = 0.6  # of the deadline; the rest is for TCP
TYPES = {"NS": 2, "A": 1}
# What an answer's code says of the server (RFC 1035, section 4.1.1). That a name does not exist (3) is an answer.
CODES = {0: "answers", 3: "answers", 2: "SERVFAIL", 5: "refuses the question"}

UNREACHABLE = SILENCE | {errno.ENETUNREACH, errno.ENETDOWN}  # a node without a way to its servers has no names either


Where = tuple[socket.AddressFamily, Any]


class Question(NamedTuple):
    """A name and the type of record, "A" or "NS"."""

    name: str
    kind: str = "A"


ROOT = Question(".", "NS")


class Resolver(NamedTuple):
    """What a resolv.conf says. `servers`: those that the C library asks; `over_tcp`: only ever over TCP.

    `domain`: the first one that it searches, "" for none.
    """

    servers: tuple[str, ...]
    over_tcp: bool = False
    domain: str = ""


def parse_resolv(text: str) -> Resolver:
    """Read resolv.conf. Raises ValueError for a server that is no address."""
    lines = [line.split() for line in text.splitlines() if not line.startswith(("#", ";"))]
    servers = [words[1] for words in lines if words[:1] == ["nameserver"] and len(words) > 1]
    options = {word for words in lines if words[:1] == ["options"] for word in words[1:]}
    searched = [words[1].rstrip(".") for words in lines if words[:1] in (["search"], ["domain"]) and len(words) > 1]
    for server in servers:
        ipaddress.ip_address(server)
    asked = tuple(dict.fromkeys(servers[:3]))  # the C library knows three
    return Resolver(asked, "use-vc" in options, searched[-1] if searched else "")  # of such lines the last one holds


def encode(question: Question, number: int) -> bytes:
    """Return a query that wants recursion. Raises ValueError for what is no name."""
    labels = [label.encode("ascii") for label in question.name.rstrip(".").split(".") if question.name.rstrip(".")]
    if any(not 0 < len(label) < 64 for label in labels) or sum(map(len, labels)) + len(labels) > 253:
        raise ValueError(f"{question.name!r} is no name")
    name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    return struct.pack(">6H", number, 0x0100, 1, 0, 0, 0) + name + struct.pack(">2H", TYPES[question.kind], 1)


def parse_answer(query: bytes, packet: bytes) -> int | None:
    """Return the code of an answer to `query`; None where it is none (of another query, or no DNS at all)."""
    if len(packet) < 12 or packet[:2] != query[:2] or not packet[2] & 0x80:
        return None
    code = packet[3] & 0x0F
    same = packet[12 : len(query)].lower() == query[12:].lower()
    return code if same or (code and packet[4:6] == b"\0\0") else None  # who refuses may leave the question out


def ask_nameserver(
    server: str, question: Question, deadline: float, over_tcp: bool = False, port: int = PORT
) -> ProbeReply:
    """Ask `server` over UDP, then over TCP, for at most `deadline` seconds in all. Never raises.

    A server that is silent over UDP and answers over TCP is "silent" with that as its cause: programs ask over UDP.
    One that answers SERVFAIL is "silent", too: nobody gets a name from it.
    """
    start = time.monotonic()
    if over_tcp:
        return _try(socket.SOCK_STREAM, server, port, question, start + deadline)
    reply = _try(socket.SOCK_DGRAM, server, port, question, start + deadline * UDP_SHARE)
    if reply.word != "silent" or reply.why == "SERVFAIL":
        return reply
    answers = _try(socket.SOCK_STREAM, server, port, question, start + deadline).word == "answers"
    return ProbeReply("silent", "only over TCP") if answers else reply


def _try(kind: socket.SocketKind, server: str, port: int, question: Question, until: float) -> ProbeReply:
    ask = _ask_tcp if kind is socket.SOCK_STREAM else _ask_udp
    try:
        return ask(_where(server, port, kind), encode(question, int.from_bytes(os.urandom(2), "big")), until)
    except (OSError, ValueError) as error:
        return failure(error, UNREACHABLE)


def _where(server: str, port: int, kind: socket.SocketKind) -> Where:
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    family, _, _, _, address = socket.getaddrinfo(server, port, type=kind, flags=flags)[0]
    return family, address


def _ask_udp(where: Where, query: bytes, until: float) -> ProbeReply:
    family, address = where
    pause, odd = left(until) / SENDS, False
    with socket.socket(family, socket.SOCK_DGRAM) as connection:
        connection.connect(address)  # so that a refusal by ICMP comes back, and nobody else's packets do
        for _ in range(SENDS):
            connection.send(query)
            again = min(until, time.monotonic() + pause)
            try:
                while True:
                    connection.settimeout(left(again))
                    code = parse_answer(query, connection.recv(65_535))
                    if code is not None:
                        return judge_code(code)
                    odd = True
            except TimeoutError:
                pass
    return ProbeReply("unclear", "what it says is no answer") if odd else ProbeReply("silent", "no answer in time")


def _ask_tcp(where: Where, query: bytes, until: float) -> ProbeReply:
    family, address = where
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(left(until))
        connection.connect(address)
        connection.sendall(struct.pack(">H", len(query)) + query)
        packet = b""
        while len(packet) < 2 or len(packet) < 2 + int.from_bytes(packet[:2], "big"):
            connection.settimeout(left(until))
            more = connection.recv(65_535)
            if not more:
                return ProbeReply("silent", "closed without an answer")
            packet += more
    code = parse_answer(query, packet[2:])
    return ProbeReply("unclear", "what it says is no answer") if code is None else judge_code(code)


def judge_code(code: int) -> ProbeReply:
    """Turn an answer's code into a reply."""
    word = CODES.get(code, f"answers with code {code}")
    return ProbeReply("answers") if word == "answers" else ProbeReply("silent" if code == 2 else "unclear", word)
