"""NFS as a node sees it without touching a mount: what is mounted, how it fares, and whether its server answers.

Mounts are those of process 1, from `mountinfo` and `mountstats` under its folder in /proc: reading these cannot hang.
A server is asked for RPC's procedure NULL over a plain socket, with a deadline.
"""

import errno
import os
import re
import socket
import struct
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nodelib.host import mountinfo
from nodelib.host.mountinfo import unescape
from nodelib.net.probe_result import ProbeReply, failure, in_the_nodes_network, left, together

PORT = 2049
NFS = 100003  # RPC program number (RFC 5531, RFC 7530)
KINDS = ("nfs", "nfs4")
VOLUMES = "volumes of Pods"
CLOSES = "it closes the connection"


class NfsTarget(NamedTuple):
    """Whom to ask. `tcp`: whether the mount itself speaks TCP; where it does not, silence over TCP proves nothing."""

    address: str
    port: int = PORT
    tcp: bool = True

    def __str__(self) -> str:
        host = f"[{self.address}]" if ":" in self.address and self.port != PORT else self.address
        return host if self.port == PORT else f"{host}:{self.port}"


class NfsMount(NamedTuple):
    """One NFS mount.

    `device`: major:minor of its super block; `source`: server:/export, as it was mounted; `server`: None where the
    options do not tell; `version`: the major one of the protocol.
    """

    device: str
    point: str
    source: str
    server: NfsTarget | None
    version: int

    @property
    def export(self) -> str:
        """What the server calls it; volumes of Pods, which differ from node to node, have one name together."""
        return VOLUMES if "/kubelet/" in self.point else "/" + self.source.partition(":/")[2]


class NfsMounts(NamedTuple):
    """What is mounted from NFS, volumes of Pods last, in order of path; `garbled`: how many lines made no sense."""

    found: tuple[NfsMount, ...]
    garbled: int

    @property
    def once(self) -> list[NfsMount]:
        """The first mount of each super block: what one tells holds for all, and each costs a request."""
        first: dict[str, NfsMount] = {}
        for mount in self.found:
            first.setdefault(mount.device, mount)
        return list(first.values())


class Counters(NamedTuple):
    """Totals over a mount's operations: those that ended well, bytes received, and major timeouts."""

    done: int
    received: int
    timeouts: int


def read_mounts(proc: Path) -> NfsMounts:
    """Return the NFS mounts of process 1. Raises OSError when they cannot be read."""
    return parse_mountinfo(os.fsdecode((proc / "1/mountinfo").read_bytes()))


def parse_mountinfo(text: str) -> NfsMounts:
    """Read mountinfo. What is hidden below a later mount on the same path is left out; it cannot be reached."""
    lines, garbled = mountinfo.parse(text)
    top = {line.point: _mount(line) for line in lines}
    mounts = [mount for mount in top.values() if mount]
    return NfsMounts(tuple(sorted(mounts, key=lambda mount: (mount.export == VOLUMES, mount.point))), garbled)


def _mount(line: mountinfo.MountLine) -> NfsMount | None:
    """Return the mount; None when it is not NFS."""
    if line.kind not in KINDS:
        return None
    options = {name: value for name, _, value in (option.partition("=") for option in line.super_options.split(","))}
    version = 3 if options.get("vers", "4").startswith(("2", "3")) else 4
    return NfsMount(line.device, line.point, line.source, _server(options), version)


