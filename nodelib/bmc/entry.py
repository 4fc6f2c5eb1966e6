"""What is known of a node's BMC: a Secret of the node's own, and a ConfigMap of what all nodes share.

Mounted as files, or as kubectl prints them. Passwords are never printed.
"""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from nodelib.contract.operation import Refused

CONFIG = "ConfigMap remediator-bmc"
KEYS = ("address", "username", "password", "protocol", "ca.crt", "insecure", "system", "uuid")
FLAGS = {"true": True, "false": False}
PROTOCOLS = {"redfish": 443, "ipmi": 623}  # and their ports


class Entry(NamedTuple):
    """How to reach one BMC. `secret` is where it stands, `ca` PEM text, "" for the authorities that the image knows."""

    secret: str
    host: str
    port: int
    username: str
    password: str
    protocol: str
    ca: str
    insecure: bool
    system: str
    uuid: str

    @property
    def word(self) -> str:
        """The user and the password as HTTP sends them."""
        return base64.b64encode(f"{self.username}:{self.password}".encode()).decode()

    def hidden(self, text: str) -> str:
        """Return what a BMC or its tool said without the password: some repeat what they were asked."""
        return text.replace(self.word, "[password]").replace(self.password, "[password]")


def read_entry(folder: Path, node: str) -> Entry:
    """Return the entry of `node`. Raises Refused for one that is not there or cannot be meant."""
    return entry_of(_read(folder / "shared", CONFIG), _read(folder / "node", secret(node)), node)


def entry_of(shared: Mapping[str, str], own: Mapping[str, str], node: str) -> Entry:
    """Return the entry that the keys of ConfigMap and Secret make. Raises Refused for one that cannot be meant."""
    fields = {**shared, **own}
    strange = sorted(set(fields) - {*KEYS})
    missing = [name for name in KEYS[:3] if not fields.get(name)]
    if "password" in shared:  # every Pod of this operation mounts it, and so would every node that runs one
        raise Refused(f"{CONFIG} holds a password: move it into {secret(node)}, one Secret for each node")
    if strange:
        raise Refused(f"{secret(node)} or {CONFIG}: unknown key {', '.join(strange)}; known are {', '.join(KEYS)}")
    if missing:
        raise Refused(f"{secret(node)} lacks {', '.join(missing)}: add what is missing, see docs/operations.md")
    insecure, protocol = fields.get("insecure", "false"), fields.get("protocol", "redfish")
    if insecure not in FLAGS:
        raise Refused(f"{secret(node)}: insecure must be true or false")
    if protocol not in PROTOCOLS:
        raise Refused(f"{secret(node)}: protocol must be redfish or ipmi")
    host, port = split(fields["address"].replace("{node}", node), PROTOCOLS[protocol], secret(node))
    ca, system, uuid = (fields.get(name, "") for name in ("ca.crt", "system", "uuid"))
    login = fields["username"], fields["password"]
    return Entry(secret(node), host, port, *login, protocol, ca, FLAGS[insecure], system, uuid)


def secret(node: str) -> str:
    """Return which Secret the entry of a node is, for a user."""
    return f"Secret remediator-bmc-{node}"


def _read(folder: Path, source: str) -> dict[str, str]:
    """Return what a Secret or a ConfigMap holds, mounted as one file for each key; nothing where there is none."""
    try:
        files = sorted(path for path in folder.iterdir() if not path.name.startswith("..")) if folder.is_dir() else []
        return {path.name: path.read_text(encoding="utf-8").strip() for path in files}
    except (OSError, ValueError) as error:
        # Of what is in a file nothing is repeated: it may be the password.
        raise Refused(f"{source} cannot be read: {type(error).__name__}") from None


def split(address: str, port: int, secret: str) -> tuple[str, int]:
    """Return host and port of an address: a name or an IP, with https:// before and :port behind if wanted.

    `secret` says where it stands. It is not quoted in a refusal: it may hold a password (https://user:password@host).
    """
    if address.startswith("http://"):
        raise Refused(f"{secret}: the address would send the password in the clear: write https://")
    plain = address.removeprefix("https://").rstrip("/")
    host, colon, given = plain.rpartition(":")
    if not colon or plain.endswith("]") or ":" in host.rpartition("]")[2]:  # no port, or an IPv6 address without one
        host, given = plain, str(port)
    host = host.removeprefix("[").removesuffix("]")
    if not host or "/" in host or "@" in host or not given.isdecimal():
        raise Refused(f"{secret}: the address is not a host, with :port if wanted")
    return host, int(given)