def _server(options: Mapping[str, str]) -> NfsTarget | None:
    address, port = options.get("addr", ""), options.get("port", str(PORT))
    if not address or not re.fullmatch(r"[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        return None
    if options.get("proto", "tcp") not in ("tcp", "tcp6"):
        return NfsTarget(address, tcp=False)  # the port is RDMA's; servers have TCP beside it
    return NfsTarget(address, int(port))


def read_counters(proc: Path) -> dict[str, Counters]:
    """Return the counters of every NFS mount of process 1, by path; {} when there are none to be had."""
    try:
        return parse_mountstats(os.fsdecode((proc / "1/mountstats").read_bytes()))
    except OSError:
        return {}


def parse_mountstats(text: str) -> dict[str, Counters]:
    """Read mountstats. A mount of which any operation's line makes no sense is left out, and so is one without any.

    An operation's line is `NAME: operations transmissions timeouts sent received queue rtt execute [errors]`.
    """
    counters = {}
    for block in re.split(r"^(?:no )?device ", text, flags=re.MULTILINE)[1:]:
        head, _, rest = block.partition("\n")
        match = re.fullmatch(r".* mounted on (/\S*) with fstype (\S+)(?: .*)?", head)
        lines = rest.partition("per-op statistics\n")[2].split("\n")
        rows = [_operation(line) for line in lines if line.strip()]
        if match and match[2] in KINDS and rows and None not in rows:
            counters[unescape(match[1])] = Counters(*(sum(column) for column in zip(*filter(None, rows), strict=True)))
    return counters


def _operation(line: str) -> Counters | None:
    match = re.fullmatch(r"\s*[A-Z0-9_]+:((?: \d{1,20}){8,9})\s*", line, flags=re.ASCII)
    if not match:
        return None
    numbers = [int(number) for number in match[1].split()]
    return Counters(numbers[0] - sum(numbers[8:]), numbers[4], numbers[2])


ACCEPTED = {0: "answers", 2: "answers", 1: "silent", 3: "silent", 4: "unclear", 5: "silent"}  # 2: another version only


def ask_server(server: NfsTarget, version: int, deadline: float) -> ProbeReply:
    """Ask whether `server` serves NFS, for at most `deadline` seconds. Never raises, never looks up a name."""
    try:
        where = socket.getaddrinfo(
            server.address, server.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        )
        reply = _ask(where[0], version, time.monotonic() + deadline)
    except (OSError, ValueError, UnicodeError) as error:
        reply = failure(error)
    if reply.word == "silent" and not server.tcp:
        return ProbeReply("unclear", "mounted over something else than TCP")
    return reply


def _ask(where: Any, version: int, until: float) -> ProbeReply:
    family, kind, protocol, _, address = where
    xid = os.urandom(4)
    with socket.socket(family, kind, protocol) as connection:
        connection.settimeout(left(until))
        connection.connect(address)
        return parse_reply(call_null(connection, xid, version, until), xid)


def call_null(connection: socket.socket, xid: bytes, version: int, until: float) -> bytes:
    """Call RPC's procedure NULL of NFS and return the reply, b"" for what is no RPC over TCP. Raises OSError."""
    call = xid + struct.pack(">9I", 0, 2, NFS, version, 0, 0, 0, 0, 0)
    connection.settimeout(left(until))
    connection.sendall(struct.pack(">I", 1 << 31 | len(call)) + call)
    (mark,) = struct.unpack(">I", _receive(connection, 4, until))
    size = mark & 0x7FFFFFFF
    return _receive(connection, size, until) if mark >> 31 and 12 <= size <= 1024 else b""


def parse_reply(body: bytes, xid: bytes) -> ProbeReply:
    """Read an RPC reply to call `xid` (RFC 5531, section 9). One that refuses our credentials is an answer too."""
    words = struct.unpack(f">{len(body) // 4}I", body[: len(body) // 4 * 4])
    if len(words) < 3 or body[:4] != xid or words[1] != 1 or words[2] not in (0, 1):
        return ProbeReply("unclear", "what listens there does not speak RPC")
    if words[2] == 1:
        return ProbeReply("answers")
    accepted = words[5:6]  # after a verifier without a body, for the call had none
    word = ACCEPTED.get(accepted[0], "unclear") if accepted else "unclear"
    return ProbeReply(word, "" if word == "answers" else "it does not serve NFS")


def _receive(connection: socket.socket, size: int, until: float) -> bytes:
    received = b""
    while len(received) < size:
        connection.settimeout(left(until))
        more = connection.recv(size - len(received))
        if not more:
            raise ConnectionResetError(errno.ECONNRESET, CLOSES)
        received += more
    return received


def ask_servers(mounts: Iterable[NfsMount], proc: Path, deadline: float) -> dict[NfsTarget, ProbeReply]:
    """Ask every server of `mounts` at the same time."""
    versions = {mount.server: mount.version for mount in mounts if mount.server}
    servers = sorted(versions)
    replies = together(lambda server: ask_server(server, versions[server], deadline), servers)
    return dict(zip(servers, (in_the_nodes_network(reply, proc) for reply in replies), strict=True))
